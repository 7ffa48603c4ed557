"""Per-request formulas against figures worked out by hand."""

import math

import numpy as np
import pytest

from infx.measure.columns import CountSource, Outcome
from infx.measure.request import gaps, per_request, weighted_quantile


def test_five_chunks_of_four_tokens(table_of) -> None:  # P4
    table = table_of({"sent": 0, "reads": [(50 + 100 * i, 4) for i in range(5)]})
    each = per_request(table)
    assert each.ttft_ms[0] == 50
    assert each.e2el_ms[0] == 450
    assert each.tpot_ms[0] == 400 / 16  # the true step: 25 ms
    assert each.tpot_common_ms[0] == pytest.approx(400 / 19)
    assert each.e2el_per_token_ms[0] == 450 / 20
    found = gaps(table)
    assert list(found.gap_ms) == [100, 100, 100, 100]
    assert list(found.gap_ms / found.tokens) == [25, 25, 25, 25]


def test_an_uneven_first_read_does_not_bias_tpot(table_of) -> None:
    each = per_request(table_of({"reads": [(10, 7), (20, 1), (30, 1)]}))
    assert each.tpot_ms[0] == 10
    assert each.tpot_common_ms[0] == 20 / 8


@pytest.mark.parametrize(
    "reads", [[(10, 1)], [(10, 20)], []], ids=["one token", "one read of twenty", "nothing"]
)  # fmt: skip
def test_one_read_has_no_tpot(table_of, reads: list) -> None:  # P14: no division by zero, no 10000
    assert math.isnan(per_request(table_of({"reads": reads})).tpot_ms[0])


def test_unknown_spread_has_no_tpot_but_the_common_formula(table_of) -> None:
    table = table_of({"reads": [(10, -1), (30, -1)], "output_tokens": 11, "count_source": CountSource.USAGE_FINAL})
    each = per_request(table)
    assert math.isnan(each.tpot_ms[0])
    assert each.tpot_common_ms[0] == 2.0
    assert gaps(table).spread_unknown == 1


def test_open_loop_latency_counts_from_the_schedule(table_of) -> None:  # P9
    table = table_of({"sent": 1000, "late": 900, "reads": [(1100, 1), (1200, 1)]})
    closed, opened = per_request(table), per_request(table, from_scheduled=True)
    assert (closed.ttft_ms[0], opened.ttft_ms[0]) == (100, 1000)
    assert (closed.e2el_ms[0], opened.e2el_ms[0]) == (200, 1100)
    assert closed.delay_ms[0] == opened.delay_ms[0] == 900


def test_failed_requests_have_no_latency_and_cut_ones_only_a_first_token(table_of) -> None:
    table = table_of(
        {"reads": [(5, 1), (9, 1)], "outcome": Outcome.ERROR_EVENT},
        {"reads": [(5, 1), (9, 1)], "outcome": Outcome.CUT},
        {"reads": [], "outcome": Outcome.TIMEOUT},
    )
    each = per_request(table)
    assert np.isnan(each.e2el_ms).all()
    assert np.isnan(each.tpot_ms).all()
    assert math.isnan(each.ttft_ms[0])
    assert each.ttft_ms[1] == 5
    assert list(each.censored) == [False, True, True]


def test_gaps_do_not_cross_requests(table_of) -> None:
    table = table_of(
        {"reads": [(0, 1), (10, 1)]}, {"reads": []}, {"reads": [(500, 1)]}, {"reads": [(700, 1), (703, 3)]}
    )  # fmt: skip
    found = gaps(table)
    assert list(found.gap_ms) == [10, 3]
    assert list(found.tokens) == [1, 3]


def test_weighted_quantile_is_the_inverse_of_the_weighted_distribution() -> None:
    values, weights = np.array([5.0, 1.0, 3.0]), np.array([1, 8, 1])
    assert weighted_quantile(values, weights, 0.5) == 1
    assert weighted_quantile(values, weights, 0.8) == 1
    assert weighted_quantile(values, weights, 0.81) == 3
    assert weighted_quantile(values, weights, 0.99) == 5
