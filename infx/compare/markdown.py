"""A comparison as reviewers write it: Markdown, `430.1 → 576.4 (+34.0%)`, positive = improvement; and as JSON data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from infx.compare.beside import Beside
from infx.compare.estimate import Estimate
from infx.compare.frontier import CurveFigure
from infx.compare.verdict import Cell, Comparison, Verdict
from infx.schema.metrics import METRICS
from infx.schema.result import Reason

MINUS = "−"
NOTHING = Beside()


def change_text(improvement: float | None) -> str:
    """``+34.0%``, with a real minus sign; empty without a figure. What rounds to zero is ``+0.0%``."""
    if improvement is None:
        return ""
    rounded = round(100.0 * improvement, 1)
    return f"{MINUS if rounded < 0 else '+'}{abs(rounded):.1f}%"


def figure_text(e: Estimate) -> str:
    """``430.1 → 576.4 (+34.0%)`` in the metric's own format."""
    text = f"{value_text(e.metric, e.first.centre)} → {value_text(e.metric, e.second.centre)}"
    change = change_text(e.improvement if e.improvement is not None else e.change)
    return f"{text} ({change})" if change else text


def value_text(metric: str, value: float) -> str:
    """A value in the metric's format without thousands marks; times from 100 ms on with one decimal."""
    known = METRICS[metric]
    style = ".1f" if known.unit == "ms" and value >= 100 else known.format.replace(",", "")
    return f"{value:{style}}"


def interval_text(e: Estimate) -> str:
    """``[+1.2%, +3.4%]``: the improvement's 95 % interval for this cell alone; a dash where nothing bounds it."""
    ends = e.improvement_interval()
    return f"[{_end_text(ends[0])}, {_end_text(ends[1])}]" if ends else "–"


def _end_text(end: float) -> str:
    if abs(end) < 10.0:
        return change_text(end)
    return "> +999%" if end > 0 else f"< {MINUS}999%"


def markdown(comparison: Comparison, beside: Beside = NOTHING) -> str:
    """The whole comparison: what qualifies it, a table a layout, the curve figure, what is lost, and the reasons."""
    parts = [f"**{comparison.first.name} → {comparison.second.name}** (a positive percentage is an improvement)\n"]
    parts += [f"> {note.message}\n" for note in comparison.notes]
    parts += [_table(curve.curve, curve.cells, comparison.options.metrics) for curve in comparison.curves]
    parts += [f"- {figure_sentence(figure)}\n" for figure in beside.figures]
    parts += [f"- {sentence}\n" for sentence in beside.sentences()]
    parts.append(_details(comparison))
    return "\n".join(parts)


def figure_sentence(figure: CurveFigure) -> str:
    """The curve figure in one line."""
    x, y = METRICS[figure.x].title, METRICS[figure.y].title
    if figure.change is None:
        return f"{figure.curve}, area under the frontier: {figure.verdict} ({_messages(figure.reasons)})"
    ends = ""
    if figure.interval:
        ends = f", 95 % interval [{change_text(figure.interval[0])}, {change_text(figure.interval[1])}]"
    why = f" ({_messages(figure.reasons)})" if figure.reasons else ""
    return (f"{figure.curve}, area under {y} over {x} from {figure.low:.1f} to {figure.high:.1f}: "
            f"{change_text(figure.change)}{ends}: {figure.verdict}{why}")


def _table(curve: str, cells: Iterable[Cell], metrics: Sequence[str]) -> str:
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.label, {})[cell.metric] = cell
    titles = [f"{METRICS[m].title}{f' ({METRICS[m].unit})' if METRICS[m].unit else ''}" for m in metrics]
    lines = [f"| {curve} | " + " | ".join(titles) + " |", "|---" * (len(metrics) + 1) + "|"]
    for label, row in rows.items():
        shown = [_cell(row[m]) for m in metrics]
        lines.append(f"| {label.rpartition('/')[2]} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _cell(cell: Cell) -> str:
    if cell.estimate is None:
        return str(cell.verdict)
    return f"{figure_text(cell.estimate)} {cell.verdict}"


def _details(comparison: Comparison) -> str:
    lines = ["<details><summary>Intervals, starts and reasons</summary>\n"]
    for curve in comparison.curves:
        lines.append(f"{curve.curve}: {counted(curve.statements)}, correction: {curve.correction}.\n")
        for cell in curve.cells:
            lines.append(f"- {cell_sentence(cell)}")
        lines.append("")
    lines.append("</details>\n")
    return "\n".join(lines)


def cell_sentence(cell: Cell) -> str:
    """One cell in words: figure, interval, number of starts, verdict and reasons."""
    head = f"{cell.label} {cell.metric}"
    why = f"; {_messages(cell.reasons)}" if cell.reasons else ""
    e = cell.estimate
    if e is None:
        return f"{head}: {cell.verdict}{why}"
    starts = f"{len(e.first.values)} and {len(e.second.values)} starts"
    margin = f", margin {e.margin:.1%}" if e.margin is not None else ""
    return f"{head}: {figure_text(e)}, alone {interval_text(e)}, {starts}{margin}: {cell.verdict}{why}"


def counted(statements: int) -> str:
    """``1 statement``, ``7 statements``."""
    return f"{statements} statement{'' if statements == 1 else 's'}"


def _messages(reasons: Iterable[Reason]) -> str:
    return "; ".join(reason.message for reason in reasons)


def as_data(comparison: Comparison, beside: Beside = NOTHING) -> dict[str, Any]:
    """The comparison as JSON data: every cell with values by start, interval, p-values, verdict and reasons."""
    return {
        "first": comparison.first.name, "second": comparison.second.name,
        "notes": [_reason(note) for note in comparison.notes],
        "curves": [{"curve": c.curve, "correction": c.correction, "statements": c.statements,
                    "cells": [_cell_data(cell) for cell in c.cells]} for c in comparison.curves],
        "figures": [{"curve": f.curve, "x": f.x, "y": f.y, "verdict": str(f.verdict), "change": f.change,
                     "interval": list(f.interval) if f.interval else None, "points": list(f.points),
                     "range": None if f.change is None else [f.low, f.high],
                     "reasons": [_reason(r) for r in f.reasons]} for f in beside.figures],
        "coverage": [{"curve": c.curve, "kept": list(c.kept), "missing": list(c.missing), "added": list(c.added),
                      "bad": list(c.bad), "narrower": c.narrower} for c in beside.coverage],
        "rungs": [{"curve": r.curve, "side": r.side, "kind": r.kind, "points": list(r.labels)} for r in beside.rungs],
        "drift": [{"point": d.label, "metric": d.metric, "slope": d.slope,
                   "interval": list(d.interval) if d.interval else None, "order": "".join(d.order)}
                  for d in beside.drifts],
    }


def _cell_data(cell: Cell) -> dict[str, Any]:
    data: dict[str, Any] = {"point": cell.label, "metric": cell.metric, "verdict": str(cell.verdict),
                            "reasons": [_reason(r) for r in cell.reasons]}
    e = cell.estimate
    if e is None:
        return data
    ends = e.improvement_interval()
    return {
        **data, "unit": METRICS[e.metric].unit, "scale": e.scale, "margin": e.margin,
        "first": dict(zip(e.first.starts, e.first.values, strict=True)),
        "second": dict(zip(e.second.starts, e.second.values, strict=True)),
        "first-value": e.first.centre, "second-value": e.second.centre, "change": e.change,
        "improvement": e.improvement, "improvement-interval": list(ends) if ends else None,
        "p-differs": cell.p_differs, "p-same": cell.p_same, "look": cell.look,
        "floor": {"sd": e.floor.sd, "df": e.floor.df} if e.floor else None,
    }


def _reason(reason: Reason) -> dict[str, str]:
    return {"code": reason.code, "message": reason.message}


def counts(comparison: Comparison) -> dict[Verdict, int]:
    """Cells by verdict."""
    found = dict.fromkeys(Verdict, 0)
    for cell in comparison.cells:
        found[cell.verdict] += 1
    return found
