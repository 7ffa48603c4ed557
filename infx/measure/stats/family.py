"""Many statements about one curve: p-values that stay honest when the points of a start share its effect.

The rows are engine starts, independent of each other; the columns (points × metrics) may depend on each other in any
way. Under the null the rows' contrast space is rotation invariant, so that the largest statistic of all columns has
a distribution that can be drawn exactly, given the data, even with more columns than rows: a rotation test. Step
down as Westfall and Young do, the family-wise error holds strongly. Sources: Langsrud, Rotation tests, Statistics and
Computing 15, 2005; Westfall and Young, Resampling-based multiple testing, 1993. It assumes normal rows with one
spread for both arms. A table with holes falls back to Holm's method.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from infx.measure.stats.distributions import t_tail

ROTATIONS = 9_999
SEED = 20_241


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment of ``p`` (1-d): valid under any dependence. Source: Holm, 1979."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def effect_direction(first: int, second: int) -> np.ndarray:
    """Unit vector of "second arm minus first" for ``first`` rows followed by ``second`` rows."""
    total = first + second
    scale = math.sqrt(first * second / total)
    return np.concatenate([np.full(first, -scale / first), np.full(second, scale / second)])


@lru_cache(maxsize=8)
def rotations(rows: int, count: int = ROTATIONS, seed: int = SEED) -> np.ndarray:
    """``count`` unit vectors (count, rows), uniform in the space orthogonal to the mean; always the same ones."""
    drawn = np.random.default_rng(seed).standard_normal((count, rows))
    drawn -= drawn.mean(axis=1, keepdims=True)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def cosines(table: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Direction cosine of the effect for each column, and the unit columns it was taken from.

    ``table``: (…, rows, columns), the first ``first`` rows of one arm. A column without any spread has cosine 0.
    The t statistic is cosine × sqrt(rows − 2) ÷ sqrt(1 − cosine²).
    """
    centred = table - table.mean(axis=-2, keepdims=True)
    # a constant column leaves rounding errors after centring: they are no spread
    length = np.linalg.norm(centred, axis=-2, keepdims=True)
    real = length > 1e-12 * (1.0 + np.abs(table).max(axis=-2, keepdims=True))
    unit = np.where(real, centred / np.where(real, length, 1.0), 0.0)
    direction = effect_direction(first, table.shape[-2] - first)
    return np.clip(np.einsum("r,...rc->...c", direction, unit), -1.0, 1.0), unit


def raw_p(cosine: np.ndarray, rows: int, *, two_sided: bool) -> np.ndarray:
    """Student's t p-values of direction cosines (any shape) with rows − 2 degrees of freedom."""
    df = rows - 2
    with np.errstate(divide="ignore"):
        t = cosine * math.sqrt(df) / np.sqrt(np.maximum(1.0 - cosine * cosine, 0.0))
    return np.minimum(1.0, 2.0 * t_tail(np.abs(t), df)) if two_sided else t_tail(t, df)


def step_down(cosine: np.ndarray, unit: np.ndarray, *, two_sided: bool, count: int = ROTATIONS) -> np.ndarray:
    """Family-wise p-values (…, columns) of direction cosines by rotation, stepping down from the largest.

    ``unit``: (…, rows, columns) as ``cosines`` gives it. One-sided tests reject for large cosines. Never below the
    column's own p-value.
    """
    rows, columns = unit.shape[-2:]
    own = raw_p(cosine, rows, two_sided=two_sided)
    if columns == 1:
        return own
    seen = np.abs(cosine) if two_sided else cosine
    drawn = np.matmul(rotations(rows, count), unit)
    if two_sided:
        np.abs(drawn, out=drawn)
    order = np.argsort(-seen, axis=-1, kind="stable")
    drawn = np.take_along_axis(drawn, order[..., None, :], axis=-1)
    # the largest of what remains: a running maximum from the least to the greatest statistic
    remaining = np.maximum.accumulate(drawn[..., ::-1], axis=-1)[..., ::-1]
    ranked = np.take_along_axis(seen, order, axis=-1)
    hits = (remaining >= ranked[..., None, :] - 1e-12).sum(axis=-2)
    steps = np.maximum.accumulate((hits + 1.0) / (count + 1.0), axis=-1)
    adjusted = np.empty_like(steps)
    np.put_along_axis(adjusted, order, steps, axis=-1)
    return np.maximum(adjusted, own)


def family_p_differs(table: np.ndarray, first: int, count: int = ROTATIONS) -> np.ndarray:
    """Family-wise two-sided p-values of "no difference" for each column of (…, rows, columns)."""
    cosine, unit = cosines(table, first)
    return step_down(cosine, unit, two_sided=True, count=count)


def family_p_equivalent(
    table: np.ndarray, first: int, low: np.ndarray, high: np.ndarray, count: int = ROTATIONS
) -> np.ndarray:
    """Family-wise p-values of "at ``low`` or below, or at ``high`` or above" for each column: two one-sided families.

    ``low`` and ``high``: (columns,), on the table's scale. Both families are held at the level; a false "same" needs
    the one on whose side the truth lies, so that the error is the level unless true differences sit on both margins.
    """
    second = (np.arange(table.shape[-2]) >= first)[:, None]
    upper, upper_unit = cosines(table - second * high, first)
    lower, lower_unit = cosines(table - second * low, first)
    below = step_down(-upper, -upper_unit, two_sided=False, count=count)
    above = step_down(lower, lower_unit, two_sided=False, count=count)
    return np.maximum(below, above)
