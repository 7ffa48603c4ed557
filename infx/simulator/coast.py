"""Many quiet decode steps at once, for offline runs: what ``Scheduler.step`` would do one by one, without its loops.

A stretch is quiet while every running sequence decodes one token a step, nobody waits, and no sequence ends; then a
step's shape follows from the one before it. Blocks are still taken step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

from infx.predict.roofline import StepShape
from infx.simulator.scheduler import Scheduler


@dataclass(slots=True)
class Stretch:
    """``ends`` of the steps, each giving ``seqs`` sequences one token; ``first_gaps``: seconds → how many, step one."""

    ends: list[float]
    seqs: int
    first_gaps: dict[float, int]
    engaged: tuple[str, ...]


def coast(scheduler: Scheduler, now: float, until: float) -> Stretch | None:
    """The quiet steps from ``now``, none of which begins at or after ``until``; None where there are fewer than two."""
    running = scheduler.running
    seqs = len(running)
    if scheduler.waiting or scheduler.acceptance or not seqs or seqs > scheduler.limits.max_num_batched_tokens:
        return None
    if not all(sequence.decoding for sequence in running):
        return None
    most = min(sequence.limit - sequence.generated for sequence in running) - 1
    if most < 2:
        return None
    stretch = _steps(scheduler, now, until, most)
    steps = len(stretch.ends)
    if not steps:
        return None
    last = stretch.ends[-1]
    for sequence in running:
        sequence.computed += steps
        sequence.generated += steps
        sequence.last_token_at = last
        scheduler.publish(sequence)
    scheduler.totals.steps += steps
    scheduler.totals.generated += steps * seqs
    return stretch


def _steps(scheduler: Scheduler, now: float, until: float, most: int) -> Stretch:
    running, cache = scheduler.running, scheduler.cache
    block, seqs = cache.block_size, len(running)
    due: dict[int, list] = {}
    gaps: dict[float, int] = {}
    context = 0
    for sequence in running:
        context += sequence.computed
        due.setdefault(len(sequence.blocks) * block - sequence.computed, []).append(sequence)
    engaged = scheduler.engaged(StepShape(seqs, seqs))
    seconds, saving = scheduler.timer.seconds, engaged.saving
    ends: list[float] = []
    for step in range(most):
        if now >= until:
            break
        full = due.pop(step, ())
        if len(full) > cache.available:
            break
        for sequence in full:
            sequence.blocks += cache.allocate(1)
        if full:
            due.setdefault(step + block, []).extend(full)
        now += seconds(StepShape(seqs, seqs, float(context + step * seqs)), saving)
        ends.append(now)
    if ends:
        for sequence in running:
            gap = ends[0] - sequence.last_token_at
            gaps[gap] = gaps.get(gap, 0) + 1
    return Stretch(ends, seqs, gaps, engaged.names)
