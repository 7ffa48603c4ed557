"""A whole curve as one figure: the area under its frontier over the range that both sides reach, start by start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from infx.compare.estimate import Estimate, aligned
from infx.compare.verdict import Comparison, Verdict, labels_by_curve, open_cell
from infx.measure.stats.starts import Difference, Spread, difference, p_differs, p_equivalent
from infx.schema.metrics import METRICS
from infx.schema.result import Reason

X_AXIS, Y_AXIS = "interactivity-median", "output-throughput-per-gpu"
MARGIN = 0.02


@dataclass(frozen=True, slots=True)
class CurveFigure:
    """One layout's areas under the frontier of (x, y), their change and the verdict on it.

    ``low`` and ``high`` bound the shared range of x; ``interval`` is the 95 % interval of the change over starts.
    """

    curve: str
    x: str
    y: str
    points: tuple[str, ...]
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    low: float = math.nan
    high: float = math.nan
    first: float = math.nan
    second: float = math.nan
    change: float | None = None
    interval: tuple[float, float] | None = None


def area(x: np.ndarray, y: np.ndarray, low: float, high: float) -> float:
    """Area under the frontier of points (x, y), both better when higher, for x between ``low`` and ``high``.

    The frontier is a staircase: at x it is the largest y among points that reach x, and nothing is interpolated
    between configurations that nobody measured. Dominated points and ties do not matter. 0 beyond the last point.
    """
    edges = np.unique(np.clip(x, low, high))
    edges = np.concatenate([[low], edges[edges > low]])
    if edges[-1] < high:
        edges = np.append(edges, high)
    tops = [y[x >= right].max(initial=0.0) for right in edges[1:]]
    return float(np.dot(np.diff(edges), tops))


def curve_figure(
    curve: str, xs: Sequence[Estimate], ys: Sequence[Estimate], labels: Sequence[str], *, margin: float = MARGIN,
    level: float = 0.05,
) -> CurveFigure:
    """The figure of one curve from the x and y estimates of its comparable points (same order as ``labels``).

    Each start (row of aligned points) gives one area, so that whatever its points share is counted once. Undecided,
    with the areas of the means, where starts cannot be told apart by rows.
    """
    x, y = METRICS[xs[0].metric] if xs else None, METRICS[ys[0].metric] if ys else None
    if x is None or y is None or len(xs) < 2:
        reason = Reason(code="too-few-points", message="a frontier needs two comparable points")
        return CurveFigure(curve, X_AXIS, Y_AXIS, tuple(labels), Verdict.NOT_COMPARABLE, (reason,))
    base = CurveFigure(curve, x.name, y.name, tuple(labels), Verdict.NOT_COMPARABLE)
    flip = 1.0 if x.better == "higher" else -1.0
    rows = [(flip * _rows(xs, side), _rows(ys, side)) for side in ("first", "second")]
    together = aligned([*xs, *ys])
    used = rows if together else [(flip * _centres(xs, side), _centres(ys, side)) for side in ("first", "second")]
    low = max(float(a.min(axis=1).max()) for a, _ in used)
    high = min(float(a.max(axis=1).min()) for a, _ in used)
    if not high > low:
        reason = Reason(code="no-shared-range", message=f"the two frontiers share no range of {x.title}")
        return replace(base, reasons=(reason,))
    areas = [np.array([area(a, b, low, high) for a, b in zip(xa, ya, strict=True)]) for xa, ya in used]
    logs = [np.log(a) for a in areas]
    d = difference(*logs)
    ends = sorted((flip * low, flip * high))
    found = replace(base, low=ends[0], high=ends[1], first=math.exp(logs[0].mean()), second=math.exp(logs[1].mean()),
                  change=math.expm1(d.value), interval=_interval(d))
    if not together:
        reason = Reason(code="unaligned", message="points were measured in different starts: no area a start")
        return replace(found, verdict=Verdict.UNDECIDED, reasons=(reason,))
    return _decide(found, d, margin, level)


@dataclass(frozen=True, slots=True)
class Axes:
    """The comparable points of one curve with their estimates on both axes, in ascending concurrency."""

    curve: str
    labels: tuple[str, ...]
    xs: tuple[Estimate, ...]
    ys: tuple[Estimate, ...]


def axes_of_curves(comparison: Comparison, x: str = X_AXIS, y: str = Y_AXIS) -> list[Axes]:
    """Both axes of every layout of a comparison."""
    found = []
    first, second, options = comparison.first, comparison.second, comparison.options
    for curve, labels in labels_by_curve(first, second).items():
        pairs = [(label, *(open_cell(label, metric, first, second, options) for metric in (x, y))) for label in labels]
        good = [p for p in pairs if isinstance(p[1], Estimate) and isinstance(p[2], Estimate)]
        found.append(Axes(curve, tuple(p[0] for p in good), tuple(p[1] for p in good), tuple(p[2] for p in good)))
    return found


def figures(curves: Sequence[Axes]) -> list[CurveFigure]:
    """The curve figure of every layout, over its comparable points."""
    return [curve_figure(axes.curve, axes.xs, axes.ys, axes.labels) for axes in curves]


def indistinguishable(xs: Sequence[Spread], ys: Sequence[Spread], points: Sequence[tuple[float, float]]
                      ) -> list[tuple[int, int]]:
    """Pairs of points closer to each other than noise on both axes (twice the spread of a difference).

    ``points`` are (x, y), ``xs`` and ``ys`` their relative start-to-start spreads; unknown spreads (df 0) mark
    nothing.
    """
    pairs = []
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            axes = [(xs[i], xs[j], points[i][0], points[j][0]), (ys[i], ys[j], points[i][1], points[j][1])]
            if all(a.df > 0 and b.df > 0 and abs(math.log(u / v)) <= 2.0 * math.hypot(a.sd, b.sd)
                   for a, b, u, v in axes):
                pairs.append((i, j))
    return pairs


def saturated(throughput: Sequence[float], margin: float = MARGIN) -> list[int]:
    """Indices of rungs (ascending concurrency) that buy nothing over a lower one: not ``margin`` more throughput."""
    found, best = [], -math.inf
    for index, value in enumerate(throughput):
        if value <= best * (1.0 + margin):
            found.append(index)
        best = max(best, value)
    return found


def _decide(found: CurveFigure, d: Difference, margin: float, level: float) -> CurveFigure:
    if d.df <= 0 or not d.se > 0:
        reason = Reason(code="start-to-start-unknown", message="the spread of this figure between starts is unknown")
        return replace(found, verdict=Verdict.UNDECIDED, reasons=(reason,))
    if p_equivalent(d, math.log1p(-margin), math.log1p(margin)) <= level:
        return replace(found, verdict=Verdict.SAME)
    if p_differs(d) <= level:
        return replace(found, verdict=Verdict.BETTER if d.value > 0 else Verdict.WORSE)
    reason = Reason(code="too-noisy", message="the difference is within the spread between starts")
    return replace(found, verdict=Verdict.UNDECIDED, reasons=(reason,))


def _interval(d: Difference) -> tuple[float, float] | None:
    if d.df <= 0 or not d.se > 0:
        return None
    low, high = d.interval()
    return math.expm1(low), math.expm1(min(high, 700.0))


def _rows(estimates: Sequence[Estimate], side: str) -> np.ndarray:
    columns = [getattr(e, side).values for e in estimates]
    shortest = min(map(len, columns))
    return np.array([column[:shortest] for column in columns]).T


def _centres(estimates: Sequence[Estimate], side: str) -> np.ndarray:
    return np.array([[getattr(e, side).centre for e in estimates]])
