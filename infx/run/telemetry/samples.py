"""What the vendors' tools say of GPUs over time: one sample a GPU and instant, and its CSV in the run folder."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one instant (``unix``: seconds since the epoch); None where the tool has no figure.

    ``watts``: power; ``core_mhz``, ``memory_mhz``: clocks; ``celsius``: the hottest sensor of the chip;
    ``memory_mib``: memory in use; ``busy_percent``: share of time with work.
    """

    unix: float
    gpu: str
    watts: float | None = None
    core_mhz: float | None = None
    memory_mhz: float | None = None
    celsius: float | None = None
    memory_mib: float | None = None
    busy_percent: float | None = None


_COLUMNS = tuple(field.name for field in fields(GpuSample))


def samples_csv(samples: Iterable[GpuSample]) -> bytes:
    """The samples as CSV with a header; an unknown figure is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for sample in samples:
        writer.writerow([f"{sample.unix:.3f}", sample.gpu, *(_cell(getattr(sample, name)) for name in _COLUMNS[2:])])
    return text.getvalue().encode()


def samples_of_csv(data: bytes) -> list[GpuSample]:
    """Read what samples_csv wrote; ValueError where it is not that."""
    rows = csv.reader(io.StringIO(data.decode("utf-8")))
    if tuple(next(rows, ())) != _COLUMNS:
        raise ValueError(f"not a table of GPU samples: its header is not {','.join(_COLUMNS)}")
    return [GpuSample(float(row[0]), row[1], *(float(cell) if cell else None for cell in row[2:])) for row in rows]


def number(cell: str | None) -> float | None:
    """The figure of a cell with or without its unit (``78.74 W``, ``135``); None for ``N/A`` and the like."""
    words = (cell or "").split()
    if not words:
        return None
    try:
        value = float(words[0])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
