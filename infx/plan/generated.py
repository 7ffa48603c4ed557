"""A generator in place of a trace corpus that is not at hand: Plan → Plan, of other fingerprints than the corpus's."""

from __future__ import annotations

from infx.plan.fingerprint import point_fingerprint
from infx.schema.plan import AgenticWorkload, Plan, Point

PREFIX = "generator:"


def corpora(plan: Plan) -> set[str]:
    """Names of the trace corpora that a plan replays."""
    found = {point.workload.traces for point in plan.points if isinstance(point.workload, AgenticWorkload)}
    return {name for name in found if not name.startswith(PREFIX)}


def generated(plan: Plan, corpus: str, generator: str) -> Plan:
    """The plan with ``generator`` in the place of ``corpus``."""
    return plan.model_copy(update={"points": [_point(point, corpus, generator) for point in plan.points]})


def _point(point: Point, corpus: str, generator: str) -> Point:
    if not isinstance(point.workload, AgenticWorkload) or point.workload.traces != corpus:
        return point
    workload = point.workload.model_copy(update={"traces": f"{PREFIX}{generator}", "trace_hash": None})
    fingerprint = point_fingerprint(server=point.server, workload=workload, concurrency=point.concurrency)
    return point.model_copy(update={"workload": workload, "fingerprint": fingerprint})
