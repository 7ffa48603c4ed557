"""Start-level estimates, tests and planning against scipy and against the methodology's figures."""

import math

import numpy as np
import pytest
from scipy import stats

from infx.measure.stats import sequential
from infx.measure.stats.power import (
    LEARNING,
    Question,
    critical_value,
    gain_power,
    margin_power,
    smallest_gain,
    starts_for_gain,
    starts_for_margin,
    superiority_power,
)
from infx.measure.stats.starts import Spread, difference, mean_interval, p_differs, p_equivalent, variance_parts

A = np.array([1.00, 1.02, 0.99])
B = np.array([1.05, 1.04, 1.08, 1.06])


def test_difference_is_the_pooled_t_test():
    d = difference(A, B)
    oracle = stats.ttest_ind(B, A)
    interval = oracle.confidence_interval()
    assert d.df == 5
    assert p_differs(d) == pytest.approx(oracle.pvalue, rel=1e-9)
    assert d.interval() == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_equivalence_is_two_one_sided_tests():
    d = difference(A, B)
    upper = stats.ttest_ind(B - 0.1, A, alternative="less").pvalue
    lower = stats.ttest_ind(B + 0.1, A, alternative="greater").pvalue
    assert p_equivalent(d, -0.1, 0.1) == pytest.approx(max(upper, lower), rel=1e-9)


def test_one_start_each_knows_no_error_without_a_floor():
    alone = difference(A[:1], B[:1])
    assert alone.df == 0
    assert alone.interval() == (-math.inf, math.inf)
    assert (p_differs(alone), p_equivalent(alone, -9, 9)) == (1.0, 1.0)
    floored = difference(A[:1], B[:1], Spread(0.01, 8))
    assert floored.se == pytest.approx(0.01 * math.sqrt(2))
    assert p_differs(floored) == pytest.approx(2 * stats.t.sf(0.05 / floored.se, 8))


def test_a_floor_never_replaces_a_spread_at_hand():
    assert difference(A, B, Spread(9.0, 100)) == difference(A, B)


def test_mean_interval_and_parts_of_variance():
    low, high = mean_interval(A)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, A.mean(), stats.sem(A)))
    between, within = variance_parts(A, np.array([0.01, 0.01, 0.01]))
    assert within == pytest.approx(0.01)
    assert between == pytest.approx(math.sqrt(np.var(A, ddof=1) - 1e-4))


@pytest.mark.parametrize(("sd", "starts"), [(0.005, 3), (0.01, 6), (0.02, 18), (0.04, 70)])
def test_starts_for_a_margin_of_two_percent(sd, starts):
    assert starts_for_margin(0.02, Question(sd)) == starts


def test_starts_for_a_gain_of_five_percent():
    assert starts_for_gain(0.05, Question(0.02)) <= 6
    assert starts_for_gain(0.05, Question(0.04)) == 12
    assert starts_for_gain(0.05, Question(0.02, statements=28)) > starts_for_gain(0.05, Question(0.02))
    assert starts_for_gain(0.0001, Question(0.04)) is None


def test_power_of_superiority_agrees_with_the_noncentral_t():
    critical = stats.t.ppf(0.975, 22)
    oracle = stats.nct.sf(critical, 22, math.log(1.05) / 0.04 / math.sqrt(1 / 6))
    assert superiority_power(math.log(1.05), 0.04, 12, critical) == pytest.approx(oracle, abs=1e-6)


def test_smallest_gain_is_found_with_the_power_it_was_asked_for():
    question = Question(0.02)
    gain = smallest_gain(6, question)
    critical = critical_value(question, 6, two_sided=True)
    assert superiority_power(math.log1p(gain), 0.02, 6, critical) == pytest.approx(0.8, abs=1e-6)
    assert smallest_gain(1, question) is None


def test_critical_value_of_a_curve_lies_between_one_statement_and_bonferroni():
    one = critical_value(Question(0.02), 6, two_sided=True)
    shared = critical_value(Question(0.02, statements=28, shared=0.98), 6, two_sided=True)
    apart = critical_value(Question(0.02, statements=28, shared=0.0), 6, two_sided=True)
    assert one < shared < apart < stats.t.ppf(1 - 0.025 / 28, 10) * 1.01


def test_looks_are_paid_for():
    assert [sequential.looks(n) for n in (2, 3, 4, 5, 6, 12)] == [(2,), (3,), (4,), (3, 5), (3, 4, 6), (4, 8, 12)]
    for n in (2, 5, 6, 12, 70):
        levels = sequential.look_levels(sequential.looks(n))
        assert sum(levels) == pytest.approx(0.05)
        assert levels[-1] >= 0.04
        assert all(level > 0 for level in levels)


@pytest.mark.parametrize(("power", "asked", "starts"), [(gain_power, math.log1p(0.05), 5), (margin_power, 0.02, 28)])
def test_all_cells_right_at_once_is_rarer_than_each(power, asked, starts):
    apart, near = ([power(asked, Question(0.02, statements=7, shared=shared, together=t), starts)
                    for t in (False, True)] for shared in (0.0, 0.999))
    assert apart[1] < apart[0] - LEARNING
    assert apart[1] < near[1] - 0.05
    assert near[1] == pytest.approx(near[0] - LEARNING, abs=0.02)
    assert power(asked, Question(0.02, together=True), starts) == power(asked, Question(0.02), starts)


def test_joint_power_of_independent_cells_agrees_with_a_simulation_by_holm():
    rng, n, cells = np.random.default_rng(3), 12, 7
    a, b = (0.02 * rng.standard_normal((4000, n, cells)) for _ in "ab")
    d = b.mean(axis=1) + math.log1p(0.05) - a.mean(axis=1)
    se = np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / n)
    p = 2 * stats.t.sf(np.abs(d / se), 2 * n - 2)
    right = (np.sort(p, axis=1) * (cells - np.arange(cells)) <= 0.05).all(axis=1).mean()
    question = Question(0.02, statements=cells, shared=0.0, together=True)
    assert gain_power(math.log1p(0.05), question, n) + LEARNING == pytest.approx(right, abs=0.02)


def test_a_whole_curve_needs_no_fewer_starts_than_each_of_its_cells():
    curve = [Question(0.02, 28, 0.978, early=True, together=t) for t in (False, True)]
    assert starts_for_margin(0.02, curve[0]) < starts_for_margin(0.02, curve[1])
    assert starts_for_gain(0.05, curve[0]) <= starts_for_gain(0.05, curve[1])
    assert smallest_gain(6, curve[1]) > smallest_gain(6, Question(0.02, early=True))
