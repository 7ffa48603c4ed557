"""Student's t, normal, binomial and chi-square in numpy alone: what intervals, tests and planning need.

The incomplete beta function follows the continued fraction of Abramowitz and Stegun 26.5.8, evaluated by
Lentz's method as in Press et al., Numerical Recipes, 6.4. Tests hold every function against scipy.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

_TINY = 1e-300
_STEPS = 400
_NORMAL = NormalDist()
_lgamma = np.vectorize(math.lgamma, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def normal_cdf(x: np.ndarray | float) -> np.ndarray:
    """P(Z <= x) of a standard normal; any shape."""
    return 0.5 * _erfc(-np.asarray(x, dtype=float) / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """The x with P(Z <= x) = p, 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


def beta_cdf(x: np.ndarray | float, a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """Regularised incomplete beta I_x(a, b), broadcast; 0 <= x <= 1, a and b positive."""
    x, a, b = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (x, a, b)))
    swap = x > (a + 1.0) / (a + b + 2.0)
    u, p, q = np.where(swap, 1.0 - x, x), np.where(swap, b, a), np.where(swap, a, b)
    with np.errstate(divide="ignore"):
        front = p * np.log(u) + q * np.log1p(-u) - np.log(p) - (_lgamma(p) + _lgamma(q) - _lgamma(p + q))
    value = np.where(u <= 0.0, 0.0, np.exp(front) * _beta_fraction(u, p, q))
    return np.clip(np.where(swap, 1.0 - value, value), 0.0, 1.0)


def _beta_fraction(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.ones_like(x)
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    total = d.copy()
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            step = d * c
            total = total * step
        if np.all(np.abs(step - 1.0) < 1e-15):
            break
    return total


def _away_from_zero(value: np.ndarray) -> np.ndarray:
    return np.where(np.abs(value) < _TINY, _TINY, value)


def t_tail(t: np.ndarray | float, df: np.ndarray | float) -> np.ndarray:
    """P(T > t) of Student's t with ``df`` > 0 degrees of freedom (real), broadcast; exact in the tail."""
    t, df = np.broadcast_arrays(np.asarray(t, dtype=float), np.asarray(df, dtype=float))
    square = np.where(np.isinf(t), np.inf, t * t)
    half = 0.5 * beta_cdf(df / (df + square), df / 2.0, 0.5)
    return np.where(t >= 0, half, 1.0 - half)


def t_cdf(t: np.ndarray | float, df: np.ndarray | float) -> np.ndarray:
    """P(T <= t) of Student's t with ``df`` > 0 degrees of freedom, broadcast."""
    return t_tail(-np.asarray(t, dtype=float), df)


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = p; 0 < p < 1, df > 0. Bisection on the logarithm of t, to 1e-12 relative."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"a probability between 0 and 1, not {p}")
    if p == 0.5:
        return 0.0
    tail = min(p, 1.0 - p)
    low, high = -35.0, 80.0
    while high - low > 1e-12:
        # sixteen sections a round: the incomplete beta is evaluated once for all of them
        grid = np.linspace(low, high, 17)
        above = t_tail(np.exp(grid), df) > tail
        last = int(np.flatnonzero(above)[-1]) if above.any() else 0
        low, high = float(grid[last]), float(grid[min(last + 1, 16)])
    return math.copysign(math.exp(0.5 * (low + high)), p - 0.5)


def chi2_grid(df: float, nodes: int = 801) -> tuple[np.ndarray, np.ndarray]:
    """Values of sqrt(chi-square / df) and weights that sum to 1, to integrate over an estimated spread.

    The logarithm of the chi-square is spread evenly over 14 standard deviations of its own (Wilson and Hilferty's
    normal approximation of the cube root sets the range), weighted by the exact density.
    """
    spread = math.sqrt(2.0 / (9.0 * df))
    low = max(1.0 - 2.0 / (9.0 * df) - 9.0 * spread, 1e-4) ** 3
    high = (1.0 - 2.0 / (9.0 * df) + 9.0 * spread) ** 3
    logs = np.linspace(math.log(low * df), math.log(high * df), nodes)
    density = 0.5 * df * logs - 0.5 * np.exp(logs)
    weights = np.exp(density - density.max())
    return np.sqrt(np.exp(logs) / df), weights / weights.sum()


def binomial_cdf(n: int, p: float) -> np.ndarray:
    """P(X <= k) for k = 0 … n of a binomial(n, p), as an array of n + 1; 0 < p < 1."""
    k = np.arange(n + 1)
    # lgamma(i + 1) is the running sum of log i
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    pmf = np.exp(logs[n] - logs[k] - logs[n - k] + k * math.log(p) + (n - k) * math.log1p(-p))
    return np.minimum(np.cumsum(pmf), 1.0)
