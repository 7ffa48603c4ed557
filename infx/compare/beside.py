"""What stands beside the cells of a comparison: curve figures, coverage, drift, and rungs that say nothing new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infx.compare.ab import Drift, drifts, is_ab
from infx.compare.coverage import Coverage, coverage
from infx.compare.estimate import Estimate
from infx.compare.frontier import X_AXIS, Y_AXIS, CurveFigure, figures, indistinguishable, saturated
from infx.compare.verdict import Comparison, labels_by_curve, open_cell
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
    return Beside(tuple(figures(comparison)), tuple(coverage(first, second)), tuple(rungs(comparison)), tuple(drift))


def rungs(comparison: Comparison, x: str = X_AXIS, y: str = Y_AXIS) -> list[Rungs]:
    """Indistinguishable and saturated rungs of both sides' curves, over the points that can be compared."""
    first, second, options = comparison.first, comparison.second, comparison.options
    found = []
    for curve, labels in labels_by_curve(first, second).items():
        cells = [(label, *(open_cell(label, metric, first, second, options) for metric in (x, y))) for label in labels]
        good = [(label, a, b) for label, a, b in cells if isinstance(a, Estimate) and isinstance(b, Estimate)]
        spreads = [[cell[i].spread() for cell in good] for i in (1, 2)]
        for side, name in (("first", first.name), ("second", second.name)):
            points = [(getattr(a, side).centre, getattr(b, side).centre) for _, a, b in good]
            found += [Rungs(curve, name, "indistinguishable", (good[i][0], good[j][0]))
                      for i, j in indistinguishable(*spreads, points)]
            full = saturated([point[1] for point in points])
            if full:
                found.append(Rungs(curve, name, "saturated", tuple(good[i][0] for i in full)))
    return found
