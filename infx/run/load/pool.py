"""Load workers as processes: fresh interpreters that share the lanes and report to their parent.

A worker is ``python -m infx.run.load.pool FD``; FD is one end of a socket pair. Parent → worker: the job,
then ("open", ns), ("close", ns), ("stop",). Worker → parent, five times a second: its snapshot and the
records of requests that ended; at last its health. ``perf_counter_ns`` is one clock for all processes of a
machine (CLOCK_MONOTONIC), so the parent's window holds for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import uvloop

from infx.errors import LoadError
from infx.run.load.health import WorkerHealth
from infx.run.load.records import Batch
from infx.run.load.spec import LoadSpec
from infx.run.load.worker import Snapshot, Worker
from infx.workload.lanes import LaneSource

REPORT_S = 0.2
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0


class Pool:
    """The parent's side. A context manager: on exit no worker process is left."""

    def __init__(self, spec: LoadSpec, source: LaneSource, count: int) -> None:
        self.snapshots = [Snapshot() for _ in range(count)]
        self.batches: list[Batch] = []
        self.health: list[WorkerHealth] = []
        self.errors: list[dict[str, str]] = []
        self.texts: dict[int, dict[int, str]] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Connection] = []
        self._ended: set[int] = set()
        self._readable = select.poll()
        self._scheduler = os.SCHED_OTHER
        for _ in range(count):
            self._spawn()
        for number, pipe in enumerate(self._pipes):
            lanes = list(range(number, spec.concurrency, count))
            self.snapshots[number].lanes = len(lanes)
            self.snapshots[number].lanes_live = len(lanes)
            pipe.send((spec, source, lanes, number, count))
        self._await_ready()

    def __enter__(self) -> Pool:
        self._scheduler = os.sched_getscheduler(0)
        _be_woken_at_once()  # the parent opens and closes the window
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, self._scheduler & ~os.SCHED_RESET_ON_FORK, os.sched_param(0))
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for pipe in self._pipes:
            pipe.close()

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        self._processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "infx.run.load.pool", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=child_environment(),
                # A session is a scheduling group (sched_autogroup): in the caller's, the worker would pay for
                # whatever else runs there, and was seen to wait for a second beside a busy engine.
                start_new_session=True,
            )  # fmt: skip
        )
        theirs.close()
        self._readable.register(ours.fileno(), select.POLLIN)
        self._pipes.append(Connection(ours.detach()))

    def _await_ready(self) -> None:
        """All workers begin together: wait until each has imported and read its job, then let them go."""
        for number, pipe in enumerate(self._pipes):
            try:
                if not pipe.poll(START_LIMIT_S):
                    raise LoadError(f"load worker {number} did not start within {START_LIMIT_S:g} s")
                pipe.recv()
            except (EOFError, OSError) as error:
                self.__exit__()
                raise LoadError(f"load worker {number} died at its start") from error
        self._tell("go", perf_counter_ns())

    def _tell(self, *message: object) -> None:
        for number, pipe in enumerate(self._pipes):
            if number not in self._ended:
                with contextlib.suppress(OSError):  # it died: ``wait`` will see it and say so
                    pipe.send(message)

    def open(self, ns: int) -> None:
        self._tell("open", ns)

    def close(self, ns: int) -> None:
        self._tell("close", ns)

    def wait(self, seconds: float) -> None:
        """Take in what the workers report, waiting at most ``seconds``; raises LoadError when one died."""
        ready = {descriptor for descriptor, _ in self._readable.poll(seconds * 1000)}
        for number, pipe in enumerate(self._pipes):
            if number in self._ended or pipe.fileno() not in ready:
                continue
            try:
                self._take(number, pipe.recv())
            except (EOFError, OSError) as error:
                self._end(number)
                code = self._processes[number].wait()
                raise LoadError(f"load worker {number} died (exit status {code})") from error

    def _take(self, number: int, message: tuple[str, Any]) -> None:
        kind, content = message
        if kind == "report":
            self.snapshots[number], batch = content
            if batch is not None:
                self.batches.append(batch)
        elif kind == "health":
            self.health.append(content)
        elif kind == "error":
            self._end(number)
            raise content
        else:
            texts, errors = content
            self.texts[number] = texts
            self.errors.append(errors)
            self._end(number)

    def _end(self, number: int) -> None:
        """Expect nothing more of a worker: a pipe at its end would be readable for ever."""
        self._ended.add(number)
        self._readable.unregister(self._pipes[number].fileno())

    def stop(self) -> None:
        """Cut what is in flight, gather the last records and let the workers end."""
        self._tell("stop")
        waited = 0.0
        while len(self._ended) < len(self._pipes) and waited < STOP_LIMIT_S:
            self.wait(0.1)
            waited += 0.1


def child_environment() -> dict[str, str]:
    """The environment of a process of ours: as here, with this very infx importable."""
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


async def _work(pipe: Connection) -> None:
    spec, source, lanes, number, count = pipe.recv()
    worker = Worker(spec, source, lanes, number=number, workers=count)
    pipe.send(("ready", None))
    worker.began_ns = pipe.recv()[1]
    worker.monitor.watch_gc()
    loop = asyncio.get_running_loop()
    health: list[WorkerHealth] = []

    def told(message: tuple[Any, ...]) -> None:
        if message[0] == "open":
            worker.open_ns = message[1]
            worker.mark()
        elif message[0] == "close":
            worker.close_ns = message[1]
            health.append(worker.health())
        else:
            worker.stop()

    def listen() -> None:
        """Blocks in a thread of its own: the loop would make the descriptor non-blocking, for sending too."""
        while True:
            try:
                message = pipe.recv()
            except (EOFError, OSError):  # the parent is gone
                message = ("stop",)
            loop.call_soon_threadsafe(told, message)
            if message[0] == "stop":
                return

    threading.Thread(target=listen, name="infx-orders", daemon=True).start()
    loading = asyncio.create_task(worker.run())
    while not loading.done():
        await asyncio.wait([loading], timeout=REPORT_S)
        report = (worker.snapshot(), worker.records.take() if len(worker.records) else None)
        # In a thread: a parent that is busy for a moment must not hold the streams up.
        await loop.run_in_executor(None, pipe.send, ("report", report))
    pipe.send(("health", health[0] if health else worker.health()))
    error = loading.exception()
    if error is not None:
        pipe.send(("error", error))
    pipe.send(("end", (worker.records.texts, worker.records.errors)))


def _be_woken_at_once() -> None:
    """Real-time scheduling where the user may: a read is stamped when the worker runs, not when bytes arrive.

    Beside an engine that spins on every core an ordinary process was seen to wait for a second.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def main() -> None:
    """Entry of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    _be_woken_at_once()
    with Connection(int(sys.argv[1])) as pipe:
        try:
            uvloop.run(_work(pipe))
        except (BrokenPipeError, EOFError):  # the parent is gone, and with it whoever wanted this load
            sys.exit(1)


if __name__ == "__main__":
    main()
