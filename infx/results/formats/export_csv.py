"""Export of runs to CSV: one row a point and start, every metric with its interval; empty means no figure.

What is empty has its reason in the last column. Row order is the plan's; missing points have a row too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from infx.results.layout import PointKey
from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS
from infx.schema.result import PointResult, Value

HEAD = ("run", "recipe", "arm", "layout", "gpus", "concurrency", "start", "visit", "status", "simulated", "quick",
        "unofficial", "fingerprint", "n")


def export_csv(runs: Sequence[LoadedRun]) -> str:
    """The CSV text: ``HEAD``, then each metric that any visit has as ``name [unit]``, ``name low``, ``name high``."""
    seen = {
        name for run in runs for result in run.results for visit in result.visits
        for name in (*visit.metrics, *visit.engine, *visit.client)
    }
    names = [name for name in METRICS if name in seen]
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    columns = [column for name in names for column in (_title(name), f"{name} low", f"{name} high")]
    table.writerow([*HEAD, *columns, "reasons", "empty because"])
    for run in runs:
        for point in run.plan.points:
            results = run.of(point.key)
            parts = PointKey.parse(point.key)
            place = [run.run.id, run.run.recipe, parts.arm or "", parts.axes, point.parallel.gpus, point.concurrency]
            if not results:
                marks = [run.simulated, run.quick, run.unofficial, point.fingerprint, ""]
                table.writerow([*place, "", "", "missing", *marks, *[""] * len(columns), "", ""])
            for result in results:
                for row in _rows(run, result, names):
                    table.writerow([*place, *row])
    return stream.getvalue()


def _rows(run: LoadedRun, result: PointResult, names: Sequence[str]):
    for visit in result.visits:
        values = {**visit.client, **visit.engine, **visit.metrics}
        cells: list[object] = []
        for name in names:
            value: Value | None = values.get(name)
            cells += ["", "", ""] if value is None else [_cell(value.value), _cell(value.low), _cell(value.high)]
        reasons = "; ".join(f"{reason.code}: {reason.message}" for reason in visit.reasons)
        empty = "; ".join(f"{name}: {value.reason}" for name, value in values.items() if value.value is None)
        yield [
            result.start, visit.ordinal, str(visit.status), run.simulated, run.quick, run.unofficial,
            result.fingerprint, visit.counts.get("measured", ""), *cells, reasons, empty,
        ]


def _title(name: str) -> str:
    unit = METRICS[name].unit
    return f"{name} [{unit}]" if unit else name


def _cell(value: float | None) -> object:
    return "" if value is None else repr(value)
