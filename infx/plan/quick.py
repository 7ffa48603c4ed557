"""--quick: every point, shortened to seconds; never publishable, and never of the same fingerprint."""

from __future__ import annotations

from infx.plan.fingerprint import point_fingerprint
from infx.schema.plan import AgenticWorkload, FixedWorkload, Plan, Point, Workload
from infx.schema.recipe import Stop

PROMPT_TOKENS = 4096
OUTPUT_TOKENS = 64
WINDOW_S = 3.0
CAP_S = 5.0
IDLE_S = 0.5


def quick(plan: Plan) -> Plan:
    """Prompts of at most 4,096 tokens, outputs of at most 64, windows of 3–5 s, one warm-up turn a lane, no revisit."""
    return plan.model_copy(update={"quick": True, "points": [_quick_point(point) for point in plan.points]})


def _quick_point(point: Point) -> Point:
    workload = _quick_workload(point.workload)
    stop = Stop(min_requests=min(point.stop.min_requests, 36), window_s=WINDOW_S, cap_s=CAP_S,
                failure_share=point.stop.failure_share, percentiles=point.stop.percentiles)
    return point.model_copy(update={
        "workload": workload, "stop": stop,
        "fingerprint": point_fingerprint(server=point.server, workload=workload, concurrency=point.concurrency),
    })


def _quick_workload(workload: Workload) -> Workload:
    if isinstance(workload, FixedWorkload):
        return workload.model_copy(update={"isl": min(workload.isl, PROMPT_TOKENS),
                                           "osl": min(workload.osl, OUTPUT_TOKENS)})
    assert isinstance(workload, AgenticWorkload)
    return workload.model_copy(update={"duration_s": WINDOW_S, "idle_cap_s": IDLE_S, "warmup_turns": 1,
                                       "max_prompt_tokens": PROMPT_TOKENS})
