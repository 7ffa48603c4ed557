"""Intervals for percentiles from order statistics: free of any assumption on the distribution's shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from infx.measure.stats.distributions import binomial_cdf, normal_quantile, t_quantile


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval; an end is None when the sample cannot bound it."""

    value: float
    low: float | None
    high: float | None
    n: int

    def half_width(self) -> float | None:
        """Half the interval's length ÷ |value|; None without both ends or at value 0."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2.0 / abs(self.value)


def least_n(q: float, confidence: float = 0.95) -> int:
    """Fewest observations with which the interval of quantile ``q`` has both ends: 36 for p90, 368 for p99.

    Both ends exist when max(q, 1 − q)^n <= (1 − confidence) / 2. Raises ValueError outside 0 < q < 1.
    """
    if not 0.0 < q < 1.0:
        raise ValueError(f"a quantile between 0 and 1, not {q}")
    return math.ceil(math.log((1.0 - confidence) / 2.0) / math.log(max(q, 1.0 - q)) - 1e-9)


def quantile(values: np.ndarray, q: float) -> float:
    """The quantile ``q`` by linear interpolation between order statistics (numpy's default, R's type 7)."""
    return float(np.quantile(values, q))


def quantile_interval(values: np.ndarray, q: float, confidence: float = 0.95) -> Interval:
    """Quantile ``q`` of independent ``values`` (any order, length n >= 1) with an order-statistic interval.

    Ranks are the widest that leave at most (1 − confidence) / 2 on each side under binomial(n, q); an end for
    which no rank is left is None. Source: David and Nagaraja, Order Statistics, 7.1.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = ordered.size
    if n == 0:
        raise ValueError("no values")
    tail = (1.0 - confidence) / 2.0
    if n > 20_000:
        half = normal_quantile(1.0 - tail) * math.sqrt(n * q * (1.0 - q))
        return _by_ranks(ordered, q, math.floor(n * q - half), math.ceil(n * q + half) + 1)
    cdf = binomial_cdf(n, q)
    # P(X_(r) > quantile) = P(count <= r − 1): the largest such r, and the smallest s with P(count >= s) <= tail
    below = int(np.searchsorted(cdf, tail, side="right"))
    above = int(np.searchsorted(cdf, 1.0 - tail, side="left")) + 1
    return _by_ranks(ordered, q, below, above)


def dependent_quantile_interval(
    values: np.ndarray, q: float, *, batches: int = 20, confidence: float = 0.95
) -> Interval:
    """Quantile ``q`` of ``values`` in the order in which they came, requests not being independent.

    The count below the quantile has its binomial variance multiplied by what batch means of the indicator
    (value <= quantile) show, never less than 1; Student's t with batches − 1. Fewer than 2 × batches values: the
    independent interval. Source of the idea: Chen and Kelton, quantile estimation by batching, 2006.
    """
    series = np.asarray(values, dtype=float)
    n = series.size
    if n < 2 * batches:
        return quantile_interval(series, q, confidence)
    inflation = indicator_inflation(series <= np.quantile(series, q), batches)
    if inflation <= 1.0:
        return quantile_interval(series, q, confidence)
    half = t_quantile(1.0 - (1.0 - confidence) / 2.0, batches - 1) * math.sqrt(n * q * (1.0 - q) * inflation)
    return _by_ranks(np.sort(series), q, math.floor(n * q - half), math.ceil(n * q + half) + 1)


def indicator_inflation(inside: np.ndarray, batches: int) -> float:
    """Variance of a share over dependent observations ÷ that over independent ones, from batch means."""
    size = inside.size // batches
    means = inside[: size * batches].reshape(batches, size).mean(axis=1)
    share = means.mean()
    independent = share * (1.0 - share) / size
    return float(means.var(ddof=1) / independent) if independent > 0 else 1.0


def _by_ranks(ordered: np.ndarray, q: float, low: int, high: int) -> Interval:
    n = ordered.size
    return Interval(
        value=float(np.quantile(ordered, q)),
        low=float(ordered[low - 1]) if low >= 1 else None,
        high=float(ordered[high - 1]) if high <= n else None,
        n=n,
    )
