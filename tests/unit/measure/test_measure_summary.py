"""Values of a point: statistics under their right names, n, intervals, and reasons where there is none."""

import pytest

from infx.measure.columns import CountSource, Outcome
from infx.measure.summary import summarise
from infx.measure.window import Span
from infx.schema.metrics import METRICS

MS = 1_000_000
WINDOW = Span(1, 10_000 * MS)


def good(sent: float, tpot: float, tokens: int = 11, ttft: float = 5) -> dict:
    return {"sent": sent, "reads": [(sent + ttft + tpot * i, 1) for i in range(tokens)]}


def summary(table, **more) -> dict:
    return summarise(table, WINDOW, gpus=more.pop("gpus", 1), concurrency=more.pop("concurrency", 1), **more)


def test_rates_and_inverted_times_have_names_of_their_own(table_of) -> None:  # P15
    made = summary(table_of(good(0, 10), good(200, 10), good(400, 100)))
    assert made["interactivity-at-mean-tpot"].value == pytest.approx(25)
    assert made["interactivity-mean"].value == pytest.approx(70)
    assert made["interactivity-median"].value == pytest.approx(100)
    assert made["tpot-mean"].value == pytest.approx(40)


def test_the_slow_tail_of_a_rate_is_at_p90_of_the_time(table_of) -> None:  # P61
    rates = [10 + 390 * i / 39 for i in range(40)]
    made = summary(table_of(*(good(20 * i, 1000 / rate, 2) for i, rate in enumerate(rates))))
    assert made["interactivity-at-p90-tpot"].value == pytest.approx(1000 / made["tpot-p90"].value)
    assert made["interactivity-at-p90-tpot"].value < 60  # the fast end would be 361
    assert made["interactivity-median"].value == pytest.approx(205)
    low, high = made["interactivity-at-p90-tpot"].low, made["interactivity-at-p90-tpot"].high
    assert low is None or low < made["interactivity-at-p90-tpot"].value < high


@pytest.mark.parametrize(("n", "p90", "p99"), [(10, False, False), (35, False, False), (36, True, False),
                                               (367, True, False), (368, True, True)])  # fmt: skip
def test_percentiles_without_samples_are_suppressed(table_of, n: int, p90: bool, p99: bool) -> None:  # P18
    made = summary(table_of(*(good(i, 10 + i % 7) for i in range(n))))
    for key in ("ttft", "tpot", "e2el"):
        assert (made[f"{key}-p90"].value is not None) is p90
        assert (made[f"{key}-p99"].value is not None) is p99
        assert made[f"{key}-p99"].n == n
    assert made["tpot-p50"].value is not None
    if p90:
        assert made["tpot-p50"].low <= made["tpot-p50"].value <= made["tpot-p50"].high


def test_a_workload_of_one_output_token_has_no_tpot_and_says_why(table_of) -> None:  # P14
    made = summary(table_of(*(good(i, 1, tokens=1) for i in range(5))))
    for name in ("tpot-mean", "interactivity-median", "interactivity-at-p90-tpot", "itl-p50"):
        assert made[name].value is None
        assert made[name].reason
    assert not [name for name in METRICS if "std" in name]


def test_failures_are_counted_and_shown(table_of) -> None:  # P11
    rows = [good(10 * i, 1) | ({"outcome": Outcome.ERROR_EVENT} if i % 20 == 0 else {}) for i in range(100)]
    made = summary(table_of(*rows))
    assert (made["requests-failed"].value, made["requests-ok"].value) == (5, 95)
    assert made["failure-share"].value == 0.05
    assert made["success-share"].value == 0.95


def test_warm_up_is_in_no_measured_count(table_of) -> None:  # P12
    rows = [good(1, 1) | {"phase": "warm-up"}, *(good(10 * i, 1) for i in range(1, 5))]
    made = summary(table_of(*rows, good(60, 1) | {"outcome": Outcome.HTTP_5XX}))
    assert (made["requests-measured"].value, made["requests-all"].value) == (5, 6)
    assert made["success-share"].value == 4 / 5


def test_tails_that_may_hide_behind_cut_requests_are_null(table_of) -> None:
    rows = [good(10 * i, 1) for i in range(99)] + [{"sent": 995, "reads": [], "outcome": Outcome.CUT}]
    made = summary(table_of(*rows))
    assert made["e2el-p90"].value is not None
    assert made["e2el-mean"].value is None
    assert "cut or timed out" in made["e2el-mean"].reason
    rows += [{"sent": 996, "reads": [], "outcome": Outcome.TIMEOUT}] * 11
    made = summary(table_of(*rows))
    assert made["e2el-p90"].value is None
    assert "hides behind 12" in made["e2el-p90"].reason
    assert made["interactivity-at-p90-tpot"].value is None
    assert made["tpot-p50"].value is not None


def test_per_gpu_values_and_the_whole_wall(table_of) -> None:
    made = summary(table_of(*(good(110 * i, 10) for i in range(40))), gpus=4)
    for key in ("output-throughput", "total-throughput", "output-throughput-whole-wall"):
        assert made[f"{key}-per-gpu"].value == pytest.approx(made[key].value / 4)
    assert made["input-throughput"].value == pytest.approx(400 / 10, rel=1e-6)
    assert made["cached-input-throughput"].value is None
    assert "cached" in made["cached-input-throughput"].reason


def test_achieved_lengths_and_tokens_per_chunk_are_shown(table_of) -> None:  # P16, P4
    first = {"sent": 1, "reads": [(10, 4), (20, 4)], "prompt_usage": 921, "prompt_sent": 921}
    made = summary(table_of(first, {"sent": 2, "reads": [(10, 4), (20, 2)], "prompt_usage": 922, "prompt_sent": 922}))
    assert made["input-length-mean"].value == 921.5
    assert made["output-length-mean"].value == 7
    assert made["tokens-per-chunk"].value == 3.5


def test_unknown_counts_are_null_never_zero(table_of) -> None:  # P2 (c)
    rows = [{"sent": i, "reads": [(i + 5, -1), (i + 9, -1)], "output_tokens": -1, "first_tokens": -1,
             "count_source": CountSource.UNKNOWN} for i in range(3)]  # fmt: skip
    made = summary(table_of(*rows))
    for name in ("output-throughput", "total-throughput", "tpot-mean", "itl-mean", "output-length-mean"):
        assert made[name].value is None
        assert made[name].reason
    assert made["ttft-mean"].value == 5
    assert made["chunk-gap-mean"].value == 4


def test_every_value_has_the_unit_of_the_table(table_of) -> None:
    made = summary(table_of(*(good(i, 10) for i in range(40))))
    assert {name: value.unit for name, value in made.items()} == {name: METRICS[name].unit for name in made}


def test_wrong_windows_and_divisors_are_refused(table_of) -> None:
    with pytest.raises(ValueError, match="window"):
        summarise(table_of(), Span(5, 5), gpus=1, concurrency=1)
    with pytest.raises(ValueError, match="GPU"):
        summarise(table_of(), WINDOW, gpus=0, concurrency=1)
