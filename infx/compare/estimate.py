"""One cell of a comparison (a point's metric): what both sides measured, on which scale, and how far they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from infx.compare.sides import Measured
from infx.measure.stats.starts import Difference, Spread, difference, mean_interval, pooled_spread
from infx.schema.metrics import METRICS
from infx.schema.result import Reason

Scale = Literal["ratio", "difference"]


@dataclass(frozen=True, slots=True)
class Arm:
    """What one side measured in one cell: values by start (launch order) and their centre with an interval.

    ``centre`` is the geometric mean on the ratio scale, the mean otherwise; ``low`` and ``high`` are the 95 %
    interval over starts, None where starts cannot tell.
    """

    starts: tuple[str, ...]
    values: tuple[float, ...]
    centre: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Both arms of a cell and their difference on the analysis scale (logarithms, where all values are positive)."""

    metric: str
    scale: Scale
    first: Arm
    second: Arm
    diff: Difference
    floor: Spread | None
    margin: float | None

    @property
    def sign(self) -> int:
        """+1 where higher is better, −1 where lower is, 0 where neither is."""
        return {"higher": 1, "lower": -1, "neither": 0}[METRICS[self.metric].better]

    @property
    def change(self) -> float | None:
        """Second ÷ first − 1; None on the difference scale."""
        return math.expm1(self.diff.value) if self.scale == "ratio" else None

    @property
    def improvement(self) -> float | None:
        """The change with the sign of better: positive is an improvement. None without a scale or a better side."""
        return None if self.change is None or self.sign == 0 else self.sign * self.change

    def improvement_interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Interval of the improvement for this cell alone; None where nothing bounds it."""
        if self.scale != "ratio" or self.sign == 0 or self.diff.df <= 0 or not self.diff.se > 0:
            return None
        ends = sorted(self.sign * math.expm1(min(end, 700.0)) for end in self.diff.interval(confidence))
        return ends[0], ends[1]

    def room(self) -> tuple[float, float] | None:
        """The equivalence margin on the analysis scale; None when the metric has none."""
        if self.margin is None:
            return None
        if self.scale == "difference":
            return -self.margin, self.margin
        return math.log1p(-self.margin), math.log1p(self.margin)

    def spread(self) -> Spread:
        """Start-to-start spread behind the difference (of the starts at hand, else the floor's)."""
        n = 1.0 / len(self.first.values) + 1.0 / len(self.second.values)
        return Spread(self.diff.se / math.sqrt(n), self.diff.df)


def estimate(
    metric: str, first: Sequence[Measured], second: Sequence[Measured], *, floor: Spread | None = None,
    margin: float | None = None,
) -> Estimate | Reason:
    """A cell from usable measurements (launch order); a Reason when a value is missing on either side.

    ``margin`` overrides the metric's own relative margin. ``floor`` serves only when the starts leave no degree of
    freedom.
    """
    values = []
    for side, which in ((first, "first"), (second, "second")):
        if not side:
            return Reason(code="no-start", message=f"the {which} side has no usable start of this point")
        found = []
        for m in side:
            value = m.values.get(metric)
            if value is None:
                return Reason(code="no-value", message=f"{m.start} of the {which} side does not report {metric}")
            if value.value is None:
                return Reason(code="no-value", message=f"{m.start} of the {which} side: {value.reason}")
            found.append(value.value)
        values.append(np.array(found))
    return _made(metric, [tuple(m.start for m in side) for side in (first, second)], values, floor, margin)


def shortened(e: Estimate, n: int) -> Estimate:
    """The cell as it stood when each arm had its first ``n`` starts."""
    arms = (e.first, e.second)
    return _made(e.metric, [arm.starts[:n] for arm in arms], [np.array(arm.values[:n]) for arm in arms], None, e.margin)


def _made(
    metric: str, starts: Sequence[tuple[str, ...]], values: Sequence[np.ndarray], floor: Spread | None,
    margin: float | None,
) -> Estimate:
    scale: Scale = "ratio" if min(v.min() for v in values) > 0 else "difference"
    data = [np.log(v) if scale == "ratio" else v for v in values]
    own = METRICS[metric].margin if scale == "ratio" else None
    used = floor if pooled_spread(data).df == 0 and scale == "ratio" else None
    arms = [_arm(names, v, d, scale) for names, v, d in zip(starts, values, data, strict=True)]
    return Estimate(metric, scale, arms[0], arms[1], difference(data[0], data[1], used), used,
                    own if margin is None else margin)


def table_of(estimates: Sequence[Estimate]) -> np.ndarray:
    """Starts × cells on each cell's analysis scale, the first side's starts above the second's."""
    columns = []
    for e in estimates:
        values = np.array([*e.first.values, *e.second.values])
        columns.append(np.log(values) if e.scale == "ratio" else values)
    return np.stack(columns, axis=1)


def aligned(estimates: Sequence[Estimate]) -> bool:
    """Whether a row of ``table_of`` means one start, or starts of unrelated servers, in every cell.

    False when cells have different numbers of starts, or when one start stands in different rows, as it does when a
    point failed in some start of its server.
    """
    shapes = {(len(e.first.values), len(e.second.values)) for e in estimates}
    if len(shapes) != 1:
        return False
    rows: dict[str, int] = {}
    for e in estimates:
        for row, start in enumerate((*e.first.starts, *e.second.starts)):
            if rows.setdefault(start, row) != row:
                return False
    return True


def _arm(starts: tuple[str, ...], values: np.ndarray, data: np.ndarray, scale: Scale) -> Arm:
    low, high = mean_interval(data)
    back = math.exp if scale == "ratio" else float
    centre = float(values[0]) if len(values) == 1 else back(float(data.mean()))
    bounded = math.isfinite(low) and math.isfinite(high) and high < 700
    return Arm(starts, tuple(map(float, values)), centre,
               back(low) if bounded else None, back(high) if bounded else None)
