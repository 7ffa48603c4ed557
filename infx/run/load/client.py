"""``run_load``: one load on one engine, from the first request to the last measured one.

Its caller gives a workload and gets all requests as a table, the window, and the client's own health.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter_ns

import numpy as np
import uvloop

from infx.measure.stop import Look
from infx.measure.table import RequestTable
from infx.run.load.control import Controller, Ending, Progress, Stage
from infx.run.load.health import WorkerHealth
from infx.run.load.pool import Pool
from infx.run.load.records import Batch
from infx.run.load.retokenise import retokenise
from infx.run.load.spec import LoadSpec
from infx.run.load.watch import Watch
from infx.run.load.worker import Snapshot, Worker
from infx.workload.lanes import LaneSource

TICK_S = 0.05
PROGRESS_S = 0.5
STREAMS_A_WORKER = 256


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """The measured window on the monotonic clock, and its wall-clock ends (to join telemetry only)."""

    open_ns: int
    close_ns: int
    opened_unix: float
    closed_unix: float

    @property
    def seconds(self) -> float:
        return (self.close_ns - self.open_ns) / 1e9


@dataclass(frozen=True, slots=True)
class LoadOutput:
    """Everything a load leaves: requests of all phases, the window (None: it never opened), health.

    ``ending`` says why it ended and ``message`` explains a bad ending; ``failures`` counts failed requests of
    all phases by kind and ``first_messages`` holds the first message of each kind; ``seconds`` has the wall
    time of ramp, window and drain; ``texts`` maps rows of ``table`` to the text of responses that nobody counted;
    ``looks`` are those of the sequential stop rule, the last one being the one that closed the window.
    """

    table: RequestTable
    window: LoadWindow | None
    health: list[WorkerHealth]
    ending: Ending
    message: str
    began_ns: int
    ended_ns: int
    failures: dict[str, int]
    first_messages: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)


def workers_for(concurrency: int) -> int:
    """How many load workers to start: one up to 256 streams, then one for each 256, at most the cores."""
    return max(1, min(os.cpu_count() or 1, -(-concurrency // STREAMS_A_WORKER)))


def run_load(
    spec: LoadSpec,
    source: LaneSource,
    *,
    on_window_open: Callable[[], None] | None = None,
    on_window_close: Callable[[], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    processes: int | None = None,
) -> LoadOutput:
    """Run one load and wait for its end.

    ``processes`` worker processes share the lanes (None: ``workers_for``); 0 runs the only worker in this
    process, where the caller's own threads would disturb it. The callbacks are called in this process while
    the load goes on: ``on_window_open`` and ``on_window_close`` in threads of their own right after the window
    opened and closed (scrape there), ``on_progress`` twice a second, ``should_stop`` 20 times a second.
    Never raises for what the engine does: a dead, hung or failing engine ends the load with failures counted
    and ``ending`` set. Raises UsageError for a workload that does not fit the endpoint and whatever a callback
    raised.
    """
    _raise_descriptor_limit()
    count = workers_for(spec.concurrency) if processes is None else processes
    run = _Run(spec, _Hooks(on_window_open, on_window_close, on_progress, should_stop))
    try:
        if count:
            return run.pooled(source, min(count, spec.concurrency))
        return uvloop.run(run.here(source))
    finally:
        run.threads.shutdown(wait=True)


@dataclass(slots=True)
class _Hooks:
    opened: Callable[[], None] | None
    closed: Callable[[], None] | None
    progress: Callable[[Progress], None] | None
    stop: Callable[[], bool] | None


class _Run:
    """One load: a controller between workers (here or in processes) and the caller's hooks."""

    def __init__(self, spec: LoadSpec, hooks: _Hooks) -> None:
        self.spec = spec
        self.hooks = hooks
        self.began_ns = perf_counter_ns()
        self.watch = Watch(spec.window.target) if spec.window.target is not None else None
        self.control = Controller(spec, self.began_ns, self.watch.enough if self.watch else None)
        self.unix = {Stage.OPEN: 0.0, Stage.DRAIN: 0.0}
        self.threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="infx-window")
        self.calls: list[Future[None]] = []
        self.told: set[Stage] = set()
        self.next_progress = 0

    async def here(self, source: LaneSource) -> LoadOutput:
        worker = Worker(self.spec, source, range(self.spec.concurrency))
        worker.monitor.watch_gc()
        loading = asyncio.create_task(worker.run())
        health = None
        try:
            batches: list[Batch] = []
            while not loading.done():
                if len(worker.records):
                    batches.append(worker.records.take())
                stage = self._step([worker.snapshot()], batches)
                if self._entered(Stage.OPEN):
                    worker.open_ns = self.control.open_ns
                    worker.mark()
                if self._entered(Stage.DRAIN):
                    worker.close_ns = self.control.close_ns
                    health = worker.health()
                if stage is Stage.DONE:
                    break
                await asyncio.sleep(TICK_S)
        finally:
            worker.stop()
            worker.monitor.unwatch_gc()
            await loading
        records = worker.records
        return self._output([*batches, records.take()], [health or worker.health()], {0: records.texts},
                            [records.errors])  # fmt: skip

    def pooled(self, source: LaneSource, count: int) -> LoadOutput:
        with Pool(self.spec, source, count) as pool:
            while True:
                pool.wait(TICK_S)
                stage = self._step(pool.snapshots, pool.batches)
                if self._entered(Stage.OPEN):
                    pool.open(self.control.open_ns)
                if self._entered(Stage.DRAIN):
                    pool.close(self.control.close_ns)
                if stage is Stage.DONE:
                    break
            pool.stop()
            return self._output(pool.batches, pool.health, pool.texts, pool.errors)

    def _entered(self, stage: Stage) -> bool:
        """True the first time that it is asked after ``stage`` (open, drain) was entered."""
        entered = self.control.open_ns if stage is Stage.OPEN else self.control.close_ns
        if not entered or stage in self.told:
            return False
        self.told.add(stage)
        return True

    def _step(self, snapshots: list[Snapshot], batches: list[Batch]) -> Stage:
        now = perf_counter_ns()
        if self.watch is not None and not self.control.close_ns:
            self.watch.take(snapshots, batches, self.control.open_ns)
        stop = self.hooks.stop is not None and self.hooks.stop()
        stage = self.control.step(now, snapshots, stop)
        for key, entered, hook in (
            (Stage.OPEN, self.control.open_ns, self.hooks.opened),
            (Stage.DRAIN, self.control.close_ns, self.hooks.closed),
        ):
            if entered and not self.unix[key]:
                self.unix[key] = time.time() - (perf_counter_ns() - entered) / 1e9
                if hook is not None:
                    self.calls.append(self.threads.submit(hook))
        if self.hooks.progress is not None and now >= self.next_progress:
            self.next_progress = now + int(PROGRESS_S * 1e9)
            self.hooks.progress(self.control.progress(now, snapshots))
        return stage

    def _output(self, batches: list[Batch], health: list[WorkerHealth], texts: dict[int, dict[int, str]],
                errors: list[dict[str, str]]) -> LoadOutput:  # fmt: skip
        self.threads.shutdown(wait=True)
        for call in self.calls:
            call.result()
        control, ended_ns = self.control, perf_counter_ns()
        table = RequestTable.from_batches(batches)
        window = None
        if control.open_ns and control.close_ns > control.open_ns:
            window = LoadWindow(control.open_ns, control.close_ns, self.unix[Stage.OPEN], self.unix[Stage.DRAIN])
        opened, closed = control.open_ns or ended_ns, control.close_ns or ended_ns
        rows = {row: text for worker, found in texts.items()
                for row, text in zip(np.flatnonzero(table["worker"] == worker)[list(found)].tolist(), found.values(),
                                     strict=True)}  # fmt: skip
        table = retokenise(table, rows, self.spec)
        seconds = {"ramp": (opened - self.began_ns) / 1e9, "window": (closed - opened) / 1e9,
                   "drain": (ended_ns - closed) / 1e9}  # fmt: skip
        messages: dict[str, str] = {}
        for found in errors:
            messages = {**found, **messages}
        return LoadOutput(table, window, health, control.ending or Ending.STOPPED, control.message, self.began_ns,
                          ended_ns, table.failures(), messages, seconds, rows,
                          self.watch.rule.looks if self.watch else [])  # fmt: skip


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
