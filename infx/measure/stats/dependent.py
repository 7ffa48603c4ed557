"""Means, rates and any statistic of a series whose neighbours depend on each other: batch means, block bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from infx.measure.stats.distributions import t_quantile
from infx.measure.stats.order import Interval


def batch_means(values: np.ndarray, *, batches: int = 20, confidence: float = 0.95) -> Interval:
    """Mean of ``values`` in the order in which they came, with Student's t over means of equal batches.

    ``values``: length n; fewer than 2 × batches use n // 2 batches, and fewer than 4 values have no interval. The
    value is the mean of all; a rest of fewer than ``batches`` values enters it and no batch. Source: Law,
    Simulation Modeling and Analysis, 9.5.3.
    """
    series = np.asarray(values, dtype=float)
    if series.size == 0:
        raise ValueError("no values")
    mean = float(series.mean())
    count = min(batches, series.size // 2)
    if count < 2:
        return Interval(mean, None, None, series.size)
    size = series.size // count
    means = series[: size * count].reshape(count, size).mean(axis=1)
    half = t_quantile(1.0 - (1.0 - confidence) / 2.0, count - 1) * float(means.std(ddof=1)) / math.sqrt(count)
    return Interval(mean, mean - half, mean + half, series.size)


def batch_rate(
    times: np.ndarray, amounts: np.ndarray, opened: float, closed: float, *, batches: int = 20,
    confidence: float = 0.95,
) -> Interval:
    """Amount per unit of time over the window [opened, closed), with Student's t over equal slices of it.

    ``times`` and ``amounts`` have one entry a read (any order); entries outside the window are left out. ``n`` is
    the number of entries inside. Raises ValueError when the window is empty.
    """
    if not closed > opened:
        raise ValueError(f"the window is empty: {opened} … {closed}")
    times, amounts = np.asarray(times, dtype=float), np.asarray(amounts, dtype=float)
    inside = (times >= opened) & (times < closed)
    slot = np.floor((times[inside] - opened) / (closed - opened) * batches).astype(int)
    totals = np.bincount(np.minimum(slot, batches - 1), weights=amounts[inside], minlength=batches)
    rates = totals * batches / (closed - opened)
    value, n = float(amounts[inside].sum() / (closed - opened)), int(inside.sum())
    if n < 2 * batches:
        return Interval(value, None, None, n)
    half = t_quantile(1.0 - (1.0 - confidence) / 2.0, batches - 1) * float(rates.std(ddof=1)) / math.sqrt(batches)
    return Interval(value, value - half, value + half, n)


def block_bootstrap(
    values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], *, block: int | None = None,
    replicates: int = 500, confidence: float = 0.95, seed: int = 0,
) -> Interval:
    """Any ``statistic`` of a dependent series with a moving-block bootstrap interval (percentile ends).

    ``statistic`` maps (replicates, n) to (replicates,). ``block`` defaults to n^(1/3), rounded up; give the
    concurrency when requests in flight together share their fate. Source: Künsch, Annals of Statistics 17, 1989.
    """
    series = np.asarray(values, dtype=float)
    n = series.size
    if n == 0:
        raise ValueError("no values")
    value = float(statistic(series[None, :])[0])
    length = min(block or math.ceil(n ** (1.0 / 3.0)), n)
    if n < 2 * length:
        return Interval(value, None, None, n)
    rng = np.random.default_rng(seed)
    count = math.ceil(n / length)
    drawn = np.empty(replicates)
    step = max(1, 4_000_000 // n)
    for first in range(0, replicates, step):
        rows = min(step, replicates - first)
        starts = rng.integers(0, n - length + 1, size=(rows, count, 1))
        index = (starts + np.arange(length)).reshape(rows, count * length)[:, :n]
        drawn[first : first + rows] = statistic(series[index])
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return Interval(value, float(low), float(high), n)
