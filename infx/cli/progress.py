"""A sweep as it runs: bars on a terminal, one line a point in a pipe."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TextIO

from infx.run.events import (
    BlockLost,
    EngineDied,
    EngineReady,
    EngineStarting,
    Event,
    PointDone,
    PointProgress,
    PointSkipped,
    QueueSeen,
    SweepBegan,
)
from infx.schema.result import PointResult, Visit


@contextlib.contextmanager
def narrator(stream: TextIO) -> Iterator[Callable[[Event], None]]:
    """Yields the sink of a sweep's events: bars when ``stream`` is a terminal, plain lines otherwise."""
    if not stream.isatty():
        seen: list[str] = [""]
        yield lambda event: _line(stream, event, seen)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=stream, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bars(progress, console).tell


class _Bars:
    """Two bars: points of the sweep, and what happens now."""

    def __init__(self, progress: object, console: object) -> None:
        self.progress = progress
        self.console = console
        self.whole = self.part = None

    def tell(self, event: Event) -> None:
        progress = self.progress
        if isinstance(event, SweepBegan):
            self.whole = progress.add_task("points", total=event.points, note=event.run)
            self.part = progress.add_task("starting", total=1.0, note="")
        elif isinstance(event, EngineStarting):
            progress.update(self.part, description=f"engine {event.block}", completed=0,
                            note=f"{event.seconds:.0f} s {event.last_line[:60]}")
        elif isinstance(event, PointProgress):
            progress.update(self.part, description=_short(event.point), completed=event.share,
                            note=f"{event.phase}, {event.requests} requests")
        elif isinstance(event, QueueSeen):
            over = event.done + event.lost
            progress.update(self.part, description="jobs", total=over + event.queued + event.running, completed=over,
                            note=_queue_line(event))
        elif isinstance(event, PointSkipped) or (isinstance(event, PointDone) and event.visit == 0):
            progress.advance(self.whole)
        text = describe(event)
        if text:
            self.console.print(text, markup=False)


def _line(stream: TextIO, event: Event, queue: list[str]) -> None:
    """One line an event; the queue again only when it has changed."""
    text = describe(event)
    if isinstance(event, QueueSeen):
        text, queue[0] = ("" if _queue_line(event) == queue[0] else _queue_line(event)), _queue_line(event)
    if text:
        print(text, file=stream, flush=True)


def _queue_line(event: QueueSeen) -> str:
    lost = f", {event.lost} lost" if event.lost else ""
    why = f" ({event.why})" if event.why and event.why != "None" else ""
    return f"jobs: {event.queued} queued, {event.running} running, {event.done} done{lost}{why}"


def describe(event: Event) -> str:
    """One line for what stays on the screen; an empty string for what only moves a bar."""
    if isinstance(event, SweepBegan):
        return f"sweep of {event.points} points in {event.blocks} engine starts → {event.folder}"
    if isinstance(event, EngineReady):
        word = "SIMULATED engine" if event.start.simulated else "engine"
        return f"{word} {event.start.block} ready after {event.start.ready_s or 0:.1f} s"
    if isinstance(event, EngineDied):
        return "\n".join([f"engine {event.block}: {event.death.message}", *(f"  | {x}" for x in event.death.lines)])
    if isinstance(event, PointSkipped):
        return f"{_short(event.point):<24} skipped: {event.why}"
    if isinstance(event, BlockLost):
        return f"block {event.block}{f' (job {event.job})' if event.job else ''} ended early: {event.why}"
    if isinstance(event, PointDone):
        return _point_line(event.result, event.result.visits[event.visit])
    return ""


def _point_line(result: PointResult, visit: Visit) -> str:
    head = f"{_short(result.point):<24} {visit.status}{' (revisit)' if visit.ordinal else ''}"
    shown = [("output-throughput-per-gpu", "tok/s/GPU out"), ("interactivity-median", "tok/s/user"),
             ("ttft-p50", "ms TTFT")]
    figures = []
    for name, words in shown:
        value = visit.metrics.get(name)
        if value is not None and value.value is not None:
            figures.append(f"{value.value:,.1f} {words}")
    why = "" if not visit.reasons or str(visit.status) == "ok" else f"  {visit.reasons[0].message}"
    return f"{head:<36} {', '.join(figures)}{why}"


def _short(key: str) -> str:
    return key.split("@", 1)[1] if "@" in key else key.split("/", 1)[1]
