"""Distributions in numpy against scipy as oracle."""

import numpy as np
import pytest
from scipy import stats

from infx.measure.stats.distributions import (
    beta_cdf,
    binomial_cdf,
    chi2_grid,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
    t_tail,
)

DFS = (1, 2, 3, 4.5, 10, 22, 138, 10_000)


@pytest.mark.parametrize("df", DFS)
def test_t_quantiles_agree_with_scipy(df):
    for p in (1e-6, 1e-3, 0.025, 0.2, 0.6, 0.95, 0.975, 0.99999):
        assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9)
    assert t_quantile(0.5, df) == 0.0


@pytest.mark.parametrize("df", DFS)
def test_t_tails_agree_with_scipy_far_out(df):
    t = np.array([-40.0, -3.0, -0.1, 0.0, 0.1, 1.0, 2.5, 12.0, 80.0])
    np.testing.assert_allclose(t_tail(t, df), stats.t.sf(t, df), rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(t_cdf(t, df), stats.t.cdf(t, df), rtol=1e-8, atol=1e-300)


def test_incomplete_beta_on_a_grid():
    x = np.linspace(0, 1, 21)[:, None, None]
    a, b = np.array([0.5, 1.0, 3.0, 60.0])[:, None], np.array([0.5, 2.0, 45.0])
    np.testing.assert_allclose(beta_cdf(x, a, b), stats.beta.cdf(x, a, b), atol=1e-12)


def test_normal():
    x = np.array([-6.0, -1.0, 0.0, 0.3, 4.0])
    np.testing.assert_allclose(normal_cdf(x), stats.norm.cdf(x), rtol=1e-12)
    assert normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975), rel=1e-12)


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (36, 0.9), (400, 0.99), (5000, 0.5)])
def test_binomial(n, p):
    np.testing.assert_allclose(binomial_cdf(n, p), stats.binom.cdf(np.arange(n + 1), n, p), rtol=1e-7, atol=1e-14)


@pytest.mark.parametrize("df", [1, 2, 4, 10, 138])
def test_integration_over_an_estimated_spread(df):
    """A t tail is the normal's tail averaged over the spread: the grid must give it back."""
    scale, weights = chi2_grid(df)
    for t in (0.5, 2.0, 4.3):
        assert (weights * (1 - normal_cdf(t * scale))).sum() == pytest.approx(stats.t.sf(t, df), rel=2e-3, abs=1e-6)


def test_a_quantile_needs_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_quantile(1.0, 3)
