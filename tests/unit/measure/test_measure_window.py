"""What counts in the window, and that steady throughput equals the known rate."""

import numpy as np
import pytest

from infx.measure.columns import CountSource, Outcome
from infx.measure.flow import input_tokens, output_tokens
from infx.measure.window import Span, in_flight, measured, whole_wall
from infx.workload.session import Phase

MS = 1_000_000


def span(open_ms: float, close_ms: float) -> Span:
    return Span(int(open_ms * MS) + 1, int(close_ms * MS) + 1)


def test_measured_requests_are_main_and_start_in_the_window(table_of) -> None:
    table = table_of(
        {"sent": 99, "reads": [(120, 1)]}, {"sent": 100, "reads": [(120, 1)]}, {"sent": 199, "reads": [(900, 1)]},
        {"sent": 200, "reads": [(210, 1)]}, {"sent": 150, "reads": [(160, 1)], "phase": Phase.WARMUP},
    )  # fmt: skip
    assert list(measured(table, span(100, 200))) == [False, True, True, False, False]


def test_tokens_count_when_received_and_prompts_with_the_first_token(table_of) -> None:
    table = table_of(
        {"sent": 10, "reads": [(90, 1), (110, 2), (190, 4), (200, 8)], "prompt_usage": 1000},
        {"sent": 120, "reads": [(130, 16)], "prompt_usage": 500, "cached_usage": 400},
        {"sent": 130, "reads": [(140, 32)], "outcome": Outcome.ERROR_EVENT},
    )
    window = span(100, 200)
    assert output_tokens(table, window).rate.value == pytest.approx((2 + 4 + 16) / 0.1)
    assert input_tokens(table, window).rate.value == pytest.approx(500 / 0.1)
    cached = input_tokens(table, window, cached=True)
    assert cached.rate.value == pytest.approx(400 / 0.1)  # P61: cached input apart
    assert cached.unknown == 0  # the first request's prompt counted before the window


def test_unknown_spread_is_spread_evenly_and_an_unknown_total_is_unknown(table_of) -> None:
    vague = {"reads": [(10, -1), (20, -1)], "count_source": CountSource.USAGE_FINAL}
    window = span(15, 25)
    assert output_tokens(table_of({**vague, "output_tokens": 8}), window).rate.value == pytest.approx(4 / 0.01)
    assert output_tokens(table_of({**vague, "output_tokens": -1}), window).unknown == 1


@pytest.mark.parametrize("streams", [1, 4, 16, 64])
@pytest.mark.parametrize("per_read", [1, 4])
def test_steady_throughput_is_the_rate_of_the_slots(table_of, streams: int, per_read: int) -> None:  # P19
    """Slots of 10 ms a token, first token after 80 ms, lengths 80 … 100, refill without gap, virtual time."""
    rng = np.random.default_rng(streams)
    requests, ready = [], []
    for _ in range(streams):
        now, count = rng.uniform(0, 5), 0
        while now < 60_000:
            length = int(rng.integers(80, 101)) // per_read * per_read
            reads = [(now + 80 + 10 * per_read * i, per_read) for i in range(length // per_read)]
            requests.append({"sent": now, "reads": reads})
            now, count = reads[-1][0], count + 1
            if count == 1:
                ready.append(now)
    table = table_of(*requests)
    window = span(max(ready), max(ready) + 50_000)
    spent = sum(r["reads"][-1][0] - r["sent"] for r in requests)
    per_slot = sum(len(r["reads"]) * per_read for r in requests) / spent * 1000
    rate = output_tokens(table, window).rate
    assert rate.value == pytest.approx(streams * per_slot, rel=0.002)
    assert in_flight(table, window, streams).mean == pytest.approx(streams, rel=1e-3)
    wall = whole_wall(table, window)
    assert wall is not None
    if streams > 1:  # one stream has neither ramp nor drain
        assert wall.output < rate.value  # ramp and drain make the usual figure smaller


def test_in_flight_takes_mean_peak_and_the_share_below(table_of) -> None:
    table = table_of({"sent": 0, "reads": [(100, 1)]}, {"sent": 50, "reads": [(150, 1)]},
                     {"sent": 150, "reads": [(200, 1)]})  # fmt: skip
    found = in_flight(table, span(0, 200), 2)
    assert (found.mean, found.peak) == (1.25, 2)
    assert found.share_below == pytest.approx(0.75)


def test_an_end_and_a_start_at_one_instant_are_no_peak(table_of) -> None:
    table = table_of({"sent": 0, "reads": [(100, 1)]}, {"sent": 100, "reads": [(200, 1)]})
    assert in_flight(table, span(0, 200), 1).peak == 1
