"""The delta view of a report: arms against their base and runs against the first, each with its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infx.compare.sides import Side, side_of
from infx.compare.verdict import Cell, compare
from infx.results.load import LoadedRun

MOST = 12
"""Comparisons a page holds; further runs are to be compared on purpose, by `infx compare`."""


def deltas(runs: Sequence[LoadedRun], names: Sequence[str]) -> list[dict[str, Any]]:
    """Comparisons of a report: in each run every arm against the base, and every run's base against the first's."""
    pairs: list[tuple[Side, Side]] = []
    named = list(zip(runs, names, strict=True))[: MOST + 1]
    for run, name in named:
        arms = list(dict.fromkeys(point.arm for point in run.plan.points))
        if None in arms:
            base = side_of(f"{name} base", [run])
            pairs += [(base, side_of(f"{name} {arm}", [run], arm)) for arm in arms if arm is not None]
    first = side_of(f"{names[0]} base", [runs[0]])
    pairs += [(first, side_of(f"{name} base", [run])) for run, name in named[1:]]
    return [_comparison(one, other) for one, other in pairs[:MOST]]


def _comparison(first: Side, second: Side) -> dict[str, Any]:
    found = compare(first, second)
    return {
        "first": first.name, "second": second.name,
        "notes": [reason.message for reason in found.notes],
        "cells": [_cell(cell) for cell in found.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    made: dict[str, Any] = {
        "label": cell.label, "metric": cell.metric, "verdict": str(cell.verdict),
        "reasons": [reason.message for reason in cell.reasons],
    }
    if cell.estimate is not None:
        interval = cell.estimate.improvement_interval()
        made |= {"first": cell.estimate.first.centre, "second": cell.estimate.second.centre,
                 "change": cell.estimate.change, "improvement": cell.estimate.improvement,
                 "interval": None if interval is None else list(interval)}
    return made
