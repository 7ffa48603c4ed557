"""Energy of a window against sums worked out by hand, and every reason why there is none."""

from __future__ import annotations

import pytest

from infx.measure.energy import power_values, window_energy

RAMP = [(0.0, 100.0), (1.0, 200.0), (2.0, 400.0), (3.0, 400.0)]


def test_trapezoids_with_interpolated_edges():
    # at 0.5 s 150 W, at 2.25 s 400 W: (150+200)/2·0.5 + (200+400)/2·1 + 400·0.25 = 87.5 + 300 + 100
    found = window_energy({"0": RAMP}, ["0"], 0.5, 2.25)
    assert found.joules == pytest.approx(487.5) and found.n == 4 and found.reason is None


def test_a_window_between_two_samples_and_one_on_them():
    assert window_energy({"0": RAMP}, ["0"], 0.25, 0.75).joules == pytest.approx(0.5 * 150)
    assert window_energy({"0": RAMP}, ["0"], 0.0, 3.0).joules == pytest.approx(150 + 300 + 400)


def test_gpus_add_up_whatever_their_stamps_and_order():
    other = [(2.6, 50.0), (-0.4, 50.0), (1.1, 50.0)]
    found = window_energy({"0": RAMP, "7": other}, ["0", "7"], 0.5, 2.25)
    assert found.joules == pytest.approx(487.5 + 50 * 1.75)


@pytest.mark.parametrize(("series", "gpus", "reason"), [
    ({"0": RAMP}, ["0", "1"], "GPU 1: no sample of its power"),
    ({"0": RAMP[1:]}, ["0"], "GPU 0: its first sample comes 0.5 s after the window opened"),
    ({"0": RAMP[:3]}, ["0"], "GPU 0: its last sample comes 0.5 s before the window closed"),
    ({"0": [(0.0, 1.0), (4.0, 1.0)]}, ["0"], "GPU 0: a gap of 4.0 s between two samples, more than 3 s"),
    ({"0": [(0.0, 1.0), (1.0, -5.0), (3.0, 1.0)]}, ["0"], "GPU 0: a sample of its power is no number of watts"),
    ({"0": RAMP}, [], "it is not known which GPUs hold the engine"),
])
def test_no_energy_without_whole_evidence(series, gpus, reason):
    found = window_energy(series, gpus, 0.5, 2.5)
    assert found.joules is None and found.reason == reason


def test_a_window_of_no_length_has_none():
    assert window_energy({"0": RAMP}, ["0"], 1.0, 1.0).reason == "the window has no length"


def test_power_and_energy_per_token():
    values = power_values(window_energy({"0": RAMP}, ["0"], 0.5, 2.25), 1.75, 390.0)
    assert values["power-mean"].value == pytest.approx(487.5 / 1.75)
    assert values["energy-per-output-token"].value == pytest.approx(1.25)
    none = power_values(window_energy({"0": RAMP}, ["0"], 0.5, 2.25), 1.75, None)["energy-per-output-token"]
    assert none.value is None and none.reason == "no output token is known in the window"


def test_nothing_is_taken_for_zero_watts():
    values = power_values(window_energy({}, ["0"], 0, 1), 1, 100.0)
    assert {value.value for value in values.values()} == {None}
    assert {value.reason for value in values.values()} == {"GPU 0: no sample of its power"}
