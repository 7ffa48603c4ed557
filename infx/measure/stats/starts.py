"""Estimates whose unit is an engine start: an arm's mean, the difference of two arms, superiority, equivalence.

Everything here works on whatever scale it is given; comparisons give logarithms, so that a difference is a ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from infx.measure.stats.distributions import t_quantile, t_tail


@dataclass(frozen=True, slots=True)
class Spread:
    """A start-to-start standard deviation and the degrees of freedom behind it (0: unknown)."""

    sd: float
    df: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Second arm minus first, its standard error and the degrees of freedom of that error."""

    value: float
    se: float
    df: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's t interval of the difference; infinite without degrees of freedom."""
        if self.df <= 0:
            return -math.inf, math.inf
        half = t_quantile(1.0 - (1.0 - confidence) / 2.0, self.df) * self.se
        return self.value - half, self.value + half


def pooled_spread(groups: list[np.ndarray]) -> Spread:
    """Standard deviation within groups of starts, pooled over the groups (each a 1-d array of any length)."""
    squares = sum(float(((g - g.mean()) ** 2).sum()) for g in groups if len(g))
    df = sum(len(g) - 1 for g in groups if len(g))
    return Spread(math.sqrt(squares / df), df) if df > 0 else Spread(math.nan, 0)


def difference(first: np.ndarray, second: np.ndarray, floor: Spread | None = None) -> Difference:
    """Mean of ``second`` minus mean of ``first`` (values of starts, 1-d, each at least one).

    The spread is pooled over both arms; ``floor``, a stored spread, stands in only when the starts at hand leave
    no degree of freedom. Without either the error is unknown (se NaN, df 0).
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    spread = pooled_spread([first, second])
    if spread.df == 0 and floor is not None:
        spread = floor
    se = spread.sd * math.sqrt(1.0 / len(first) + 1.0 / len(second))
    return Difference(float(second.mean() - first.mean()), se, spread.df)


def mean_interval(values: np.ndarray, floor: Spread | None = None, confidence: float = 0.95) -> tuple[float, float]:
    """Student's t interval of an arm's mean over its starts; infinite for one start without a floor."""
    values = np.asarray(values, dtype=float)
    spread = pooled_spread([values])
    if spread.df == 0 and floor is not None:
        spread = floor
    return Difference(float(values.mean()), spread.sd / math.sqrt(len(values)), spread.df).interval(confidence)


def variance_parts(values: np.ndarray, within_se: np.ndarray) -> tuple[float, float]:
    """(between-start sd, within-start sd): method of moments, the between part never negative.

    ``values``: one a start; ``within_se``: the standard error of each within its start. Two starts at least.
    """
    within = float(np.mean(np.square(within_se)))
    total = float(np.var(np.asarray(values, dtype=float), ddof=1))
    return math.sqrt(max(total - within, 0.0)), math.sqrt(within)


def p_differs(d: Difference) -> float:
    """Two-sided p of "there is no difference"; 1 when the error is unknown or there is no spread at all."""
    if d.df <= 0 or not d.se > 0:
        return 1.0
    return float(min(1.0, 2.0 * t_tail(abs(d.value) / d.se, d.df)))


def p_equivalent(d: Difference, low: float, high: float) -> float:
    """p of "the difference is at ``low`` or below, or at ``high`` or above" (two one-sided tests).

    Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987. 1 when the error is unknown.
    """
    if d.df <= 0 or not d.se > 0:
        return 1.0
    below = t_tail((high - d.value) / d.se, d.df)
    above = t_tail((d.value - low) / d.se, d.df)
    return float(max(below, above))
