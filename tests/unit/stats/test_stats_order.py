"""Intervals of percentiles and of dependent series: ranks by hand, coverage by simulation."""

import numpy as np
import pytest
from scipy import stats

from infx.measure.stats.dependent import batch_means, batch_rate, block_bootstrap
from infx.measure.stats.order import dependent_quantile_interval, least_n, quantile_interval


def test_least_n_of_the_methodology():
    assert (least_n(0.90), least_n(0.99), least_n(0.5)) == (36, 368, 6)
    with pytest.raises(ValueError, match="between 0 and 1"):
        least_n(1.0)


@pytest.mark.parametrize(("q", "n"), [(0.9, 36), (0.99, 368), (0.5, 6)])
def test_both_ends_exist_from_least_n_on(q, n):  # P18
    values = np.arange(1.0, n + 1)
    enough, few = quantile_interval(values, q), quantile_interval(values[:-1], q)
    assert enough.low is not None
    assert enough.high == float(n)
    assert few.high is None


@pytest.mark.parametrize(("q", "n"), [(0.5, 25), (0.9, 100), (0.5, 100), (0.99, 2000)])
def test_ranks_hold_the_confidence_and_are_not_needlessly_wide(q, n):
    interval = quantile_interval(np.arange(1.0, n + 1), q)
    low, high = int(interval.low), int(interval.high)
    assert stats.binom.cdf(low - 1, n, q) <= 0.025 < stats.binom.cdf(low, n, q)
    assert stats.binom.sf(high - 1, n, q) <= 0.025 < stats.binom.sf(high - 2, n, q)


def test_a_large_sample_uses_the_normal_limit():
    n = 40_000
    interval = quantile_interval(np.arange(1.0, n + 1), 0.9)
    exact = stats.binom.ppf([0.025, 0.975], n, 0.9)
    assert [interval.low, interval.high] == pytest.approx(list(exact), abs=3)


def _autoregressive(rng, runs, n, phi):
    noise = rng.standard_normal((runs, n))
    series = np.empty_like(noise)
    series[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for i in range(1, n):
        series[:, i] = phi * series[:, i - 1] + noise[:, i]
    return series


def test_intervals_of_dependent_series_cover():
    rng = np.random.default_rng(3)
    series = _autoregressive(rng, 400, 600, 0.7)
    sd = 1 / np.sqrt(1 - 0.49)
    covered = {"mean": 0, "median": 0, "naive": 0, "bootstrap": 0}
    for row in series:
        mean, median = batch_means(row), dependent_quantile_interval(row, 0.8)
        naive = quantile_interval(row, 0.8)
        boot = block_bootstrap(row, lambda x: x.mean(axis=1), block=25, replicates=200)
        truth = stats.norm.ppf(0.8) * sd
        covered["mean"] += mean.low <= 0 <= mean.high
        covered["median"] += median.low <= truth <= median.high
        covered["naive"] += naive.low <= truth <= naive.high
        covered["bootstrap"] += boot.low <= 0 <= boot.high
    share = {name: count / 400 for name, count in covered.items()}
    assert share["mean"] >= 0.91
    assert share["median"] >= 0.91
    assert share["bootstrap"] >= 0.87
    assert share["naive"] < 0.85, "the check is void if dependence does no harm"


def test_batch_means_by_hand():
    interval = batch_means(np.array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), batches=3)
    half = stats.t.ppf(0.975, 2) * 1.0 / np.sqrt(3)
    assert (interval.value, interval.low, interval.high) == pytest.approx((2.0, 2 - half, 2 + half))
    short = batch_means(np.array([5.0, 6.0, 7.0]))
    assert (short.low, short.high, short.n) == (None, None, 3)
    assert interval.half_width() == pytest.approx(half / 2)


def test_batch_rate_counts_the_window_alone():
    times = np.arange(0, 100, 0.5)
    interval = batch_rate(times, np.full(200, 3.0), 10.0, 60.0, batches=10)
    assert interval.value == pytest.approx(6.0)
    assert interval.n == 100
    assert interval.low == pytest.approx(6.0)
    with pytest.raises(ValueError, match="empty"):
        batch_rate(times, times, 5.0, 5.0)
