"""Family-wise p-values: exact where an exact answer is known, honest where points share a start's effect."""

import numpy as np
import pytest
from scipy import stats

from infx.measure.stats.family import (
    cosines,
    family_p_differs,
    family_p_equivalent,
    holm,
    raw_p,
    rotations,
    step_down,
)


def _curves(rng, seeds, starts, points, between, within, effect=0.0):
    table = between * rng.standard_normal((seeds, 2 * starts, 1))
    table = table + within * rng.standard_normal((seeds, 2 * starts, points))
    table[:, starts:] += effect
    return table


def test_holm_by_hand():
    assert holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])


def test_one_column_is_the_t_test():
    rng = np.random.default_rng(1)
    table = rng.standard_normal((7, 1))
    assert family_p_differs(table, 3)[0] == pytest.approx(stats.ttest_ind(table[:3, 0], table[3:, 0]).pvalue)
    low, high = np.array([-2.0]), np.array([2.0])
    upper = stats.ttest_ind(table[3:, 0] - 2, table[:3, 0], alternative="less").pvalue
    lower = stats.ttest_ind(table[3:, 0] + 2, table[:3, 0], alternative="greater").pvalue
    assert family_p_equivalent(table, 3, low, high)[0] == pytest.approx(max(upper, lower))


def test_copies_of_one_column_cost_nothing_and_independent_ones_cost_what_sidak_says():
    rng = np.random.default_rng(2)
    base = rng.standard_normal((12, 1))
    base[6:] += 1.6
    own = stats.ttest_ind(base[:6, 0], base[6:, 0]).pvalue
    copies = family_p_differs(np.repeat(base, 10, axis=1), 6)
    assert copies == pytest.approx(np.full(10, own), abs=0.01)
    apart = np.concatenate([base, rng.standard_normal((12, 9))], axis=1)
    assert family_p_differs(apart, 6)[0] == pytest.approx(1 - (1 - own) ** 10, rel=0.35)


def test_p_values_never_fall_below_the_points_own():
    rng = np.random.default_rng(3)
    table = rng.standard_normal((4, 6)) + np.array([0, 0, 9, 9])[:, None]
    cosine, unit = cosines(table, 2)
    assert (step_down(cosine, unit, two_sided=True) >= raw_p(cosine, 4, two_sided=True)).all()


def test_scale_and_offset_of_a_column_do_not_matter():
    rng = np.random.default_rng(4)
    table = rng.standard_normal((6, 5))
    moved = table * np.array([1, 5, 0.1, 1e4, 2]) + 7
    assert family_p_differs(moved, 3) == pytest.approx(family_p_differs(table, 3))


def test_a_column_without_spread_says_nothing():
    table = np.random.default_rng(5).standard_normal((6, 3))
    table[:, 1] = 4.2
    p = family_p_differs(table, 3)
    assert p[1] == 1.0
    assert p[0] < 1.0


def test_rotations_are_uniform_and_repeatable():
    drawn = rotations(5, 20_000)
    assert np.allclose(drawn.sum(axis=1), 0)
    assert np.allclose((drawn**2).mean(axis=0), 0.2, atol=0.01)
    assert rotations(5, 20_000) is drawn


@pytest.mark.parametrize("between", [0.005, 0.02, 0.04])
@pytest.mark.parametrize("starts", [2, 3])
def test_null_curves_are_rarely_called_different(between, starts):  # P54, P55
    rng = np.random.default_rng(6)
    table = _curves(rng, 800, starts, 12, between, 0.003)
    wrong = (family_p_differs(table, starts, 999) <= 0.05).any(axis=1).mean()
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 800)
    naive = (raw_p(cosines(table, starts)[0], 2 * starts, two_sided=True) <= 0.05).any(axis=1).mean()
    assert naive > wrong


def test_points_without_a_gain_stay_safe_beside_points_with_one():
    rng = np.random.default_rng(7)
    effect = np.array([0.3, 0.3, 0.2] + [0.0] * 9)
    p = family_p_differs(_curves(rng, 800, 3, 12, 0.005, 0.003, effect), 3, 999)
    assert (p[:, 3:] <= 0.05).any(axis=1).mean() <= 0.075
    assert (p[:, :3] <= 0.05).mean() > 0.95


def test_differences_on_the_margin_are_rarely_called_same():
    rng = np.random.default_rng(8)
    low, high = np.full(8, np.log1p(-0.02)), np.full(8, np.log1p(0.02))
    table = _curves(rng, 800, 3, 8, 0.005, 0.003, np.log1p(0.02))
    assert (family_p_equivalent(table, 3, low, high, 999) <= 0.05).any(axis=1).mean() <= 0.075
    none = _curves(rng, 800, 4, 8, 0.005, 0.003)
    assert (family_p_equivalent(none, 4, low, high, 999) <= 0.05).mean() > 0.8
