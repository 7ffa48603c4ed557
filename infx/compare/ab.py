"""An A/B of two arms: engine starts interleaved so that drift falls on both, what it costs, when it may stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from infx.compare.sides import Facts, Side
from infx.compare.verdict import DEFAULT_METRICS, Comparison, Verdict
from infx.errors import UsageError
from infx.measure.stats.distributions import t_quantile
from infx.measure.stats.power import Question, smallest_gain, starts_for_gain, starts_for_margin
from infx.measure.stats.sequential import looks
from infx.measure.stats.starts import Spread
from infx.schema.metrics import METRICS
from infx.schema.plan import Block, FixedWorkload, Plan, Point

READY_GUESS_S = 300.0
"""Seconds from launch to the first token where no earlier start of the recipe tells."""

SPREADS = (0.005, 0.01, 0.02, 0.04)
"""Start-to-start spreads that are planned for where no floor is stored."""

LEAST_PLANNED = 2


def interleave(plan: Plan, repeats: int) -> Plan:
    """``plan`` (two arms) with every block ``repeats`` times, arms in ABBA order layout by layout.

    Round 1 starts A then B for each layout, round 2 B then A, and so on, so that a steady drift of the machine falls
    on both arms alike. Block ids get ``-r1``, ``-r2``, …. UsageError without exactly two arms, or below two repeats.
    """
    if repeats < LEAST_PLANNED:
        raise UsageError(f"--repeats {repeats}: one start an arm shows no spread", allowed="2 or more")
    arms = list(dict.fromkeys(point.arm for point in plan.points))
    if len(arms) != 2:
        raise UsageError(f"an A/B has two arms, not {len(arms)}", where=plan.recipe)
    arm_of = {point.key: point.arm for point in plan.points}
    layout_of = {point.key: point.parallel.axes() for point in plan.points}
    slots: dict[str, dict[str | None, list[Block]]] = {}
    for block in plan.blocks:
        slot = slots.setdefault(layout_of[block.points[0]], {})
        slot.setdefault(arm_of[block.points[0]], []).append(block)
    blocks = []
    for round_ in range(repeats):
        order = arms if round_ % 2 == 0 else arms[::-1]
        for slot in slots.values():
            blocks += [block.model_copy(update={"id": f"{block.id}-r{round_ + 1}"})
                       for arm in order for block in slot.get(arm, [])]
    return plan.model_copy(update={"blocks": blocks})


TWIN = "again"
"""The arm of an A/A: the recipe once more, nothing changed."""


def twinned(plan: Plan) -> Plan:
    """``plan`` (one arm) with a second arm that is the same in every declared fact, for an A/A; that arm comes first.

    Points keep their fingerprints and servers. UsageError when the plan has arms.
    """
    if any(point.arm is not None for point in plan.points):
        raise UsageError("an A/A is of a recipe without its arms", where=plan.recipe)
    head = f"{plan.recipe}@{TWIN}"
    twins = {p.key: p.model_copy(update={"key": f"{head}/{p.key.partition('/')[2]}", "arm": TWIN})
             for p in plan.points}
    blocks = [b.model_copy(update={"id": f"{TWIN}-{b.id}", "points": [twins[key].key for key in b.points]})
              for b in plan.blocks]
    return plan.model_copy(update={"points": [*twins.values(), *plan.points], "blocks": [*blocks, *plan.blocks]})


def repeats_of(plan: Plan) -> int:
    """In how many starts the plan measures each point (the least over points)."""
    counts = dict.fromkeys((point.key for point in plan.points), 0)
    for block in plan.blocks:
        for key in block.points:
            counts[key] += 1
    return min(counts.values())


def schedule_of(first: Side, second: Side) -> Callable[[str], tuple[int, ...]]:
    """The looks of an interleaved A/B by point label; empty where the sides are no such thing."""

    def schedule(label: str) -> tuple[int, ...]:
        planned = min(side.planned_starts.get(label, 0) for side in (first, second))
        return looks(planned) if planned >= LEAST_PLANNED else ()

    return schedule


def early_stop(
    plan: Plan, enough: Callable[[int], bool], rest: Sequence[Block] | None = None
) -> Callable[[Sequence[object]], Block | None]:
    """A sweep's policy: the plan's blocks in order, until a look finds ``enough`` after n rounds.

    ``enough(n)`` is asked at each scheduled look but the last, once its n starts of every block are done. ``rest``
    is what an earlier sweep of the same run left (see ``left_of``).
    """
    todo = list(plan.blocks) if rest is None else list(rest)
    repeats = repeats_of(plan)
    a_round = len(plan.blocks) // repeats
    place = {block.id: index for index, block in enumerate(plan.blocks)}
    early = [(n * a_round, n) for n in looks(repeats)[:-1]]

    def next_block(done: Sequence[object]) -> Block | None:
        if len(done) >= len(todo):
            return None
        at = place[todo[len(done)].id]
        before = place[todo[len(done) - 1].id] if done else -1
        if any(before < mark <= at and enough(n) for mark, n in early):
            return None
        return todo[len(done)]

    return next_block


def left_of(plan: Plan, block_of_start: Mapping[str, str], measured: Mapping[str, set[str]]) -> list[Block]:
    """The plan's blocks in order, each with the points that none of its starts has finished; whole ones left out.

    ``block_of_start``: start id → block id; ``measured``: start id → keys of the points that it finished. So an A/B
    that was cut within a block goes on with the rest of that block, and measures no point of it twice.
    """
    finished: dict[str, set[str]] = {}
    for start, keys in measured.items():
        finished.setdefault(block_of_start[start], set()).update(keys)
    left = []
    for block in plan.blocks:
        points = [key for key in block.points if key not in finished.get(block.id, ())]
        if points:
            left.append(block.model_copy(update={"points": points}))
    return left


def settled(comparison: Comparison) -> bool:
    """Whether further starts could change nothing: no cell is undecided."""
    return bool(comparison.cells) and all(cell.verdict is not Verdict.UNDECIDED for cell in comparison.cells)


def block_seconds(plan: Plan, block: Block, ready_s: float = READY_GUESS_S) -> float:
    """Least seconds of a block: readiness, and each point's window (the first once more, as revisited)."""
    visits = [plan.point(key) for key in block.points]
    again = visits[:1] if len(visits) > 1 and not plan.quick else []
    return ready_s + sum(map(_window, visits)) + sum(min(_window(p), 300.0) for p in again)


def gpu_hours(plan: Plan, ready_s: float = READY_GUESS_S, blocks: Sequence[Block] | None = None) -> float:
    """GPU-hours of ``blocks`` (all of the plan's), each holding its server's GPUs."""
    return sum(plan.servers[b.server].parallel.gpus * block_seconds(plan, b, ready_s)
               for b in (plan.blocks if blocks is None else blocks)) / 3600.0


def repeats_for_budget(plan: Plan, hours: float, ready_s: float = READY_GUESS_S) -> int:
    """Most repeats that a budget of GPU-hours allows. UsageError when it does not allow two."""
    each = gpu_hours(plan, ready_s)
    repeats = int(hours / each + 1e-9) if each > 0 else 0
    if repeats < LEAST_PLANNED:
        raise UsageError(f"{hours:g} GPU-hours allow {repeats} start(s) an arm; an A/B needs two",
                         where=plan.recipe, hint=f"two cost {2 * each:.1f} GPU-hours; or name fewer points (--only)")
    return repeats


@dataclass(frozen=True, slots=True)
class Sight:
    """What an A/B can find in one metric at one spread: for one declared point and among a whole curve."""

    metric: str
    sd: float
    stored: bool
    margin: float | None
    smallest: float | None
    smallest_curve: float | None
    for_margin: int | None
    for_margin_curve: int | None
    for_gain: int | None
    for_gain_curve: int | None


def sights(plan: Plan, floor_of: Callable[[Facts, str], Spread | None], facts: Mapping[str, Facts], *,
           metrics: Sequence[str] = DEFAULT_METRICS, gain: float = 0.05) -> list[Sight]:
    """What the planned starts can find, by metric; at assumed spreads where no floor is stored.

    ``facts`` are those of the plan's points by label. The largest floor over the points stands for a metric.
    """
    repeats = repeats_of(plan)
    labels = {fact.label: fact for fact in facts.values()}
    curves: dict[str, int] = {}
    for fact in labels.values():
        curves[fact.curve] = curves.get(fact.curve, 0) + 1
    cells = max(curves.values()) * len(metrics)
    found = []
    for metric in metrics:
        floors = [f.sd for fact in labels.values() if (f := floor_of(fact, metric)) is not None]
        for sd in [max(floors)] if floors else SPREADS:
            found.append(_sight(metric, sd, bool(floors), repeats, cells, gain))
    return found


def _sight(metric: str, sd: float, stored: bool, repeats: int, cells: int, gain: float) -> Sight:
    one, curve = Question(sd, early=True), Question(sd, statements=cells, early=True, together=True)
    margin = METRICS[metric].margin
    return Sight(
        metric, sd, stored, margin, smallest_gain(repeats, one), smallest_gain(repeats, curve),
        starts_for_margin(margin, one) if margin else None, starts_for_margin(margin, curve) if margin else None,
        starts_for_gain(gain, one), starts_for_gain(gain, curve),
    )


@dataclass(frozen=True, slots=True)
class Drift:
    """How a metric moved from start to start in the order they were made, arms together.

    ``slope`` is relative, a start; ``interval`` its 95 % interval (None where no start is left to tell); ``order``
    the arms by launch, A the first side.
    """

    label: str
    metric: str
    slope: float
    interval: tuple[float, float] | None
    order: tuple[str, ...]

    def sentence(self) -> str:
        """``drift tp2/c4 itl-p50: +0.10% a start [−0.20%, +0.40%] over ABBA``."""
        ends = f" [{self.interval[0]:+.2%}, {self.interval[1]:+.2%}]" if self.interval else ""
        return f"drift {self.label} {self.metric}: {self.slope:+.2%} a start{ends} over {''.join(self.order)}"


def is_ab(first: Side, second: Side) -> bool:
    """Whether the sides are the two arms of one interleaved run."""
    runs = {m.run for side in (first, second) for found in side.points.values() for m in found}
    return len(runs) == 1 and any(schedule_of(first, second)(label) for label in first.points)


def drifts(first: Side, second: Side, metric: str) -> list[Drift]:
    """The drift of a metric by point: least squares of its logarithm on place in the order, each arm at its own level.

    Only points with four starts or more, all values positive.
    """
    found = []
    for label in first.points:
        arms = [[m for m in side.good(label) if m.values.get(metric) and (m.values[metric].value or 0) > 0]
                for side in (first, second)]
        if sum(map(len, arms)) < 4 or not all(arms):
            continue
        rows = sorted(((m.launched, m.start, float(np.log(m.values[metric].value)), index)
                       for index, arm in enumerate(arms) for m in arm))
        arm = np.array([row[3] for row in rows])
        design = np.column_stack([arm == 0, arm == 1, np.arange(len(rows))]).astype(float)
        logs = np.array([row[2] for row in rows])
        fitted, *_ = np.linalg.lstsq(design, logs, rcond=None)
        df = len(rows) - 3
        error = float(((logs - design @ fitted) ** 2).sum() / df) * np.linalg.pinv(design.T @ design)[2, 2]
        half = t_quantile(0.975, df) * math.sqrt(error)
        ends = tuple(math.expm1(float(fitted[2]) + way * half) for way in (-1, 1))
        found.append(Drift(label, metric, math.expm1(float(fitted[2])), (ends[0], ends[1]),
                           tuple("AB"[row[3]] for row in rows)))
    return found


def _window(point: Point) -> float:
    return point.stop.window_s if isinstance(point.workload, FixedWorkload) else point.workload.duration_s
