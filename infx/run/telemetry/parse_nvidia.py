"""``nvidia-smi --query-gpu=… --format=csv``: the query and its lines → samples.

Cells carry their unit and a space after the comma, names vary with the driver, ``[N/A]`` and ``[Unknown Error]``
are possible, and stamps are local time without a zone: the tool is run with ``TZ=UTC``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from infx.run.telemetry.samples import GpuSample, number

QUERY = ("timestamp", "index", "power.draw", "clocks.current.sm", "clocks.current.memory", "temperature.gpu",
         "memory.used", "utilization.gpu")
"""Asked of the tool, in this order; read by the names of the header."""

ENVIRONMENT = {"TZ": "UTC"}
"""Set for the tool."""


def command(executable: str, interval_s: float) -> list[str]:
    """The call that prints a row a GPU every ``interval_s`` until it is ended."""
    return [executable, f"--query-gpu={','.join(QUERY)}", "--format=csv", f"--loop-ms={round(interval_s * 1000)}"]


def parse(lines: Iterable[str]) -> list[GpuSample]:
    """Samples of every row below a header; rows that are cut or torn are left out."""
    header: list[str] = []
    found = []
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "timestamp":
            header = [cell.split(" [")[0] for cell in cells]
        elif header and len(cells) == len(header):
            row = dict(zip(header, cells, strict=True))
            at = _stamp(row.get("timestamp", ""))
            if at is not None and row.get("index", "").isdecimal():
                found.append(GpuSample(
                    at, row["index"], number(row.get("power.draw") or row.get("power.draw.average")),
                    number(row.get("clocks.current.sm") or row.get("clocks.sm")),
                    number(row.get("clocks.current.memory") or row.get("clocks.mem")),
                    number(row.get("temperature.gpu")), number(row.get("memory.used")),
                    number(row.get("utilization.gpu"))))
    return found


def _stamp(text: str) -> float | None:
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
