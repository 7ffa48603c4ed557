"""Verdicts: better, worse, same, undecided or not comparable, for every point and metric of two sides.

The family is a curve (one layout) with all its compared metrics: false better or worse at most 5 % a curve, and as
much for a false "same" at the margin. Method: docs/comparing.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from infx.compare.comparable import forbidden, set_aside, told, unmatched
from infx.compare.estimate import Estimate, aligned, estimate, shortened, table_of
from infx.compare.sides import Facts, Side
from infx.measure.stats.family import family_p_differs, family_p_equivalent, holm
from infx.measure.stats.power import Question, starts_for_gain, starts_for_margin
from infx.measure.stats.sequential import look_levels
from infx.measure.stats.starts import Spread, p_differs, p_equivalent
from infx.schema.result import Reason

DEFAULT_METRICS = ("output-throughput-per-gpu", "ttft-p50", "itl-p50", "tpot-p50")
"""Compared when no metric is named: few, since every further one costs the others power."""

LEVEL = 0.05


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Cell:
    """The verdict on one metric of one point; ``p_differs`` and ``p_same`` are corrected over the curve."""

    label: str
    metric: str
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    estimate: Estimate | None = None
    p_differs: float = 1.0
    p_same: float = 1.0
    look: int | None = None


@dataclass(frozen=True, slots=True)
class CurveCells:
    """All cells of one layout, and how they were corrected: rotation, Holm or none."""

    curve: str
    cells: tuple[Cell, ...]
    correction: str
    statements: int


@dataclass(frozen=True, slots=True)
class Options:
    """What is compared and how. ``floor_of`` finds a stored floor; ``schedule`` lists the looks of an A/B."""

    metrics: tuple[str, ...] = DEFAULT_METRICS
    margins: Mapping[str, float] = field(default_factory=dict)
    floor_of: Callable[[Facts, str], Spread | None] = lambda facts, metric: None
    schedule_of: Callable[[str], tuple[int, ...]] = lambda label: ()
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides compared: cells by curve, what forbids or qualifies, and which facts they are of."""

    first: Side
    second: Side
    options: Options
    curves: tuple[CurveCells, ...]
    notes: tuple[Reason, ...]

    @property
    def cells(self) -> list[Cell]:
        return [cell for curve in self.curves for cell in curve.cells]

    def cell(self, label: str, metric: str) -> Cell:
        """The cell of a point and metric; KeyError when there is none."""
        for cell in self.cells:
            if (cell.label, cell.metric) == (label, metric):
                return cell
        raise KeyError(f"{label} {metric}")


def compare(first: Side, second: Side, options: Options | None = None) -> Comparison:
    """Judge ``second`` against ``first`` for every point that either has."""
    options = options or Options()
    judged = tuple(_curve(curve, labels, first, second, options)
                   for curve, labels in labels_by_curve(first, second).items())
    both = [[m for found in side.points.values() for m in found] for side in (first, second)]
    return Comparison(first, second, options, judged, (*told(*both), *set_aside(first), *set_aside(second)))


def labels_by_curve(first: Side, second: Side) -> dict[str, list[str]]:
    """Point labels that either side has, by layout, each in ascending concurrency."""
    curves: dict[str, list[tuple[int, str]]] = {}
    for label in dict.fromkeys((*first.points, *second.points)):
        facts = (first.points.get(label) or second.points[label])[0].facts
        curves.setdefault(facts.curve, []).append((facts.concurrency, label))
    return {curve: [label for _, label in sorted(found)] for curve, found in curves.items()}


def _curve(curve: str, labels: Sequence[str], first: Side, second: Side, options: Options) -> CurveCells:
    cells: list[Cell | Estimate] = []
    names: list[tuple[str, str]] = []
    for label in labels:
        for metric in options.metrics:
            names.append((label, metric))
            cells.append(open_cell(label, metric, first, second, options))
    open_ = [i for i, c in enumerate(cells) if isinstance(c, Estimate)]
    estimates = [c for c in cells if isinstance(c, Estimate)]
    method, decided = _judge(estimates, [names[i][0] for i in open_], options)
    for index, cell in zip(open_, decided, strict=True):
        cells[index] = cell
    final = [_named(c, *name) for c, name in zip(cells, names, strict=True) if isinstance(c, Cell)]
    return CurveCells(curve, tuple(final), method, len(estimates))


def open_cell(label: str, metric: str, first: Side, second: Side, options: Options) -> Cell | Estimate:
    """The estimate of a cell, or the decided cell where there is nothing to estimate."""
    for side, other, which in ((first, second, "first"), (second, first, "second")):
        if label not in other.points:
            return Cell(label, metric, Verdict.NOT_COMPARABLE, (unmatched(label, side, other, which),))
    one, two = first.good(label), second.good(label)
    bad = _unusable(first, label, "first") + _unusable(second, label, "second")
    if not one or not two:
        return Cell(label, metric, Verdict.NOT_COMPARABLE, tuple(bad))
    against = forbidden(one, two)
    if against:
        return Cell(label, metric, Verdict.NOT_COMPARABLE, tuple(against))
    found = estimate(metric, one, two, floor=options.floor_of(two[0].facts, metric),
                     margin=options.margins.get(metric))
    if isinstance(found, Reason):
        return Cell(label, metric, Verdict.NOT_COMPARABLE, (found,))
    if found.sign == 0:
        reason = Reason(code="no-direction", message=f"{metric} is neither better high nor low")
        return Cell(label, metric, Verdict.NOT_COMPARABLE, (reason,), found)
    return found


def _unusable(side: Side, label: str, which: str) -> list[Reason]:
    reasons = []
    for m in side.points[label]:
        if not m.ok:
            why = "; ".join(r.message for r in m.reasons) or "no reason was stored"
            reasons.append(Reason(code=str(m.status), message=f"{m.status} in {m.start} ({which} side): {why}"))
    return reasons


def _named(cell: Cell, label: str, metric: str) -> Cell:
    return replace(cell, label=label, metric=metric)


def _judge(estimates: list[Estimate], labels: list[str], options: Options) -> tuple[str, list[Cell]]:
    """Verdicts of a curve's cells: at each look of an interleaved A/B in turn, else once with all starts."""
    if not estimates:
        return "none", []
    schedules = {options.schedule_of(label) for label in labels}
    schedule = schedules.pop() if len(schedules) == 1 else ()
    have = min(min(len(e.first.values), len(e.second.values)) for e in estimates)
    looks = [n for n in schedule if n <= have]
    if len(schedule) < 2 or not looks or not aligned(estimates):
        method, p, q = corrected(estimates)
        return method, [_verdict(e, a, b, options.level, len(estimates))
                        for e, a, b in zip(estimates, p, q, strict=True)]
    levels = dict(zip(schedule, look_levels(schedule, options.level), strict=True))
    cells: list[Cell] = []
    for n in looks:
        early = [shortened(e, n) for e in estimates]
        method, p, q = corrected(early)
        fresh = [_verdict(e, a, b, levels[n], len(early), n) for e, a, b in zip(early, p, q, strict=True)]
        decided = (Verdict.BETTER, Verdict.WORSE, Verdict.SAME)
        cells = [old if old.verdict in decided else new for old, new in zip(cells or fresh, fresh, strict=True)]
    return f"{method}, {len(looks)} of {len(schedule)} looks", cells


def corrected(estimates: Sequence[Estimate]) -> tuple[str, np.ndarray, np.ndarray]:
    """(method, p of no difference, p of no equivalence), both corrected over ``estimates`` as one family.

    Rotation when every cell was measured in the same starts; Holm otherwise, and whenever a stored floor enters.
    """
    rooms = [e.room() for e in estimates]
    alone = len(estimates) == 1
    if not alone and aligned(estimates) and all(e.floor is None and e.diff.df > 0 for e in estimates):
        first = len(estimates[0].first.values)
        table = table_of(estimates)
        low, high = (np.array([room[i] if room else 0.0 for room in rooms]) for i in (0, 1))
        equal = family_p_equivalent(table, first, low, high)
        with_room = np.array([room is not None for room in rooms])
        return "rotation", family_p_differs(table, first), np.where(with_room, equal, 1.0)
    differ = np.array([p_differs(e.diff) for e in estimates])
    equal = np.array([p_equivalent(e.diff, *room) if room else 1.0
                      for e, room in zip(estimates, rooms, strict=True)])
    return ("none", differ, equal) if alone else ("Holm", holm(differ), holm(equal))


def _verdict(e: Estimate, p: float, q: float, level: float, statements: int, look: int | None = None) -> Cell:
    made = {"label": "", "metric": e.metric, "estimate": e, "p_differs": float(p), "p_same": float(q), "look": look}
    notes = _notes(e)
    if e.diff.df <= 0:
        reason = Reason(code="start-to-start-unknown", message="one start a side and no stored noise floor: "
                        "how far two starts differ by themselves is unknown (infx noise add, or more starts)")
        return Cell(verdict=Verdict.UNDECIDED, reasons=(reason, *notes), **made)
    if not e.diff.se > 0:
        reason = Reason(code="no-spread", message="every start gave the same value to the last digit: "
                        "these are not independent measurements")
        return Cell(verdict=Verdict.UNDECIDED, reasons=(reason, *notes), **made)
    if q <= level:
        return Cell(verdict=Verdict.SAME, reasons=notes, **made)
    if p <= level:
        better = e.diff.value * e.sign > 0
        return Cell(verdict=Verdict.BETTER if better else Verdict.WORSE, reasons=notes, **made)
    return Cell(verdict=Verdict.UNDECIDED, reasons=(_too_noisy(e, level, statements), *notes), **made)


def _notes(e: Estimate) -> tuple[Reason, ...]:
    if e.floor is None:
        return ()
    n = max(len(e.first.values), len(e.second.values))
    return (Reason(code="pooled-floor", message=f"n = {n} against pooled floor ({e.floor.sd:.2%} between starts, "
                                                f"{e.floor.df:.0f} degrees of freedom)"),)


def _too_noisy(e: Estimate, level: float, statements: int) -> Reason:
    spread = e.spread()
    if p_differs(e.diff) <= level:
        return Reason(code="only-alone", message="it would stand if it were the only statement asked for, "
                                                 "not among all those of this curve")
    if e.scale != "ratio" or e.margin is None or not math.isfinite(spread.sd):
        return Reason(code="too-noisy", message="the difference is within the spread between starts")
    question = Question(max(spread.sd, 1e-6), statements)
    needs = [starts_for_margin(e.margin, question)]
    if e.improvement is not None and abs(e.improvement) > e.margin:
        needs.append(starts_for_gain(abs(math.expm1(abs(e.diff.value))), question))
    have = min(len(e.first.values), len(e.second.values))
    found = [n for n in needs if n is not None and n > have]
    hint = f"; about {min(found)} starts a side would tell" if found else ""
    return Reason(code="too-noisy", message=f"starts spread by {spread.sd:.1%}, too much for a margin of "
                                            f"{e.margin:.1%} at this number of starts{hint}")
