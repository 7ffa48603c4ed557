"""The rows of a run's table as data: one a point of the plan, with the notes that belong under it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from infx.predict.expect import off_curve as ratios_off
from infx.report.frontier import frontier
from infx.report.shown import reasons, short
from infx.results.layout import PointKey
from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS
from infx.schema.plan import Point
from infx.schema.result import PointResult, Status, Value, Visit

COLUMNS: tuple[tuple[str, str], ...] = (
    ("output-throughput-per-gpu", "output"),
    ("total-throughput-per-gpu", "total"),
    ("interactivity-median", "inter-\nactivity"),
    ("ttft-p50", "TTFT\np50"),
    ("ttft-p90", "TTFT\np90"),
    ("tpot-p50", "TPOT\np50"),
    ("e2el-p50", "E2EL\np50"),
    ("acceptance-length", "AL"),
    ("mono-share", "mono"),
    ("prefix-hit-share", "prefix\nhits"),
    ("limit-share", "of\nlimit"),
    ("prediction-ratio", "÷ pre-\ndicted"),
)
"""Metric and heading of each column of figures."""

TOLERANCE = {"prediction-ratio": 0.15, "limit-share": 0.25}
"""Ratio → how far a point may be from its neighbours' line, the surer ratio first.

On the one measured table at hand (vllm#61573, both arms) the roofline's own bends make up to 18 % of limit-share; the
simulator is within 9 % of its held-out cells.
"""

FRONTIER, WANTED = ("total-throughput-per-gpu", "e2el-p50"), 5
"""Axes of the frontier that reviewers count, and how many points of it they ask for."""

OPTIONAL = frozenset({"acceptance-length", "mono-share", "prefix-hit-share", "limit-share", "prediction-ratio"})
"""Columns that are left out when no point has them."""


@dataclass(frozen=True)
class Row:
    """One point: where it stands, its status and its figures (None where there is none)."""

    group: str
    concurrency: int
    status: str
    n: int | None
    failed: int | None
    figures: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """A run's table: rows in plan order, the columns that hold anything, and notes to stand under it."""

    rows: list[Row]
    columns: list[tuple[str, str]]
    notes: list[str]


def table_rows(loaded: LoadedRun) -> Rows:
    """The table of a run. Figures are those of each point's chosen result, first visit."""
    rows = [_row(point, loaded.chosen(point.key)) for point in loaded.plan.points]
    filled = {name for row in rows for name, figure in row.figures.items() if figure is not None}
    columns = [column for column in COLUMNS if column[0] not in OPTIONAL or column[0] in filled]
    notes = [*_not_ok(loaded), *off_curve(loaded), *few_on_frontier(loaded), *_absent(loaded, columns)]
    notes += [*_revisits(loaded), *_deaths(loaded)]
    return Rows(rows, columns, notes)


def measured(visit: Visit, name: str) -> Value | None:
    """The value called ``name``, wherever the visit keeps it (client's, engine's or client health)."""
    return visit.metrics.get(name) or visit.engine.get(name) or visit.client.get(name)


def _row(point: Point, result: PointResult | None) -> Row:
    parts = PointKey.parse(point.key)
    group = f"{parts.arm} {parts.axes}" if parts.arm else parts.axes
    if result is None:
        return Row(group, point.concurrency, "missing", None, None)
    visit = result.visits[0]
    figures = {name: value.value if (value := measured(visit, name)) else None for name, _ in COLUMNS}
    return Row(
        group, point.concurrency, str(result.status), visit.counts.get("measured"), visit.counts.get("failed"), figures
    )


def _not_ok(loaded: LoadedRun) -> Iterator[str]:
    for point in loaded.plan.points:
        result = loaded.chosen(point.key)
        if result is None:
            yield f"{short(point.key)} is missing: no start has measured it"
        elif result.status is not Status.OK:
            said = "; ".join(reasons(result)) or "no reason was stored"
            yield f"{short(point.key)} is {result.status}: {said}"
        else:
            yield from (f"{short(point.key)}: {line}" for line in reasons(result))


def off_curve(loaded: LoadedRun) -> Iterator[str]:
    """Points whose ratio to the prediction, or else to the limit, is far from their neighbours' on the same curve."""
    curves: dict[tuple[str | None, str], dict[str, list[tuple[int, float]]]] = {}
    for point in loaded.plan.points:
        result = loaded.chosen(point.key)
        if result is None or result.status is not Status.OK:
            continue
        here = curves.setdefault((point.arm, point.parallel.axes()), {name: [] for name in TOLERANCE})
        for name in TOLERANCE:
            value = measured(result.visits[0], name)
            if value is not None and value.value:
                here[name].append((point.concurrency, value.value))
    for (arm, axes), ratios in curves.items():
        name = next((name for name in TOLERANCE if ratios[name]), None)
        for concurrency, off in ratios_off(ratios[name], TOLERANCE[name]) if name else ():
            what = METRICS[name].title.lower() if name else ""
            yield (f"{f'{arm} ' if arm else ''}{axes} c{concurrency} is off its curve: {what} is {off:+.0%} against "
                   "the line between its neighbours; look for a slow node, a feature that did not engage, a neighbour")


def few_on_frontier(loaded: LoadedRun) -> Iterator[str]:
    """Curves with fewer than five frontier points once measured (rule R-040 counts what a recipe plans)."""
    curves: dict[str, list[tuple[float, float]]] = {}
    counted = [] if loaded.quick or loaded.missing else loaded.plan.points
    for point in counted:
        result = loaded.chosen(point.key)
        curve = curves.setdefault(point.arm or "base", [])
        if result is not None and result.status is Status.OK:
            seen = [measured(result.visits[0], name) for name in FRONTIER]
            figures = [value.value for value in seen if value is not None and value.value is not None]
            if len(figures) == len(FRONTIER):
                curve.append((figures[0], figures[1]))
    better = [METRICS[name].better for name in FRONTIER]
    for arm, curve in curves.items():
        count = len(frontier(curve, better[0], better[1]))
        if count < WANTED:
            yield (f"the frontier of {arm} has {count} of {len(curve)} measured points in throughput per GPU and E2EL; "
                   f"{WANTED} or more are wanted (R-040)")


def _absent(loaded: LoadedRun, columns: list[tuple[str, str]]) -> Iterator[str]:
    """Why figures of good points are missing, points with one reason together."""
    why: dict[tuple[str, str], list[str]] = {}
    for point in loaded.plan.points:
        result = loaded.chosen(point.key)
        if result is None or result.status is not Status.OK:
            continue
        for name, _ in columns:
            value = measured(result.visits[0], name)
            if value is None or value.value is None:
                reason = "not in the result" if value is None else value.reason
                why.setdefault((name, str(reason)), []).append(short(point.key))
    total = len(loaded.plan.points)
    for (name, reason), points in why.items():
        where = "all points" if len(points) == total else ", ".join(points)
        yield f"no {METRICS[name].title} at {where}: {reason}"


def _revisits(loaded: LoadedRun) -> Iterator[str]:
    for result in loaded.results:
        first = measured(result.visits[0], "output-throughput-per-gpu")
        for again in result.visits[1:]:
            value = measured(again, "output-throughput-per-gpu")
            if first and value and first.value and value.value is not None:
                drift = f"output {value.value / first.value - 1:+.1%} against its first visit"
            else:
                drift = f"{again.status}, no drift to show"
            yield f"{short(result.point)} revisited in start {result.start}: {drift}"


def _deaths(loaded: LoadedRun) -> Iterator[str]:
    for start in loaded.starts.values():
        if start.death is not None:
            yield f"start {start.id} ({start.block}) ended: {start.death.reason}: {start.death.message}"
            yield from (f"    {line}" for line in start.death.lines[-3:])
        for observed in start.observed:
            if observed.verdict == "mismatch":
                yield (
                    f"start {start.id}: {observed.name} wanted {observed.wanted!r}, found {observed.found!r}"
                    f" ({observed.evidence or 'no evidence stored'})"
                )
