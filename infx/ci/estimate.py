"""Owns what a sweep will cost before it runs: engine starts, GPU-hours and wall time. Pure.

Windows are the recipes' own. How long an engine takes to be ready is not known before it starts: it is an assumption,
given in seconds and printed with every estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infx.run.policy import visits
from infx.schema.plan import AgenticWorkload, Block, Plan, Point

STARTUP_S = 900.0
"""Assumed seconds from the start of an engine to its first request, where nobody says otherwise."""


@dataclass(frozen=True)
class Span:
    """Seconds at least and at most."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.high + other.high)

    def times(self, factor: float) -> Span:
        """Both ends multiplied."""
        return Span(self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Estimate:
    """Costs of a sweep. ``wall``: seconds with a free runner for every job; ``serial``: with one runner in all."""

    starts: int
    points: int
    gpu_hours: Span
    wall: Span
    serial: Span
    startup_s: float


def window(point: Point) -> Span:
    """Seconds of one visit of a point: the window alone, without ramp and warm-up."""
    if isinstance(point.workload, AgenticWorkload):
        return Span(point.workload.duration_s, point.workload.duration_s)
    return Span(point.stop.window_s, point.stop.cap_s)


def block_time(plan: Plan, block: Block, startup_s: float) -> Span:
    """Seconds of one engine start with all visits of its points."""
    total = Span(startup_s, startup_s)
    for key in visits(block, revisit=not plan.quick):
        total += window(plan.point(key))
    return total


def first_point_cost(plan: Plan, block: Block, startup_s: float) -> float:
    """GPU-seconds at least for a start of this block's server with its lowest concurrency alone."""
    point = min((plan.point(key) for key in block.points), key=lambda item: item.concurrency)
    return (startup_s + window(point).low) * point.parallel.gpus


def estimate(first: Sequence[Plan], then: Sequence[Plan], startup_s: float) -> Estimate:
    """Costs of ``first`` (the canary) and, when it has ended, ``then`` side by side; each plan is one job."""
    times = [[_of(plan, startup_s) for plan in stage] for stage in (first, then)]
    gpu_seconds = Span()
    serial = Span()
    for plan, time in zip([*first, *then], [*times[0], *times[1]], strict=True):
        serial += time
        gpu_seconds += time.times(max(server.parallel.gpus for server in plan.servers.values()))
    wall = Span()
    for stage in times:
        wall += Span(max((time.low for time in stage), default=0.0), max((time.high for time in stage), default=0.0))
    every = [*first, *then]
    return Estimate(sum(len(plan.blocks) for plan in every), sum(len(plan.points) for plan in every),
                    gpu_seconds.times(1 / 3600), wall, serial, startup_s)


def _of(plan: Plan, startup_s: float) -> Span:
    total = Span()
    for block in plan.blocks:
        total += block_time(plan, block, startup_s)
    return total
