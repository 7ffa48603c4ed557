"""The controller in virtual time: when windows open and close and why loads end."""

import pytest

from infx.errors import UsageError
from infx.run.load.arrivals import arrival_times
from infx.run.load.control import Controller, Ending, Stage
from infx.run.load.health import Monitor, WorkerHealth, client_bound
from infx.run.load.spec import Arrivals, LoadSpec, WindowRule
from infx.run.load.worker import Snapshot

S = 1_000_000_000


def controller(rule: WindowRule | None = None, *, enough=None, **spec) -> Controller:
    return Controller(LoadSpec("http://h:1", "m", 4, rule or WindowRule(), **spec), 100 * S, enough)


def snap(at: float = 101, **fields) -> Snapshot:
    return Snapshot(lanes=4, lanes_live=4, in_flight=4, last_byte_ns=int(at * S), **fields)


def opened(control: Controller) -> Controller:
    """With a window that opened at 102 s."""
    control._began_ns = 102 * S
    step(control, 102, snap(lanes_ready=4))
    assert control.open_ns == 102 * S
    return control


def step(control: Controller, at: float, *snapshots: Snapshot, stop: bool = False) -> Stage:
    return control.step(int(at * S), snapshots, stop)


def test_the_window_opens_when_all_lanes_are_ready_and_closes_with_both_minimums() -> None:
    control = controller(WindowRule(minimum_requests=10, minimum_s=5, cap_s=60))
    assert step(control, 101, snap(lanes_ready=3)) is Stage.RAMP
    assert step(control, 102, snap(102, lanes_ready=4)) is Stage.RAMP
    assert step(control, 102.2, snap(102, lanes_ready=4)) is Stage.RAMP
    assert step(control, 102.25, snap(102, lanes_ready=4)) is Stage.OPEN  # 2 s ÷ 4 lanes is the mean gap between ends
    assert control.open_ns == int(102.25 * S)
    assert step(control, 108, snap(108, lanes_ready=4, measured_ended=9)) is Stage.OPEN
    assert step(control, 108.5, snap(108, lanes_ready=4, measured_ended=10)) is Stage.DRAIN
    assert (control.close_ns, control.ending) == (int(108.5 * S), Ending.COMPLETE)
    assert step(control, 109, snap(109, outstanding=0)) is Stage.DRAIN  # the worker has not heard of the close yet
    assert step(control, 109, snap(109, outstanding=1, close_known=True)) is Stage.DRAIN
    assert step(control, 110, snap(110, close_known=True)) is Stage.DONE


def test_the_minimum_time_holds_too() -> None:
    control = controller(WindowRule(minimum_requests=1, minimum_s=5, cap_s=60))
    opened(control)
    assert step(control, 106, snap(106, measured_ended=99)) is Stage.OPEN
    assert step(control, 107, snap(107, measured_ended=99)) is Stage.DRAIN


def test_lanes_of_all_workers_count() -> None:
    control = controller()
    assert step(control, 100, snap(100, lanes_ready=4), snap(100, lanes_ready=0)) is Stage.RAMP
    assert step(control, 100, snap(100, lanes_ready=4), snap(100, lanes_ready=4)) is Stage.OPEN


def test_a_duration_closes_at_its_time_and_at_no_other() -> None:
    control = controller(WindowRule(duration_s=300, cap_s=1))
    opened(control)
    assert step(control, 401, snap(401, measured_ended=10_000)) is Stage.OPEN
    assert step(control, 402, snap(402)) is Stage.DRAIN
    assert control.ending is Ending.COMPLETE


def test_a_rule_of_its_own_may_ask_for_more_until_the_cap() -> None:
    asked = []
    control = controller(WindowRule(minimum_requests=1, cap_s=60), enough=lambda now: asked.append(now) or False)
    opened(control)
    assert step(control, 103, snap(103)) is Stage.OPEN
    assert asked == []  # the minimum is not met: nobody is asked
    assert step(control, 104, snap(104, measured_ended=5)) is Stage.OPEN
    assert asked == [104 * S]
    assert step(control, 162, snap(162, measured_ended=5)) is Stage.DRAIN
    assert control.ending is Ending.CAP


@pytest.mark.parametrize(
    ("fields", "ending", "word"),
    [
        ({"failures_in_a_row": 20, "last_failure": "connect: refused"}, Ending.FAILING, "connect: refused"),
        ({"at": 1}, Ending.HUNG, "no byte"),
    ],
)
@pytest.mark.parametrize("open_already", [False, True])
def test_trouble_ends_the_load(fields: dict, ending: Ending, word: str, open_already: bool) -> None:
    control = controller(stall_s=30)
    if open_already:
        opened(control)
    assert step(control, 140, snap(**{"at": 139, **fields})) is Stage.DONE
    assert control.ending is ending
    assert word in control.message
    assert bool(control.close_ns) is open_already


def test_silence_with_nothing_in_flight_is_no_hang() -> None:
    control = controller(stall_s=30)
    quiet = Snapshot(lanes=4, lanes_live=4, last_byte_ns=101 * S)
    assert step(control, 500, quiet) is Stage.RAMP


def test_a_drain_that_lasts_too_long_is_cut() -> None:
    control = controller(WindowRule(duration_s=1), drain_s=10)
    opened(control)
    step(control, 103, snap(103))
    assert step(control, 112, snap(112, outstanding=1, close_known=True)) is Stage.DRAIN
    assert step(control, 114, snap(114, outstanding=1, close_known=True)) is Stage.DONE
    assert (control.ending, "cut" in control.message) == (Ending.COMPLETE, True)


def test_a_workload_that_ends_early() -> None:
    over = Snapshot(lanes=4, lanes_ready=4, lanes_live=0)
    before, inside = controller(), controller(WindowRule(duration_s=60))
    assert step(before, 101, over) is Stage.DONE
    assert (before.ending, before.open_ns) == (Ending.EXHAUSTED, 0)
    opened(inside)
    assert step(inside, 103, over) is Stage.DRAIN
    assert inside.ending is Ending.EXHAUSTED


def test_stopping_while_open_keeps_the_window_and_stopping_in_the_drain_keeps_the_ending() -> None:
    control = controller(WindowRule(duration_s=60))
    opened(control)
    assert step(control, 110, snap(110), stop=True) is Stage.DONE
    assert (control.ending, control.close_ns) == (Ending.STOPPED, 110 * S)
    drained = controller(WindowRule(duration_s=1))
    opened(drained)
    step(drained, 103, snap(103))
    step(drained, 104, snap(104), stop=True)
    assert drained.ending is Ending.COMPLETE


def test_an_open_loop_opens_after_its_warm_up() -> None:
    control = controller(arrivals=Arrivals(rate=10, warmup_s=5))
    assert step(control, 104, snap()) is Stage.RAMP
    assert step(control, 105, snap()) is Stage.OPEN


def test_arrivals_by_seed() -> None:
    def first(n: int, arrivals: Arrivals) -> list[float]:
        times = arrival_times(arrivals)
        return [next(times) for _ in range(n)]

    assert first(4, Arrivals(rate=4, kind="constant")) == [0, 0.25, 0.5, 0.75]
    drawn = first(20_001, Arrivals(rate=50, seed=3))
    assert drawn == first(20_001, Arrivals(rate=50, seed=3))
    assert drawn[:9] != first(9, Arrivals(rate=50, seed=4))
    assert drawn[-1] / 20_000 == pytest.approx(1 / 50, rel=0.03)
    with pytest.raises(UsageError, match="rate"):
        first(1, Arrivals(rate=0))


def health(**fields) -> WorkerHealth:
    return WorkerHealth(**{"wall_s": 10, "cpu_s": 1, "reads": 1, "events": 1, "lag_p50_ms": 0, "lag_p99_ms": 0.1,
                           "lag_max_ms": 1, "gc_pause_max_ms": 0, "gc_pause_total_ms": 0, "max_rss_bytes": 1} | fields)


@pytest.mark.parametrize(
    ("fields", "tpot", "word"),
    [
        ({}, 10.0, None),
        ({"cpu_s": 9.5}, 10.0, "95% of a core"),
        ({"lag_p99_ms": 4.9}, 1.0, None),
        ({"lag_p99_ms": 6.0}, 10.0, "loop lag"),
        ({"lag_p99_ms": 6.0}, 50.0, None),
        ({"lag_p99_ms": 6.0}, None, "loop lag"),
    ],
)
def test_when_the_client_is_the_limit(fields: dict, tpot: float | None, word: str | None) -> None:  # P10
    reasons = client_bound([health(), health(**fields)], tpot)
    assert [word in reason for reason in reasons] == ([True] if word else [])
    assert all("worker 1" in reason for reason in reasons)


def test_a_monitor_forgets_what_was_before_its_mark() -> None:
    monitor = Monitor()
    monitor.lag(90_000_000)
    monitor.reads = 5
    monitor.mark()
    monitor.reads, monitor.events = 15, 30
    for late in (0, 1_500_000, 3_000_000):
        monitor.lag(late)
    report = monitor.report()
    assert (report.reads, report.events, report.lag_p50_ms, report.lag_max_ms) == (10, 30, 0.5, 2.0)


@pytest.mark.parametrize("url", ["https://h:1", "h:1", "http://", "ftp://h"])
def test_addresses_that_cannot_be_loaded(url: str) -> None:
    with pytest.raises(UsageError):
        LoadSpec(url, "m", 1)


def test_paths_of_the_endpoints() -> None:
    assert LoadSpec("http://h:1/api/", "m", 1).path == "/api/v1/completions"
    assert LoadSpec("http://h:1", "m", 1, endpoint="chat").path == "/v1/chat/completions"
