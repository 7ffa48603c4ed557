"""Imported points as a table: file, format, what was found and what was not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from infx.report.table import COLOURS, DASH, number
from infx.results.formats.imported import Imported

if TYPE_CHECKING:
    from rich.console import Group

HEADINGS = ("file", "format", "model", "c", "status", "ok", "failed", "ours", "foreign", "out tok/s", "TTFT p50")


def import_table(points: Sequence[Imported]) -> Group:
    """The points for a rich console, their reasons below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if index in (0, 1, 2, 4) else "right", overflow="fold")
    for point in points:
        cells = [Text(cell) for cell in _cells(point)]
        cells[4].stylize(COLOURS.get(point.status, "yellow"))
        table.add_row(*cells)
    return Group(table, *(Text(f"· {note}") for note in _notes(points)))


def import_text(points: Sequence[Imported]) -> str:
    """The points as plain text, columns aligned."""
    grid = [list(HEADINGS), *(_cells(point) for point in points)]
    widths = [max(len(row[column]) for row in grid) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, 1, 2, 4) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in grid
    ]
    return "\n".join([*lines, *(f"- {note}" for note in _notes(points))]) + "\n"


def _cells(point: Imported) -> list[str]:
    stated = sum(value.value is not None for value in point.metrics.values())
    whole = point.metrics["output-throughput-whole-wall"].value
    per_gpu = point.metrics["output-throughput-whole-wall-per-gpu"].value
    rate = number(whole) if whole is not None or per_gpu is None else f"{number(per_gpu)}/GPU"
    return [
        PurePath(point.source).name, point.format, point.model or DASH, _count(point.concurrency), str(point.status),
        _count(point.counts.get("ok")), _count(point.counts.get("failed")), f"{stated}/{len(point.metrics)}",
        str(len(point.foreign)), rate, number(point.metrics["ttft-p50"].value),
    ]


def _count(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


def _notes(points: Sequence[Imported]) -> list[str]:
    return [
        f"{PurePath(point.source).name}: {reason.code}: {reason.message}" for point in points
        for reason in point.reasons
    ]
