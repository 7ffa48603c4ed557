"""The stop rule: few looks, honest intervals, and its calibration in small (bench/stop has it in full)."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from infx.measure.columns import Outcome
from infx.measure.stop import FLOOR, Ended, SequentialStop, cycle_interval, cycles_in, median_interval

BENCH = Path(__file__).parents[3] / "bench" / "stop"


def ended(n: int = 50, e2el: float = 2.0, tpot: float = 10.0) -> Ended:
    return Ended(np.arange(n, dtype=np.int64), np.full(n, e2el), np.full(n, tpot))


def test_looks_are_few_and_wait_for_whole_cycles() -> None:
    rule, seen = SequentialStop(0.0001), []
    for second in range(1, 61):
        if rule.due(second, 2.0):
            rule.look([0, second], [0, 100 * second], ended(), second)
            seen.append(second)
    assert seen == [8, 10, 14, 18, 24, 30, 38, 48, 60]
    assert not any(look.enough for look in rule.looks)


def test_no_look_before_anything_ended() -> None:
    assert not SequentialStop(0.01).due(100.0, Ended.none().cycle_s)


def test_enough_means_both_throughput_and_tpot() -> None:
    steady, times = [100.0 * t for t in range(9)], list(range(9))
    assert SequentialStop(0.01).look(times, steady, ended(), 8.0)
    noisy = Ended(np.arange(50, dtype=np.int64), np.full(50, 2.0), np.linspace(5, 15, 50))
    assert not SequentialStop(0.01).look(times, steady, noisy, 8.0)
    uneven = list(np.cumsum([0, 50, 150, 60, 160, 300, 90, 10, 180]))
    assert not SequentialStop(0.01).look(times, uneven, ended(), 8.0)


def test_interval_of_cycles_by_hand() -> None:
    found = cycle_interval([0, 1, 2, 3, 4], [90, 110, 90, 110])
    assert found.value == 100
    assert (found.high - found.low) / 2 == pytest.approx(3.18245 * 11.547 / 2, rel=1e-4)
    assert cycle_interval([0, 1, 2], [100, 100]).half_width() == pytest.approx(FLOOR)
    assert cycle_interval([0, 1], [100]).low is None


def test_a_median_is_never_narrower_than_the_floor() -> None:
    found = median_interval(np.full(40, 10.0))
    assert (found.low, found.high) == pytest.approx((10 * (1 - FLOOR), 10 * (1 + FLOOR)))
    assert median_interval(np.array([1.0, 2.0])).low is None


def test_cycles_of_a_window() -> None:
    assert [cycles_in(10, cycle) for cycle in (3, 10, 11, 0.01, 0, float("nan"))] == [3, 1, 0, 40, 0, 0]


def test_only_good_main_requests_of_the_window_are_taken_in(table_of) -> None:
    table = table_of(
        {"sent": 5, "reads": [(10, 1), (30, 1)]}, {"sent": 50, "reads": [(60, 1), (80, 1), (100, 1)]},
        {"sent": 51, "reads": [(60, 1), (80, 1)], "outcome": Outcome.ERROR_EVENT},
        {"sent": 52, "reads": [(60, 1), (80, 1)], "phase": "warm-up"}, {"sent": 49, "reads": [(99, 1)]},
    )  # fmt: skip
    batch = {name: column.tobytes() for name, column in table.columns.items()}
    found = Ended.none()
    found.add(batch, 40_000_000)
    assert list(found.sent_ns) == [50_000_001, 49_000_001]
    assert list(found.tpots()) == [20.0]
    assert found.cycle_s == pytest.approx(0.05)


@pytest.fixture(scope="module")
def calibration():
    sys.path.insert(0, str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_stop_calibrate", BENCH / "calibrate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("ratio", [0.8, 1.0])
def test_the_interval_at_the_stop_covers_and_is_not_biased(calibration, ratio: float) -> None:
    line = calibration.calibrate(8, 60, ratio, 0.01)
    assert line.cover_rate >= 0.93
    assert line.cover_tpot >= 0.93
    assert abs(line.bias) < 0.002
    assert abs(line.bias_tpot) < 0.002
    assert line.cycles < 12


def test_without_a_spread_first_wave_the_rate_would_be_biased(calibration) -> None:
    """Why the first outputs have any length: lanes in step run faster than a long run does."""
    long = calibration.Curve.of(calibration.closed_loop(64, 20_000, 1))
    truth = long.rate(long.opening, float(long.at[-1]))
    off = []
    for seed in range(20):
        curve = calibration.Curve.of(calibration.closed_loop(64, 1000, seed, spread=False))
        off.append(curve.rate(curve.opening, curve.opening + 100) / truth - 1)
    assert np.mean(off) > 0.005
