"""``amd-smi metric … --csv``: the call and its lines → samples.

The stream opens with words that are no table and repeats its header; cells may be ``N/A`` or quoted lists; columns
come and go with the version, so each is found by name. Stamps are whole seconds, cut: half a second is added, which
leaves an edge of a window at most half a second off.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

from infx.run.telemetry.samples import GpuSample, number

ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}
"""Set for the tool, a Python program: its rows must not wait in a buffer."""

_CUT_S = 0.5


def command(executable: str, interval_s: float) -> list[str]:
    """The call that prints a row a GPU every ``interval_s`` (whole seconds, at least one) until it is ended."""
    return [executable, "metric", "-p", "-c", "-t", "-u", "-m", "-w", str(max(1, round(interval_s))), "--csv"]


def parse(lines: Iterable[str]) -> list[GpuSample]:
    """Samples of every row below a header; rows that are cut or torn are left out."""
    header: list[str] = []
    found = []
    for line in lines:
        cells = next(csv.reader([line]), [])
        if "gpu" in cells and "timestamp" in cells:
            header = cells
        elif header and len(cells) == len(header):
            sample = _sample(dict(zip(header, cells, strict=True)))
            if sample is not None:
                found.append(sample)
    return found


def _sample(row: dict[str, str]) -> GpuSample | None:
    stamp = number(row.get("timestamp"))
    if not row["gpu"].isdecimal() or stamp is None:
        return None
    at = stamp + _CUT_S if stamp.is_integer() else stamp
    clocks = [value for index in range(8) if (value := number(row.get(f"gfx_{index}_clk"))) is not None]
    heat = [value for name in ("edge", "hotspot") if (value := number(row.get(name))) is not None]
    return GpuSample(
        at, row["gpu"], number(row.get("socket_power")), max(clocks, default=None), number(row.get("mem_0_clk")),
        max(heat, default=None), number(row.get("used_vram")), number(row.get("gfx_activity")))
