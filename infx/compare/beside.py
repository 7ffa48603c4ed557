"""What stands beside the cells of a comparison: curve figures, coverage, drift, and rungs that say nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from infx.compare.ab import Drift, drifts, is_ab
from infx.compare.coverage import Coverage, coverage
from infx.compare.frontier import (
    X_AXIS,
    Y_AXIS,
    Axes,
    CurveFigure,
    axes_of_curves,
    figures,
    indistinguishable,
    saturated,
)
from infx.compare.verdict import Comparison
from infx.schema.metrics import METRICS


@dataclass(frozen=True, slots=True)
class Rungs:
    """Rungs of one side's curve that say nothing new.

    ``indistinguishable``: closer to each other than noise on both axes; ``saturated``: no more throughput than a
    rung below.
    """

    curve: str
    side: str
    kind: Literal["indistinguishable", "saturated"]
    labels: tuple[str, ...]

    def sentence(self) -> str:
        """The rungs in one line."""
        axes = f"{METRICS[Y_AXIS].title} and {METRICS[X_AXIS].title}"
        if self.kind == "indistinguishable":
            return f"{self.side}: {' and '.join(self.labels)} are closer to each other than noise in {axes}"
        return f"{self.side}: {', '.join(self.labels)} buy no more {METRICS[Y_AXIS].title} than a rung below"


@dataclass(frozen=True, slots=True)
class Beside:
    """All that is shown beside the cells."""

    figures: tuple[CurveFigure, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    rungs: tuple[Rungs, ...] = ()
    drifts: tuple[Drift, ...] = ()

    def sentences(self) -> list[str]:
        """Coverage where it changed, then rungs, then drift, a line each."""
        covered = [f"coverage, {c.sentence()}" for c in self.coverage if c.narrower or c.added]
        return [*covered, *(r.sentence() for r in self.rungs), *(d.sentence() for d in self.drifts)]


def beside(comparison: Comparison) -> Beside:
    """What stands beside a comparison; drift of its first metric where the sides are arms of one interleaved run."""
    first, second = comparison.first, comparison.second
    drift = drifts(first, second, comparison.options.metrics[0]) if is_ab(first, second) else []
    axes = axes_of_curves(comparison)
    return Beside(tuple(figures(axes)), tuple(coverage(first, second)), tuple(rungs(axes, first.name, second.name)),
                  tuple(drift))


def rungs(curves: Sequence[Axes], first: str, second: str) -> list[Rungs]:
    """Indistinguishable and saturated rungs of both sides' curves (the sides by name), over the comparable points."""
    found = []
    for axes in curves:
        spreads = [[e.spread() for e in estimates] for estimates in (axes.xs, axes.ys)]
        for side, name in (("first", first), ("second", second)):
            points = [(getattr(a, side).centre, getattr(b, side).centre) for a, b in zip(axes.xs, axes.ys, strict=True)]
            found += [Rungs(axes.curve, name, "indistinguishable", (axes.labels[i], axes.labels[j]))
                      for i, j in indistinguishable(*spreads, points)]
            full = saturated([point[1] for point in points])
            if full:
                found.append(Rungs(axes.curve, name, "saturated", tuple(axes.labels[i] for i in full)))
    return found
