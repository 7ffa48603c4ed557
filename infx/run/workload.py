"""From a point's workload to the source of its requests."""

from __future__ import annotations

from infx.errors import RunnerError
from infx.schema.plan import AgenticWorkload, FixedWorkload, Plan, Point
from infx.workload.generator import generated_source
from infx.workload.lanes import FixedLength, LaneSource
from infx.workload.random import TokenIds
from infx.workload.replay import ReplayOptions

SEED = 20261201


def source_for(plan: Plan, point: Point, salt: str) -> LaneSource:
    """The requests of a point, deterministic by the fixed seed and ``salt`` (fresh for every visit).

    Raises RunnerError for a corpus that is not at hand.
    """
    low, high = plan.token_ids
    ids = TokenIds(high + 1, first=low)
    workload = point.workload
    if isinstance(workload, FixedWorkload):
        return FixedLength(ids, workload.isl, workload.osl, seed=SEED, salt=salt)
    assert isinstance(workload, AgenticWorkload)
    if not workload.traces.startswith("generator:"):
        raise RunnerError(f"the trace corpus {workload.traces!r} is not at hand", where=point.key)
    options = ReplayOptions(seed=SEED, salt=salt, warmup_turns=workload.warmup_turns, idle_cap_s=workload.idle_cap_s)
    return generated_source(ids, point.concurrency, options, context_limit=point.context_limit,
                            prompt_cap=workload.max_prompt_tokens, pause_cap=workload.idle_cap_s)
