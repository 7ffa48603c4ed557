"""The data behind an HTML report: runs, points, series, frontiers and comparisons, as JSON-ready mappings.

Everything drawn comes from the ``Figure`` that pictures are drawn from, for every pair of axes the page offers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infx.compare.frontier import saturated
from infx.report.costs import with_costs
from infx.report.deltas import deltas
from infx.report.detail import detail
from infx.report.figure import Figure, build_figure, run_names
from infx.report.palette import COLOURS, MARKERS, ink
from infx.report.rows import table_rows
from infx.report.shown import marks, meaning, provenance, reasons, short
from infx.results.layout import PointKey
from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS
from infx.schema.result import PointResult, Status, Visit

X_AXES = ("interactivity-median", "interactivity-at-p90-tpot", "e2e-interactivity-median", "e2el-p50", "e2el-p90",
          "ttft-p50", "ttft-p90")
Y_AXES = ("output-throughput-per-gpu", "total-throughput-per-gpu", "input-throughput-per-gpu",
          "output-throughput-per-megawatt", "total-throughput-per-megawatt", "usd-per-million-output-tokens",
          "usd-per-million-total-tokens", "energy-per-output-token")
DETAILED = 1000
"""Results up to which each has distributions and time lines; beyond, the page keeps to figures."""


def page_data(runs: Sequence[LoadedRun], usd_per_gpu_hour: Mapping[str, float], price_note: str = "") -> dict[str, Any]:
    """All that the page shows. ``usd_per_gpu_hour`` is by hardware key, ``price_note`` says where prices are from."""
    runs = [with_costs(run, usd_per_gpu_hour) for run in runs]
    names = run_names(runs)
    points, index = _points(runs, names)
    figure = build_figure(runs, X_AXES, Y_AXES)
    full = len(points) <= DETAILED
    by_place = {(p["run"], p["key"], p["start"]): p for p in points}
    for run, name in zip(runs, names, strict=True):
        for result in run.results if full else ():
            found = detail(run, result, result.visits[0])
            by_place[(name, result.point, result.start)]["detail"] = {
                "histograms": {k: {"low": low, "high": high, "counts": counts}
                               for k, (low, high, counts) in found.histograms.items()},
                "seconds": found.seconds, "lines": found.lines, "missing": found.missing,
                "engine": {k: {"x": x, "y": y} for k, (x, y) in found.engine.items()},
            }
    changes = deltas(runs, names)
    used = {cell["metric"] for delta in changes for cell in delta["cells"]}
    used |= {name for p in points for name in (*p["values"], *p["empty"])}
    return {
        "title": figure.title,
        "banners": list(figure.banners),
        "notes": list(figure.notes),
        "left_out": list(figure.left_out),
        "runs": [_run(run, name) for run, name in zip(runs, names, strict=True)],
        "metrics": {
            name: {"title": m.title, "unit": m.unit, "better": m.better, "share": m.statistic == "share"}
            for name, m in METRICS.items() if name in used or name in X_AXES or name in Y_AXES
        },
        "x_axes": list(X_AXES), "y_axes": list(Y_AXES),
        "series": _series(figure),
        "panels": _panels(figure, index),
        **_compact(points),
        "saturated": _saturated(points),
        "deltas": changes,
        "price_note": price_note,
        "detailed": full,
    }


def _points(runs: Sequence[LoadedRun], names: Sequence[str]) -> tuple[list[dict[str, Any]], dict[tuple, int]]:
    made: list[dict[str, Any]] = []
    index: dict[tuple, int] = {}
    for run, name in zip(runs, names, strict=True):
        for point in run.plan.points:
            parts = PointKey.parse(point.key)
            place = {"run": name, "key": point.key, "short": short(point.key), "arm": parts.arm, "axes": parts.axes,
                     "concurrency": point.concurrency, "gpus": point.parallel.gpus,
                     "fingerprint": point.fingerprint}
            results = run.of(point.key)
            if not results:
                made.append({**place, "start": None, "status": "missing", "chosen": True, "reasons":
                             ["no start has measured it"], "values": {}, "empty": {}, "counts": {}})
            for result in results:
                index[(name, point.key, result.start)] = len(made)
                made.append({**place, **_result(run, result)})
    return made, index


def _result(run: LoadedRun, result: PointResult) -> dict[str, Any]:
    visit, start = result.visits[0], run.starts[result.start]
    values = _values(visit)
    return {
        "start": result.start, "status": str(result.status), "reasons": reasons(result),
        "chosen": run.chosen(result.point) is result, "counts": dict(visit.counts), "failures": dict(visit.failures),
        "values": {name: [_digits(v.value), _digits(v.low), _digits(v.high), v.n]
                   for name, v in values.items() if v.value is not None},
        "empty": {name: v.reason for name, v in values.items() if v.value is None},
        "node": start.node, "image": start.image, "digest": start.digest, "version": start.version.get("version"),
        "visits": len(result.visits),
    }


def _values(visit: Visit):
    return {**visit.client, **visit.engine, **visit.metrics}


def _digits(value: float | None) -> float | None:
    """Six significant digits: more than any interval tells, and half the bytes."""
    return None if value is None else float(f"{value:.6g}")


def _compact(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Points with their figures as columns by metric, and texts that many points share named once by number."""
    texts: dict[str, int] = {}
    lean = [{key: value for key, value in p.items() if key not in ("values", "empty")} for p in points]
    for place, p in zip(lean, points, strict=True):
        place["empty"] = {name: texts.setdefault(reason, len(texts)) for name, reason in p["empty"].items()}
    names = dict.fromkeys(name for p in points for name in p["values"])
    columns = {name: _column([p["values"].get(name) for p in points]) for name in names}
    return {"points": lean, "columns": columns, "texts": list(texts)}


def _column(cells: Sequence[list | None]) -> list[list | None]:
    """[values, lows, highs, ns]; a part that every point lacks is null."""
    parts = [[None if cell is None else cell[i] for cell in cells] for i in range(4)]
    return [part if any(item is not None for item in part) else None for part in parts]


def _run(run: LoadedRun, name: str) -> dict[str, Any]:
    return {
        "name": name, "id": run.run.id, "recipe": run.run.recipe, "state": str(run.state),
        "marks": [{"word": mark, "meaning": meaning(mark)} for mark in marks(run)],
        "provenance": provenance(run), "notes": table_rows(run).notes, "command": run.run.command,
        "observed": [
            {"start": start.id, "name": o.name, "wanted": o.wanted, "found": o.found, "verdict": o.verdict,
             "evidence": o.evidence}
            for start in run.starts.values() for o in start.observed
        ],
    }


def _series(figure: Figure) -> list[dict[str, Any]]:
    return [
        {"label": s.label, "group": s.group, "run": s.run, "arm": s.arm, "axes": s.axes,
         "colour": (colour := COLOURS[s.colour % len(COLOURS)]), "ink": ink(colour),
         "marker": MARKERS[s.marker % len(MARKERS)][1]}
        for s in figure.series
    ]


def _panels(figure: Figure, index: Mapping[tuple, int]) -> dict[str, dict[str, Any]]:
    """By ``x|y``: dots of each series as indices into points, and the frontier of each group in ascending x."""
    runs = {series.label: series.run for series in figure.series}
    found = {}
    for panel in figure.panels:
        dots = {
            label: [index[(runs[label], dot.point, dot.start)] for dot in series]
            for label, series in panel.dots.items() if series
        }
        fronts = {
            group: [index[(runs[labels[0]], dot.point, dot.start)] for dot in panel.frontier_of(labels)]
            for group, labels in figure.groups().items()
        }
        near = [index[(runs[label], dot.point, dot.start)] for label, series in panel.dots.items()
                for dot in series if dot.near]
        found[f"{panel.x}|{panel.y}"] = {"dots": dots, "frontier": fronts, "near": near}
    return found


def _saturated(points: Sequence[dict[str, Any]]) -> list[int]:
    """Indices of chosen points that buy no output over a lower concurrency of their series."""
    series: dict[tuple, list[int]] = {}
    for i, p in enumerate(points):
        if p["chosen"] and p["status"] == str(Status.OK) and "output-throughput-per-gpu" in p["values"]:
            series.setdefault((p["run"], p["arm"], p["axes"]), []).append(i)
    found = []
    for indices in series.values():
        indices.sort(key=lambda i: points[i]["concurrency"])
        rates = [points[i]["values"]["output-throughput-per-gpu"][0] for i in indices]
        found += [indices[i] for i in saturated(rates)]
    return sorted(found)
