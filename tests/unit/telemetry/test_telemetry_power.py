"""Values of a window from samples: which GPUs count, maxima, means, and reasons."""

from __future__ import annotations

import pytest

from infx.run.telemetry.power import gpus_of, telemetry_values
from infx.run.telemetry.samples import GpuSample
from infx.schema.result import Window

WINDOW = Window(opened_unix=100.5, closed_unix=102.5, seconds=2.0)


def samples(gpu="0", watts=500.0):
    return [GpuSample(100.0 + at, gpu, watts, 1000.0 + 100 * at, 2000.0, 50.0 + at, 1024.0 * (1 + at), 90)
            for at in range(4)]


def test_values_of_two_gpus():
    values = telemetry_values([*samples(), *samples("1", 300.0)], ["0", "1"], WINDOW, 3200.0, "unused")
    assert values["power-mean"].value == pytest.approx(800.0)
    assert values["energy-per-output-token"].value == pytest.approx(0.5)  # 800 W · 2 s ÷ 3,200 tokens
    assert values["gpu-clock-mean"].value == pytest.approx(1150.0)  # samples at 101 and 102 s alone
    assert values["gpu-temperature-max"].value == 52.0
    assert values["gpu-memory-max"].value == pytest.approx(6.0)  # 3 GiB each


def test_a_gpu_that_is_not_the_engines_does_not_count():
    values = telemetry_values([*samples(), *samples("1", 300.0)], ["1"], WINDOW, None, "unused")
    assert values["power-mean"].value == pytest.approx(300.0)


def test_without_samples_each_value_says_why():
    values = telemetry_values([], ["0"], WINDOW, 10.0, "nvidia-smi is not on PATH")
    assert {value.reason for value in values.values()} == {"nvidia-smi is not on PATH"}


def test_a_missing_gpu_voids_power_and_memory():
    values = telemetry_values(samples(), ["0", "1"], WINDOW, 10.0, "no sample of it")
    assert values["power-mean"].reason == "GPU 1: no sample of its power"
    assert values["gpu-memory-max"].value is None


def test_which_gpus_hold_the_engine():
    seen = [*samples("0"), *samples("1")]
    assert gpus_of(seen, ["1"], 1) == (["1"], None)
    assert gpus_of(seen, [], 2) == (["0", "1"], None)
    gpus, why = gpus_of(seen, [], 1)
    assert gpus == [] and why == "the tool sees 2 GPUs and the engine uses 1: which of them is not known"
