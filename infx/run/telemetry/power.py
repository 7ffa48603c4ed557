"""Power, energy, clocks, heat and memory of the GPUs of one engine over one window, from samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from infx.measure.energy import Energy, power_values, window_energy
from infx.run.telemetry.samples import GpuSample
from infx.schema.metrics import METRICS
from infx.schema.result import Value, Window


def gpus_of(samples: Iterable[GpuSample], leased: Sequence[str], count: int) -> tuple[list[str], str | None]:
    """The GPUs that hold the engine: those leased to it, or all of a machine that has no others; else why not known."""
    if leased:
        return list(leased), None
    seen = sorted({sample.gpu for sample in samples})
    if len(seen) == count:
        return seen, None
    return [], f"the tool sees {len(seen)} GPUs and the engine uses {count}: which of them is not known"


def telemetry_values(samples: Sequence[GpuSample], gpus: Sequence[str], window: Window,
                     output_tokens: float | None, why_none: str) -> dict[str, Value]:
    """Values of the metric table over ``window`` for ``gpus``; ``why_none`` is the reason where nothing is known.

    Power and energy integrate watts (infx.measure.energy); the clock is a mean over samples and GPUs, temperature
    and memory (of all GPUs together) are maxima, each over samples inside the window.
    """
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample in samples:
        if sample.watts is not None:
            series[sample.gpu].append((sample.unix, sample.watts))
    if samples and gpus:
        energy = window_energy(series, gpus, window.opened_unix, window.closed_unix)
    else:
        energy = Energy(None, reason=why_none)
    inside = [sample for sample in samples
              if sample.gpu in gpus and window.opened_unix <= sample.unix <= window.closed_unix]
    made = power_values(energy, window.closed_unix - window.opened_unix, output_tokens)
    made["gpu-clock-mean"] = _over("gpu-clock-mean", [s.core_mhz for s in inside], lambda x: sum(x) / len(x), why_none)
    made["gpu-temperature-max"] = _over("gpu-temperature-max", [s.celsius for s in inside], max, why_none)
    made["gpu-memory-max"] = _memory(inside, gpus, why_none)
    return made


def _over(name: str, figures: Sequence[float | None], statistic: Callable[[list[float]], float], why: str) -> Value:
    known = [figure for figure in figures if figure is not None]
    if not known:
        return Value.missing(METRICS[name].unit, why)
    return Value(value=statistic(known), unit=METRICS[name].unit, n=len(known))


def _memory(inside: Sequence[GpuSample], gpus: Sequence[str], why: str) -> Value:
    peaks = {gpu: max((s.memory_mib for s in inside if s.gpu == gpu and s.memory_mib is not None), default=None)
             for gpu in gpus}
    unit = METRICS["gpu-memory-max"].unit
    known = [peak for peak in peaks.values() if peak is not None]
    if not known or len(known) != len(gpus):
        return Value.missing(unit, why)
    return Value(value=sum(known) / 1024, unit=unit, n=len(inside))
