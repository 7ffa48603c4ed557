"""Power and energy of a window from samples of each GPU: a value, or the reason why there is none.

Trapezoids over the exact window, with the power at both edges interpolated between the samples round them. A window
without a sample on either side, with a gap, or with a GPU missing has no energy: nothing is extrapolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from infx.schema.metrics import METRICS
from infx.schema.result import Value

MOST_GAP_S = 3.0
"""Longest time between two samples of one GPU over which power is taken for a straight line."""

Series = Mapping[str, Sequence[tuple[float, float]]]
"""By GPU: (wall clock in seconds since the epoch, watts), in any order."""


@dataclass(frozen=True, slots=True)
class Energy:
    """``joules`` of all GPUs over the window and the samples used, or None and the reason."""

    joules: float | None
    n: int = 0
    reason: str | None = None


def window_energy(series: Series, gpus: Sequence[str], opened: float, closed: float) -> Energy:
    """Energy of ``gpus`` from ``opened`` to ``closed`` (seconds since the epoch), in joules.

    None with a reason when a GPU has no samples, the window is not bracketed, two samples are further apart than
    MOST_GAP_S, or a sample is not a finite, non-negative number.
    """
    if not gpus:
        return Energy(None, reason="it is not known which GPUs hold the engine")
    if not closed > opened:
        return Energy(None, reason="the window has no length")
    joules, n = 0.0, 0
    for gpu in gpus:
        found = _one(series.get(gpu, ()), opened, closed)
        if found.joules is None:
            return Energy(None, reason=f"GPU {gpu}: {found.reason}")
        joules, n = joules + found.joules, n + found.n
    return Energy(joules, n)


def _one(samples: Sequence[tuple[float, float]], opened: float, closed: float) -> Energy:
    if not samples:
        return Energy(None, reason="no sample of its power")
    data = np.asarray(sorted(dict(samples).items()), dtype=float)
    at, watts = data[:, 0], data[:, 1]
    first, last = int(np.searchsorted(at, opened, "right")) - 1, int(np.searchsorted(at, closed, "left"))
    if first < 0:
        return Energy(None, reason=f"its first sample comes {at[0] - opened:.1f} s after the window opened")
    if last >= len(at):
        return Energy(None, reason=f"its last sample comes {closed - at[-1]:.1f} s before the window closed")
    at, watts = at[first:last + 1], watts[first:last + 1]
    if not np.all(np.isfinite(watts)) or np.any(watts < 0):
        return Energy(None, reason="a sample of its power is no number of watts")
    gap = float(np.diff(at).max())
    if gap > MOST_GAP_S:
        return Energy(None, reason=f"a gap of {gap:.1f} s between two samples, more than {MOST_GAP_S:g} s")
    edges = np.interp([opened, closed], at, watts)
    inside = (at > opened) & (at < closed)
    times = np.concatenate(([opened], at[inside], [closed]))
    power = np.concatenate(([edges[0]], watts[inside], [edges[1]]))
    return Energy(float(np.sum((power[1:] + power[:-1]) / 2 * np.diff(times))), len(at))


def power_values(energy: Energy, seconds: float, output_tokens: float | None) -> dict[str, Value]:
    """``power-mean`` in W and ``energy-per-output-token`` in J per token received in the window of ``seconds``."""
    power, token = METRICS["power-mean"].unit, METRICS["energy-per-output-token"].unit
    if energy.joules is None:
        why = energy.reason or "power was not measured"
        return {"power-mean": Value.missing(power, why), "energy-per-output-token": Value.missing(token, why)}
    if not output_tokens:
        per_token = Value.missing(token, "no output token is known in the window")
    else:
        per_token = Value(value=energy.joules / output_tokens, unit=token, n=energy.n)
    return {"power-mean": Value(value=energy.joules / seconds, unit=power, n=energy.n),
            "energy-per-output-token": per_token}
