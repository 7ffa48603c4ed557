"""Claims of a changelog entry (`expect:`) judged from results: met, refuted or unproven, with the evidence's hashes.

A claim is one statement about all points and metrics that it selects. It is met when each of them, taken alone, is
proven at the level (an intersection-union test, which needs no correction). It is refuted when one of them is proven
to be otherwise after Holm's correction over the claim. Anything else leaves it unproven. A claimed size is a bound, or
a range where the claim says within what.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np

from infx.compare.ab import schedule_of
from infx.compare.estimate import Estimate
from infx.compare.sides import Side, axes_of, evidence
from infx.compare.verdict import DEFAULT_METRICS, LEVEL, Cell, Options, open_cell
from infx.measure.stats.distributions import t_tail
from infx.measure.stats.family import holm
from infx.measure.stats.sequential import look_levels
from infx.measure.stats.starts import p_equivalent
from infx.schema.changelog import Expect


class Outcome(StrEnum):
    MET = "met"
    REFUTED = "refuted"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim's outcome, why, and the sha256 of every result file that it rests on."""

    claim: Expect
    outcome: Outcome
    message: str
    cells: tuple[str, ...] = ()
    evidence: dict[str, str] = field(default_factory=dict)

    def sentence(self) -> str:
        """``met: tp=2, c<=8 itl-p50 better (…)``."""
        return f"{self.outcome}: {self.claim.sentence()} ({self.message})"


def judge(
    claim: Expect, first: Side, second: Side, options: Options | None = None, *,
    hash_of: Callable[[Path], str] = lambda path: "", level: float = LEVEL,
) -> Judged:
    """Judge one claim about ``second`` against ``first`` (sides already chosen by the claim's arms).

    ``hash_of`` gives the sha256 of a result file. Points that a plan names and that were not measured count as
    selected and leave the claim unproven. Of an A/B that may stop early, a claim spends what its latest look may.
    """
    options = options or Options()
    metrics = DEFAULT_METRICS if claim.metric == "all" else (claim.metric,)
    if claim.margin is not None:
        options = Options(metrics, dict.fromkeys(metrics, claim.margin), options.floor_of, options.schedule_of,
                          options.level)
    labels, lost = _selected(claim, first, second)
    if not labels and not lost:
        return Judged(claim, Outcome.UNPROVEN, "it selects no point that was measured or planned")
    cells = {f"{label} {metric}": open_cell(label, metric, first, second, options)
             for label in labels for metric in metrics}
    level = _level(labels, first, second, level)
    seen = evidence([m for side in (first, second) for label in labels for m in side.points.get(label, ())], hash_of)
    estimates = {name: cell for name, cell in cells.items() if isinstance(cell, Estimate)}
    against = _contrary(claim, list(estimates.values()))
    contrary = [name for name, p in zip(estimates, against, strict=True) if p <= level]
    if contrary:
        message = "; ".join(f"{name} {_figure(estimates[name])}" for name in contrary)
        return Judged(claim, Outcome.REFUTED, f"proven otherwise: {message}", tuple(cells), seen)
    reasons = [f"{name}: {_why(cell)}" for name, cell in cells.items() if isinstance(cell, Cell)]
    reasons += [f"{label}: not measured" for label in lost]
    reasons += [f"{name}: {_figure(e)}, {_doubt(e, claim.by is not None)}" for name, e in estimates.items()
                if not _proof(claim, e) <= level]
    if reasons:
        return Judged(claim, Outcome.UNPROVEN, "; ".join(reasons), tuple(cells), seen)
    return Judged(claim, Outcome.MET, "; ".join(f"{n} {_figure(e)}" for n, e in estimates.items()), tuple(cells), seen)


def judge_all(
    claims: Sequence[Expect], baseline: Side | None, run: Callable[[str | None], Side], options: Options | None = None,
    *, hash_of: Callable[[Path], str] = lambda path: "",
) -> list[Judged]:
    """Judge an entry's claims. ``run`` gives an arm of the new results (None: the base) as a side.

    A claim with ``against`` is judged between two arms of the new results, any other against ``baseline``; without
    one it is unproven.
    """
    judged = []
    for claim in claims:
        first = run(claim.against) if claim.against is not None else baseline
        if first is None:
            judged.append(Judged(claim, Outcome.UNPROVEN, "there are no results to compare with"))
            continue
        judged.append(judge(claim, first, run(claim.arm), options, hash_of=hash_of))
    return judged


def all_met(judged: Sequence[Judged]) -> bool:
    """Whether a gate may let the entry pass."""
    return all(j.outcome is Outcome.MET for j in judged)


def _selected(claim: Expect, first: Side, second: Side) -> tuple[list[str], list[str]]:
    labels = []
    for side in (first, second):
        for label, measured in side.points.items():
            facts = measured[0].facts
            if claim.selects({**facts.axes, "c": facts.concurrency}) and label not in labels:
                labels.append(label)
    lost = [label for side in (first, second) for label in side.missing
            if label not in labels and _names(claim, label)]
    return labels, list(dict.fromkeys(lost))


def _level(labels: Sequence[str], first: Side, second: Side, level: float) -> float:
    """What a claim may spend at this moment: an interleaved A/B is looked at several times and pays for each."""
    schedule_at = schedule_of(first, second)
    allowed = []
    for label in labels:
        schedule = schedule_at(label)
        have = min(len(first.good(label)), len(second.good(label)))
        if len(schedule) > 1 and have >= schedule[0]:
            spent = dict(zip(schedule, look_levels(schedule, level), strict=True))
            allowed.append(spent[max(n for n in schedule if n <= have)])
    return min(allowed, default=level)


def _names(claim: Expect, label: str) -> bool:
    layout, _, rung = label.partition("/c")
    return claim.selects({**axes_of(layout), "c": int(rung)})


def _proof(claim: Expect, e: Estimate) -> float:
    """p against the claim's opposite, for this cell alone: two-sided for better and worse."""
    if claim.by is not None:
        low, high = _sized(claim, e)
        return 2.0 * low if claim.within is None else max(low, high)
    if claim.verdict == "same":
        return _equal(e)
    return min(1.0, 2.0 * _tail(e, claim.verdict))


def _contrary(claim: Expect, estimates: Sequence[Estimate]) -> np.ndarray:
    """Corrected p-values of "the claim may hold in this cell": a gain is denied by a loss and by equality.

    A gain of some size is denied by a smaller one; with `within` by a larger one, too.
    """
    if not estimates:
        return np.empty(0)
    if claim.by is not None:
        sides = np.array([_sized(claim, e, otherwise=True) for e in estimates])
        return holm(np.minimum(1.0, 2.0 * (sides[:, 0] if claim.within is None else sides.min(axis=1))))
    if claim.verdict == "same":
        return holm(np.array([_beyond(e) for e in estimates]))
    other = "worse" if claim.verdict == "better" else "better"
    loss = np.array([2.0 * _tail(e, other) for e in estimates])
    equal = np.array([_equal(e) for e in estimates])
    return holm(np.minimum(1.0, 2.0 * np.minimum(loss, equal)))


def _sized(claim: Expect, e: Estimate, *, otherwise: bool = False) -> tuple[float, float]:
    """One-sided p of "below the claimed size" and "above it"; ``otherwise`` of "not below" and "not above".

    Where nothing bounds the cell, or its values have no ratio, all are 1.
    """
    assert claim.by is not None
    if e.scale != "ratio" or e.diff.df <= 0 or not e.diff.se > 0:
        return 1.0, 1.0
    way = e.sign * (1 if claim.verdict == "better" else -1)
    ends = [claim.by - (claim.within or 0.0), claim.by + (claim.within or 0.0)]
    low, high = (way * math.log1p(way * size) if way * size > -1 else math.inf for size in ends)
    gaps = ((way * e.diff.value - low) / e.diff.se, (high - way * e.diff.value) / e.diff.se)
    below, above = (float(t_tail(-gap if otherwise else gap, e.diff.df)) for gap in gaps)
    return below, above


def _equal(e: Estimate) -> float:
    room = e.room()
    return p_equivalent(e.diff, *room) if room else 1.0


def _tail(e: Estimate, verdict: str) -> float:
    """One-sided p of "not better" (or "not worse")."""
    if e.diff.df <= 0 or not e.diff.se > 0:
        return 1.0
    sign = e.sign if verdict == "better" else -e.sign
    return float(t_tail(sign * e.diff.value / e.diff.se, e.diff.df))


def _beyond(e: Estimate) -> float:
    """p of "the difference is within the margin"; 1 without a margin."""
    room = e.room()
    if room is None or e.diff.df <= 0 or not e.diff.se > 0:
        return 1.0
    above = t_tail((e.diff.value - room[1]) / e.diff.se, e.diff.df)
    below = t_tail((room[0] - e.diff.value) / e.diff.se, e.diff.df)
    return float(min(1.0, 2.0 * min(above, below)))


def _figure(e: Estimate) -> str:
    if e.improvement is None:
        return f"{e.first.centre:g} → {e.second.centre:g}"
    interval = e.improvement_interval()
    half = f" ± {(interval[1] - interval[0]) / 2:.1%}" if interval else ""
    return f"{e.improvement:+.1%}{half}"


def _doubt(e: Estimate, sized: bool) -> str:
    if e.diff.df <= 0:
        return "one start a side and no stored noise floor"
    if not e.diff.se > 0:
        return "no spread between starts"
    if sized and e.scale != "ratio":
        return "no ratio: not all values are positive"
    return "not proven at this number of starts"


def _why(cell: Cell) -> str:
    return "; ".join(reason.message for reason in cell.reasons) or str(cell.verdict)
