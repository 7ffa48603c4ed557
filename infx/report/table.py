"""A run as a table: rich on a terminal, aligned plain text in a pipe, JSON for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infx.report.rows import Row, Rows, table_rows
from infx.report.shown import marks, meaning, provenance, tally
from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS

if TYPE_CHECKING:
    from rich.console import Group

DASH = "–"
COLOURS = {"ok": "green", "invalid": "yellow", "client-bound": "yellow", "failed": "red", "missing": "red"}


def number(value: float | None) -> str:
    """Four significant digits with thousands marked; a dash for nothing, never a zero."""
    if value is None:
        return DASH
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3
    return f"{value:,.{digits}f}"


def cell(name: str, value: float | None) -> str:
    """A figure of a metric as a table shows it: shares in per cent, the rest in four digits."""
    if value is not None and METRICS[name].statistic == "share":
        return f"{value:.1%}"
    return number(value)


def run_table(loaded: LoadedRun) -> Group:
    """The run for a rich console: marks, provenance, table, and the reasons under it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = table_rows(loaded)
    head = Table.grid(padding=(0, 2))
    for name, value in provenance(loaded):
        head.add_row(Text(name, style="dim"), Text(value))
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for index, heading in enumerate(_headings(rows)):
        table.add_column(heading, justify="left" if index in (0, 2) else "right", no_wrap=True)
    for row in rows.rows:
        cells = [Text(text) for text in _cells(row, rows)]
        cells[2].stylize(COLOURS.get(row.status, "yellow"))
        table.add_row(*cells)
    banner = [
        Text(f" {mark}: {meaning(mark)} ", style="bold black on bright_yellow") for mark in marks(loaded)
    ]
    notes = [Text(f"· {note}") for note in rows.notes]
    return Group(*banner, head, Text(), table, Text(_units(rows), style="dim"), *notes)


def run_text(loaded: LoadedRun) -> str:
    """The run for a pipe: the same content, columns aligned by spaces, one line a row, no colour."""
    rows = table_rows(loaded)
    lines = [f"{mark}: {meaning(mark)}" for mark in marks(loaded)]
    lines += [f"{name:<9} {value}" for name, value in provenance(loaded)]
    grid = [[heading.replace("-\n", "").replace("\n", " ") for heading in _headings(rows)]]
    grid += [_cells(row, rows) for row in rows.rows]
    widths = [max(len(line[column]) for line in grid) for column in range(len(grid[0]))]
    lines.append("")
    for line in grid:
        fields = [
            text.ljust(width) if column in (0, 2) else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(fields).rstrip())
    return "\n".join([*lines, _units(rows), *(f"- {note}" for note in rows.notes)]) + "\n"


def run_json(loaded: LoadedRun) -> dict[str, object]:
    """The run for a script: run, state, plan's points, starts and every result as stored."""
    return {
        "path": str(loaded.path),
        "run": loaded.run.model_dump(mode="json"),
        "state": str(loaded.state),
        "marks": marks(loaded),
        "points": {
            point.key: (None if (chosen := loaded.chosen(point.key)) is None else chosen.start)
            for point in loaded.plan.points
        },
        "tally": tally(loaded),
        "missing": loaded.missing,
        "starts": [start.model_dump(mode="json") for start in loaded.starts.values()],
        "results": [result.model_dump(mode="json") for result in loaded.results],
    }


def _headings(rows: Rows) -> list[str]:
    return ["layout", "c", "status", "n", *(heading for _, heading in rows.columns), "failed"]


def _cells(row: Row, rows: Rows) -> list[str]:
    counted = [DASH if count is None else f"{count:,}" for count in (row.n, row.failed)]
    figures = [cell(name, row.figures.get(name)) for name, _ in rows.columns]
    return [row.group, str(row.concurrency), row.status, counted[0], *figures, counted[1]]


def _units(rows: Rows) -> str:
    units: dict[str, list[str]] = {}
    for name, heading in rows.columns:
        if METRICS[name].unit:
            units.setdefault(METRICS[name].unit, []).append(heading.replace("-\n", "").replace("\n", " "))
    return "; ".join(f"{', '.join(names)} in {unit}" for unit, names in units.items())
