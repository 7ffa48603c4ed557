"""A picture as data: panels of measured points, their series and frontiers, and what is not drawn and why.

The same ``Figure`` feeds the SVG, the PNG and the HTML page. Nothing here draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from infx.report.frontier import frontier
from infx.report.rows import measured
from infx.report.shown import marks, meaning, reasons, short
from infx.results.layout import PointKey
from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS
from infx.schema.plan import FixedWorkload, Plan
from infx.schema.result import PointResult, Status, Value

X_AXES = ("interactivity-median", "e2el-p50", "ttft-p50")
Y_AXES = ("output-throughput-per-gpu", "total-throughput-per-gpu")


@dataclass(frozen=True)
class Dot:
    """One measured point in one start: its place, the ends of its intervals, and whether it stands for its point.

    ``near``: dominated, but within the intervals no point is clear of it on both axes.
    """

    point: str
    start: str
    concurrency: int
    x: float
    y: float
    x_range: tuple[float, float] | None
    y_range: tuple[float, float] | None
    chosen: bool
    on_frontier: bool = False
    near: bool = False


@dataclass(frozen=True)
class Series:
    """A run, arm and layout: ``group`` (run and arm) shares a frontier; colour and marker are palette indices."""

    label: str
    group: str
    run: str
    arm: str | None
    axes: str
    colour: int
    marker: int


@dataclass(frozen=True)
class Panel:
    """One pair of axes (metric names) with the dots of every series that has any, in concurrency order."""

    x: str
    y: str
    dots: dict[str, tuple[Dot, ...]]

    def frontier_of(self, labels: Sequence[str]) -> list[Dot]:
        """Dots on the frontier among the series ``labels``, in ascending x."""
        found = [dot for label in labels for dot in self.dots.get(label, ()) if dot.on_frontier]
        return sorted(found, key=lambda dot: (dot.x, dot.y))


@dataclass(frozen=True)
class Figure:
    """The whole picture: ``banners`` must be read first.

    ``left_out`` names every point that is not drawn at all, ``gaps`` those that lack a figure of some panel.
    """

    title: str
    banners: tuple[str, ...]
    series: tuple[Series, ...]
    panels: tuple[Panel, ...]
    left_out: tuple[str, ...]
    gaps: tuple[str, ...]
    notes: tuple[str, ...]

    def groups(self) -> dict[str, list[str]]:
        """Labels of the series that share a frontier, by group."""
        found: dict[str, list[str]] = {}
        for series in self.series:
            found.setdefault(series.group, []).append(series.label)
        return found


def build_figure(
    runs: Sequence[LoadedRun], x_axes: Sequence[str] = X_AXES, y_axes: Sequence[str] = Y_AXES
) -> Figure:
    """The figure of ``runs``: one panel a pair of axes, one series a run, arm and layout.

    Only results whose status is ok are drawn, each start of a point as its own dot; frontiers are made of the
    chosen ones. A frontier belongs to a run and arm, across its layouts.
    """
    names = run_names(runs)
    series = _series(runs, names)
    ready = _ready(series, dict(zip(names, runs, strict=True)))
    panels = tuple(_panel(x, y, series, ready) for y in y_axes for x in x_axes)
    title = " · ".join(dict.fromkeys(f"{run.run.recipe}" for run in runs))
    left_out = [line for name, run in zip(names, runs, strict=True) for line in _left_out(run, name, len(runs) > 1)]
    gaps = tuple(_gaps(panels, runs, names))
    return Figure(title, _banners(runs, names), tuple(series), panels, tuple(left_out), gaps, tuple(_notes(runs)))


def run_names(runs: Sequence[LoadedRun]) -> list[str]:
    """A short distinct name a run: the token at the end of its id, or the id where tokens collide."""
    tokens = [run.run.id.rsplit("-", 1)[-1] for run in runs]
    return tokens if len(set(tokens)) == len(tokens) else [f"{run.run.id}#{i}" for i, run in enumerate(runs, 1)]


def _ready(series: Sequence[Series], runs: dict[str, LoadedRun]) -> dict[str, list[tuple[PointResult, bool]]]:
    """The results to draw by series label, in concurrency order, with whether each stands for its point."""
    labels = {(one.run, one.arm, one.axes): one.label for one in series}
    ready: dict[str, list[tuple[PointResult, bool]]] = {one.label: [] for one in series}
    for name, run in runs.items():
        for result in run.results:
            if result.status is Status.OK:
                parts = PointKey.parse(result.point)
                label = labels[name, parts.arm, parts.axes]
                ready[label].append((result, run.chosen(result.point) is result))
    return {label: sorted(found, key=lambda pair: pair[0].concurrency) for label, found in ready.items()}


def _series(runs: Sequence[LoadedRun], names: Sequence[str]) -> list[Series]:
    made: dict[str, Series] = {}
    layouts: dict[str, int] = {}
    for run, name in zip(runs, names, strict=True):
        for point in run.plan.points:
            parts = PointKey.parse(point.key)
            group = " ".join([*([name] if len(runs) > 1 else []), *([parts.arm] if parts.arm else [])])
            label = f"{group} {parts.axes}".strip()
            if label in made:
                continue
            marker = layouts.setdefault(parts.axes, len(layouts))
            made[label] = Series(label, group or "this run", name, parts.arm, parts.axes, len(made), marker)
    return list(made.values())


def _panel(x: str, y: str, series: Sequence[Series], ready: dict[str, list[tuple[PointResult, bool]]]) -> Panel:
    dots = {one.label: tuple(_dots(x, y, ready[one.label])) for one in series}
    groups: dict[str, list[str]] = {}
    for one in series:
        groups.setdefault(one.group, []).append(one.label)
    for labels in groups.values():
        chosen = [(label, i) for label in labels for i, dot in enumerate(dots[label]) if dot.chosen]
        places = [(dots[label][i].x, dots[label][i].y) for label, i in chosen]
        best = {chosen[i] for i in frontier(places, METRICS[x].better, METRICS[y].better)}
        boxes = {place: _corners(dots[place[0]][place[1]], METRICS[x].better, METRICS[y].better) for place in chosen}
        near = {p for p in chosen if p not in best and not any(_clear_of(boxes[q], boxes[p]) for q in best)}
        for label in labels:
            dots[label] = tuple(
                replace(dot, on_frontier=(label, i) in best, near=(label, i) in near)
                if (label, i) in best or (label, i) in near else dot
                for i, dot in enumerate(dots[label])
            )
    return Panel(x, y, dots)


def _dots(x: str, y: str, ready: Sequence[tuple[PointResult, bool]]) -> Iterator[Dot]:
    for result, chosen in ready:
        across, up = (measured(result.visits[0], name) for name in (x, y))
        if across is None or up is None or across.value is None or up.value is None:
            continue
        yield Dot(
            result.point, result.start, result.concurrency, across.value, up.value, _range(across), _range(up),
            chosen=chosen,
        )


def _corners(dot: Dot, x_better: str, y_better: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Worst and best ends of a dot's intervals on both axes, signed so that higher is better."""
    axes = []
    for value, ends, better in ((dot.x, dot.x_range, x_better), (dot.y, dot.y_range, y_better)):
        sign = 1.0 if better == "higher" else -1.0
        axes.append(sorted(sign * end for end in ends or (value, value)))
    (x_worst, x_best), (y_worst, y_best) = axes
    return (x_worst, y_worst), (x_best, y_best)


def _clear_of(one: tuple, other: tuple) -> bool:
    """True when even the worst corner of ``one`` is at least as good as the best corner of ``other``."""
    return one[0][0] >= other[1][0] and one[0][1] >= other[1][1]


def _range(value: Value) -> tuple[float, float] | None:
    return None if value.low is None or value.high is None else (value.low, value.high)


def _banners(runs: Sequence[LoadedRun], names: Sequence[str]) -> tuple[str, ...]:
    found: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        for mark in marks(run):
            found.setdefault(mark, []).append(name)
    return tuple(
        f"{mark}: {meaning(mark)}" + ("" if len(who) == len(runs) else f" (in {', '.join(who)})")
        for mark, who in found.items()
    )


def _left_out(run: LoadedRun, name: str, several: bool) -> Iterator[str]:
    head = f"{name} " if several else ""
    for point in run.plan.points:
        result: PointResult | None = run.chosen(point.key)
        if result is None:
            yield f"{head}{short(point.key)}: missing, no start has measured it"
        elif result.status is not Status.OK:
            said = "; ".join(reasons(result)) or "no reason was stored"
            yield f"{head}{short(point.key)}: {result.status}, {said}"


def _gaps(panels: Sequence[Panel], runs: Sequence[LoadedRun], names: Sequence[str]) -> Iterator[str]:
    """Good points that lack one of the figures of a panel, by figure and reason."""
    why: dict[tuple[str, str], list[str]] = {}
    axes = dict.fromkeys(axis for panel in panels for axis in (panel.x, panel.y))
    total = 0
    for run, name in zip(runs, names, strict=True):
        for point in run.plan.points:
            result = run.chosen(point.key)
            if result is None or result.status is not Status.OK:
                continue
            total += 1
            for axis in axes:
                value = measured(result.visits[0], axis)
                if value is None or value.value is None:
                    reason = "not in the result" if value is None else str(value.reason)
                    who = f"{name} {short(point.key)}" if len(runs) > 1 else short(point.key)
                    why.setdefault((axis, reason), []).append(who)
    for (axis, reason), points in why.items():
        who = "every good point" if len(points) == total > 1 else ", ".join(points)
        yield f"{who}: no {METRICS[axis].title}, {reason}"


def _notes(runs: Sequence[LoadedRun]) -> Iterator[str]:
    yield (
        "Filled marks are on the frontier of their run and arm, hollow ones are dominated by another of its points, "
        "pale ones too, but not beyond their intervals. "
        "Dotted lines and steps only guide the eye: nothing was measured between marks. Numbers are concurrencies; "
        "bars are 95 % intervals within a start."
    )
    if len({_workload(run.plan) for run in runs}) > 1:
        yield "These runs differ in workload: " + "; ".join(dict.fromkeys(_workload(run.plan) for run in runs)) + "."
    if len({run.plan.hardware for run in runs}) > 1:
        yield "These runs differ in hardware: " + ", ".join(dict.fromkeys(run.plan.hardware for run in runs)) + "."
    if len({run.run.client_version for run in runs}) > 1:
        yield "These runs were measured by different versions of the load client."


def _workload(plan: Plan) -> str:
    work = plan.points[0].workload
    if isinstance(work, FixedWorkload):
        return f"{work.isl}/{work.osl} {work.dataset.kind}"
    return f"{work.traces} for {work.duration_s:g} s"
