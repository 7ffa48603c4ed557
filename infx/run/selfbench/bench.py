"""Running the load client against the null server, rung by rung of streams."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from infx.errors import LoadError
from infx.measure.summary import summarise
from infx.measure.window import Span
from infx.run.load.client import run_load, workers_for
from infx.run.load.health import client_bound
from infx.run.load.pool import child_environment
from infx.run.load.spec import LoadSpec, WindowRule
from infx.workload.lanes import FixedLength
from infx.workload.random import TokenIds


@dataclass(frozen=True, slots=True)
class Rung:
    """What the client did at one number of streams, every stream at ``1000 / tick_ms`` tokens a second.

    ``events_per_s`` of all workers; ``us_per_event``: CPU of all workers ÷ events; ``ceiling``: events a second at
    which the busiest worker would use 90 % of a core; ``reasons``: why the rung was client-bound, if it was.
    """

    streams: int
    workers: int
    events_per_s: float
    us_per_event: float
    cpu_share: float
    lag_p99_ms: float
    ceiling: float
    failed: int
    reasons: list[str]


@contextmanager
def null_server(*options: str) -> Iterator[str]:
    """A null server in a process of its own; yields its base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "infx.run.selfbench.null_server", *options],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=child_environment(), start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        if line[:1] != ["PORT"]:
            raise LoadError("the null server did not start")
        yield f"http://127.0.0.1:{line[1]}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def climb(
    streams: list[int], *, seconds: float = 3.0, tick_ms: float = 20.0, processes: int | None = None,
    tell: Callable[[Rung], None] | None = None,
) -> list[Rung]:
    """One load of ``seconds`` for each number of ``streams``; 200 tokens a request, prompts of 128 ids."""
    rungs = []
    with null_server("--tick-ms", str(tick_ms), "--first-ms", "20") as url:
        for count in streams:
            rung = _rung(url, count, seconds, tick_ms, processes)
            rungs.append(rung)
            if tell is not None:
                tell(rung)
    return rungs


def _rung(url: str, streams: int, seconds: float, tick_ms: float, processes: int | None) -> Rung:
    workers = workers_for(streams) if processes is None else processes
    source = FixedLength(TokenIds(30_000), 128, 200, seed=streams, salt="selfbench")
    spec = LoadSpec(url, "null", streams, WindowRule(duration_s=seconds), drain_s=30)
    output = run_load(spec, source, processes=processes)
    if output.window is None:
        raise LoadError(f"no window at {streams} streams: {output.message}")
    made = summarise(output.table, Span(output.window.open_ns, output.window.close_ns), gpus=1, concurrency=streams)
    health = output.health
    events = sum(worker.events / worker.wall_s for worker in health)
    busiest = max(worker.cpu_share for worker in health)
    cpu = sum(worker.cpu_s / worker.wall_s for worker in health)
    return Rung(
        streams, max(1, workers), events, cpu / events * 1e6 if events else 0.0, busiest,
        max(worker.lag_p99_ms for worker in health), events * 0.9 / busiest if busiest else 0.0,
        int(made["requests-failed-all"].value or 0), client_bound(health, tick_ms),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a ceiling means for one concurrency of a ladder."""

    concurrency: int
    fastest_tpot_ms: float
    verdict: str


def meaning(rungs: list[Rung], ladder: list[int]) -> list[Meaning]:
    """For each concurrency the shortest time per token (one event a token) that the client can watch here.

    The ceiling is taken from the rung with at least that many streams (else the largest), measured with as many
    workers as a sweep would start.
    """
    found = []
    for concurrency in sorted(set(ladder)):
        rung = min((r for r in rungs if r.streams >= concurrency), key=lambda r: r.streams, default=rungs[-1])
        tpot = concurrency / rung.ceiling * 1000 if rung.ceiling else float("inf")
        verdict = f"client-bound only below {tpot:.2f} ms a token ({1000 / tpot:,.0f} tok/s/user)"
        found.append(Meaning(concurrency, tpot, verdict))
    return found
