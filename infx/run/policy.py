"""Modes of a sweep as pure policies: ``next(done) -> Block | None`` over a plan's blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infx.schema.plan import Block, Plan
from infx.schema.result import Status


@dataclass(frozen=True)
class Outcome:
    """How a block went: the status of every point that it was to measure."""

    block: Block
    statuses: dict[str, Status]

    @property
    def ok(self) -> bool:
        return all(status is Status.OK for status in self.statuses.values())


Policy = Callable[[Sequence[Outcome]], Block | None]


def ladder(plan: Plan) -> Policy:
    """Every block once, in the plan's order, whatever becomes of the others."""

    def next_block(done: Sequence[Outcome]) -> Block | None:
        return plan.blocks[len(done)] if len(done) < len(plan.blocks) else None

    return next_block


def fail_fast(inner: Policy) -> Policy:
    """As ``inner``, until a point of any block is not ok."""

    def next_block(done: Sequence[Outcome]) -> Block | None:
        return inner(done) if all(outcome.ok for outcome in done) else None

    return next_block


def visits(block: Block, *, revisit: bool) -> list[str]:
    """Point keys in the order of visits: each once, the first again at the end when the block has several."""
    return [*block.points, block.points[0]] if revisit and len(block.points) > 1 else list(block.points)
