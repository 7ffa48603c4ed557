"""The shape of a load: as many streams as asked for, refilled without gap, opened and closed where it should be."""

import time

import numpy as np
import oracle_scripts as scripts
import pytest

from infx.errors import UsageError
from infx.measure.request import per_request
from infx.measure.summary import summarise
from infx.measure.window import Span, measured
from infx.run.load.control import Ending
from infx.run.load.health import client_bound
from infx.run.load.spec import Arrivals, WindowRule
from infx.workload.lanes import FixedLength
from infx.workload.random import TokenIds
from infx.workload.session import Due, Phase, Request

IDS = TokenIds(1000)


def seen(truth: dict, open_ns: int, close_ns: int) -> tuple[float, int]:
    """Mean and peak of the streams that the server saw between two times of the common clock."""
    total, peak, level, since = 0, 0, 0, open_ns
    for ns, count in truth["changes"]:
        at = min(max(ns, open_ns), close_ns)
        total += level * (at - since)
        since, level = at, count
        if open_ns <= ns < close_ns:
            peak = max(peak, count)
    return (total + level * (close_ns - since)) / (close_ns - open_ns), peak


@pytest.mark.parametrize(("concurrency", "processes"), [(1, 0), (8, 0), (9, 2)])
def test_the_server_sees_c_streams(oracle, concurrency: int, processes: int) -> None:
    server = oracle(scripts.engine(first_s=0.02, gap_s=0.005, jitter=0.3))
    rule = WindowRule(minimum_requests=5 * concurrency, cap_s=20)
    output = server.load(concurrency=concurrency, processes=processes, window=rule)
    window = output.window
    truth = server.truth()
    mean, peak = seen(truth, window.open_ns, window.close_ns)
    assert peak == concurrency
    # on the common clock: the way there, the way back and the refill of every request; sums need no matching
    whole = [entry for entry in truth["log"] if entry.get("ended_ns", 1 << 62) <= window.close_ns]
    whole.sort(key=lambda entry: entry["received_ns"])
    ok = output.table.select(output.table.ok & (output.table["end_ns"] <= window.close_ns))
    n = min(len(whole), len(ok))
    there = sum(e["received_ns"] for e in whole[:n]) - np.sort(ok["sent_ns"])[:n].sum()
    back = np.sort(ok["end_ns"])[:n].sum() - np.sort([e["writes"][-1][0] for e in whole])[:n].sum()
    refill = (output.table["sent_ns"] - output.table["scheduled_ns"])[output.table["sent_ns"] > 0].sum()
    lost = (there + back + refill) / (window.close_ns - window.open_ns)
    assert concurrency - 1.2 * lost - 0.05 * concurrency <= mean <= concurrency
    assert truth["connections"] == concurrency + 1


def test_the_window_cuts_the_first_wave_and_the_drain(oracle) -> None:  # P19
    output = oracle(scripts.engine(first_s=0.01, gap_s=0.005, jitter=0.8)).load(
        concurrency=4, window=WindowRule(minimum_requests=20, cap_s=20))  # fmt: skip
    window, table = output.window, output.table
    first = [table["end_ns"][table["lane"] == lane].min() for lane in range(4)]
    assert window.open_ns >= max(first)
    chosen = measured(table, Span(window.open_ns, window.close_ns))
    assert chosen.sum() >= 20
    assert table.ok[chosen].all()  # load went on until the last measured request ended
    later = table["sent_ns"] >= window.close_ns
    assert later.sum() >= 1
    assert table["end_ns"][chosen].max() > window.close_ns
    assert (table.cut <= later).all()  # only what began after the window was cut


def test_warm_up_uses_other_prompts_and_is_not_measured(oracle) -> None:  # P20
    server = oracle(scripts.engine(first_s=0.05, hit_first_s=0.005, gap_s=0.001))
    source = FixedLength(IDS, 10, 20, seed=1, salt="w", warmup_per_lane=2)
    output = server.load(concurrency=1, source=source, window=WindowRule(minimum_requests=5, cap_s=20))
    assert not any(entry["hit"] for entry in server.truth()["log"])
    chosen = measured(output.table, Span(output.window.open_ns, output.window.close_ns))
    assert (output.table["cached_usage"][chosen] == -1).all()
    warm = output.table.phase(Phase.WARMUP)
    assert warm.sum() == 2
    assert output.table["end_ns"][warm].max() <= output.window.open_ns


def test_a_repeat_with_a_fresh_salt_hits_nothing(oracle) -> None:  # P21
    server = oracle(scripts.engine(gap_s=0.001))
    for salt in ("first", "second"):
        server.load(salt=salt)
    assert not any(entry["hit"] for entry in server.truth()["log"])
    server.load(salt="second")
    assert any(entry["hit"] for entry in server.truth()["log"])


def test_the_cap_closes_a_window_that_never_gets_enough(oracle) -> None:
    output = oracle(scripts.engine(gap_s=0.005)).load(window=WindowRule(minimum_requests=10_000, cap_s=0.4))
    assert output.ending is Ending.CAP
    assert output.window.seconds == pytest.approx(0.4, abs=0.2)


def test_both_ends_of_the_window_call_back_while_the_load_goes_on(oracle) -> None:
    calls = []
    server = oracle(scripts.engine(gap_s=0.002))
    hooks = {"on_window_open": lambda: calls.append(("open", len(server.truth()["log"]))),
             "on_window_close": lambda: calls.append(("close", len(server.truth()["log"]))),
             "on_progress": lambda progress: calls.append(("progress", progress.ended))}
    server.load(hooks=hooks, processes=1)
    names = [name for name, _ in calls]
    assert (names.count("open"), names.count("close")) == (1, 1)
    assert dict(calls)["close"] > dict(calls)["open"]
    assert "progress" in names


def test_what_a_callback_raises_is_raised(oracle) -> None:
    def fail() -> None:
        raise RuntimeError("no metrics")

    with pytest.raises(RuntimeError, match="no metrics"):
        oracle(scripts.engine()).load(hooks={"on_window_open": fail})


# -- open loop ---------------------------------------------------------------------------------------------------


def once() -> FixedLength:
    return FixedLength(IDS, 10, 5, seed=1, salt="o", refill=False)


@pytest.mark.parametrize("kind", ["constant", "poisson"])
@pytest.mark.parametrize("processes", [0, 2])
def test_arrivals_come_when_they_should(oracle, kind: str, processes: int) -> None:
    server = oracle(scripts.engine(gap_s=0.002))
    output = server.load(source=once(), processes=processes, arrivals=Arrivals(rate=100, kind=kind, warmup_s=0.2),
                         window=WindowRule(duration_s=1.0))  # fmt: skip
    due = np.sort(output.table["scheduled_ns"]) / 1e9
    gaps = np.diff(due)
    assert len(due) > 80
    if kind == "constant":
        assert np.allclose(gaps, 0.01, atol=2e-6)
    else:
        assert gaps.mean() == pytest.approx(0.01, rel=0.3)
        assert gaps.std() / gaps.mean() > 0.6
    sent = output.table["sent_ns"] > 0  # what was cut before it had a connection was not
    assert (output.table["sent_ns"] >= output.table["scheduled_ns"])[sent].all()
    assert sent.sum() > 80


def test_an_open_loop_shows_the_queue_that_it_builds(oracle) -> None:  # P9
    """100 arrivals a second on a server that answers each after 300 ms: no stream waits for another."""
    server = oracle(scripts.engine(first_s=0.3, gap_s=0.001))
    output = server.load(source=once(), arrivals=Arrivals(rate=100, kind="constant", warmup_s=0.1),
                         window=WindowRule(duration_s=1.0), concurrency=1)  # fmt: skip
    assert server.truth()["peak"] >= 25
    late = per_request(output.table, from_scheduled=True)
    early = per_request(output.table)
    good = output.table.ok
    assert np.allclose(late.ttft_ms[good] - early.ttft_ms[good], early.delay_ms[good])
    made = summarise(output.table, Span(output.window.open_ns, output.window.close_ns), gpus=1, concurrency=1,
                     from_scheduled=True)  # fmt: skip
    assert made["schedule-delay-mean"].value >= 0
    assert made["ttft-mean"].value >= 300


# -- sessions ----------------------------------------------------------------------------------------------------


class Fan:
    """Two lanes; each turn sends three sub-agents at once, and the next turn 5 ms after all have ended."""

    def __init__(self) -> None:
        self.waiting: dict[int, int] = {}

    def _turn(self, lane: int, turn: int, delay: float) -> list[Due]:
        self.waiting[lane] = 3
        common = {"lane": lane, "session": lane, "turn": turn, "max_tokens": 4}
        return [Due(delay, Request(stream=stream, prompt_ids=[lane, turn, stream], **common)) for stream in range(3)]

    def start(self, lane: int) -> list[Due]:
        return self._turn(lane, 0, 0.0)

    def finished(self, request: Request, output_ids: object) -> list[Due]:
        self.waiting[request.lane] -= 1
        if self.waiting[request.lane] or request.turn == 5:
            return []
        return self._turn(request.lane, request.turn + 1, 0.005)


def test_a_lane_may_have_several_requests_in_flight_and_may_end(oracle) -> None:
    server = oracle(scripts.engine(gap_s=0.002))
    output = server.load(concurrency=2, source=Fan(), window=WindowRule(duration_s=30))
    assert output.ending is Ending.EXHAUSTED
    assert len(output.table) == 2 * 3 * 6
    assert server.truth()["peak"] == 6
    assert output.table.ok.all()
    delays = (output.table["sent_ns"] - output.table["scheduled_ns"])[output.table["turn"] > 0] / 1e6
    assert delays.min() >= 0


class Chat:
    """One message after the other, the answer's ids asked for."""

    def __init__(self) -> None:
        self.ids: list[object] = []

    def start(self, lane: int) -> list[Due]:
        messages = [{"role": "user", "content": "hello"}]
        return [Due(0.0, Request(lane=lane, session=0, turn=len(self.ids), messages=messages, max_tokens=3))]

    def finished(self, request: Request, output_ids: object) -> list[Due]:
        self.ids.append(output_ids)
        return self.start(request.lane)


def test_the_chat_endpoint(oracle) -> None:
    server = oracle(scripts.engine(gap_s=0.001))
    output = server.load(concurrency=1, source=Chat(), endpoint="chat", window=WindowRule(minimum_requests=3, cap_s=20))
    assert output.failures == {}
    entry = server.truth()["log"][0]
    assert entry["path"] == "/v1/chat/completions"
    assert entry["request"]["messages"] == [{"role": "user", "content": "hello"}]
    assert set(output.table["prompt_sent"]) == {0}


@pytest.mark.parametrize("processes", [0, 1])
def test_a_workload_that_does_not_fit_the_endpoint_is_refused(oracle, processes: int) -> None:
    with pytest.raises(UsageError, match="messages"):
        oracle(scripts.engine()).load(endpoint="chat", processes=processes)


def test_a_client_that_cannot_keep_up_says_so(oracle) -> None:  # P10
    """A workload that takes 30 ms for each refill holds the loop up: the lag shows, and the point is client-bound."""

    class Slow(FixedLength):
        prepare = None

        def finished(self, request: Request, output_ids: object) -> list[Due]:
            until = time.perf_counter() + 0.03
            while time.perf_counter() < until:
                pass
            return super().finished(request, output_ids)

    slow = Slow(IDS, 10, 20, seed=1, salt="a")
    rule = WindowRule(minimum_requests=30, cap_s=20)
    output = oracle(scripts.engine(gap_s=0.002)).load(concurrency=8, source=slow, window=rule)
    assert client_bound(output.health, 2.0)


@pytest.mark.parametrize("processes", [0, 2])
def test_a_precision_target_closes_the_window_when_it_is_reached(oracle, processes: int) -> None:
    server = oracle(scripts.engine(first_s=0.02, gap_s=0.004, jitter=0.2))
    rule = WindowRule(minimum_requests=8, cap_s=30, target=0.05)
    output = server.load(concurrency=4, processes=processes, window=rule)
    assert output.ending is Ending.COMPLETE
    last = output.looks[-1]
    assert last.enough
    assert last.throughput.half_width() <= 0.05
    assert output.window.seconds == pytest.approx(last.seconds, abs=0.3)
    made = summarise(output.table, Span(output.window.open_ns, output.window.close_ns), gpus=1, concurrency=4)
    assert made["output-throughput"].value == pytest.approx(last.throughput.value, rel=0.1)
    assert made["output-throughput"].low < made["output-throughput"].value < made["output-throughput"].high
