"""What becomes of a plan's trace corpora where it is swept: their hash is noted, or a generator takes their place."""

from __future__ import annotations

from infx.plan.fingerprint import point_fingerprint
from infx.schema.plan import AgenticWorkload, Plan, Point

PREFIX = "generator:"


def corpora(plan: Plan) -> dict[str, str | None]:
    """The trace corpora that a plan replays, by name, with the hash that it knows of each."""
    found = {point.workload.traces: point.workload.trace_hash for point in plan.points
             if isinstance(point.workload, AgenticWorkload)}
    return {name: sha256 for name, sha256 in found.items() if not name.startswith(PREFIX)}


def hashed(plan: Plan, corpus: str, sha256: str) -> Plan:
    """The plan with the hash of a corpus as found. Fingerprints stay: they are of declared facts (a pinned hash)."""
    points = [
        point.model_copy(update={"workload": point.workload.model_copy(update={"trace_hash": sha256})})
        if isinstance(point.workload, AgenticWorkload) and point.workload.traces == corpus else point
        for point in plan.points
    ]
    return plan.model_copy(update={"points": points})


def generated(plan: Plan, corpus: str, generator: str) -> Plan:
    """The plan with ``generator`` in the place of ``corpus``."""
    return plan.model_copy(update={"points": [_point(point, corpus, generator) for point in plan.points]})


def _point(point: Point, corpus: str, generator: str) -> Point:
    if not isinstance(point.workload, AgenticWorkload) or point.workload.traces != corpus:
        return point
    workload = point.workload.model_copy(update={"traces": f"{PREFIX}{generator}", "trace_hash": None})
    fingerprint = point_fingerprint(server=point.server, workload=workload, concurrency=point.concurrency)
    return point.model_copy(update={"workload": workload, "fingerprint": fingerprint})
