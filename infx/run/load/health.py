"""The client's own health: loop lag, CPU share, reads a second, collector pauses; and when it is the limit."""

from __future__ import annotations

import gc
import resource
from array import array
from dataclasses import dataclass
from time import perf_counter_ns

LAG_INTERVAL_S = 0.02
CPU_LIMIT = 0.9
LAG_FLOOR_MS = 5.0
LAG_SHARE_OF_TPOT = 0.5


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """What one worker process used and suffered between the window's opening and its close.

    ``lag_ms`` are p50, p99 and maximum of the lateness of a timer that ticks every 20 ms (one tick of the
    timer wheel, 1 ms, is taken off: no loop is better than that). ``cpu_s`` counts user and system time of
    the whole process, deferred decoding included.
    """

    wall_s: float
    cpu_s: float
    reads: int
    events: int
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    gc_pause_max_ms: float
    gc_pause_total_ms: float
    max_rss_bytes: int

    @property
    def cpu_share(self) -> float:
        return self.cpu_s / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def reads_per_s(self) -> float:
        return self.reads / self.wall_s if self.wall_s > 0 else 0.0


class Monitor:
    """Collects the health of this process; ``mark`` begins the stretch that ``report`` describes."""

    def __init__(self) -> None:
        self.reads = 0
        self.events = 0
        self._lags = array("q")
        self._pauses = array("q")
        self._pause_began = 0
        self.mark()

    def mark(self) -> None:
        self._from_ns = perf_counter_ns()
        self._from_cpu = _cpu_s()
        self._from_reads, self._from_events = self.reads, self.events
        del self._lags[:]
        del self._pauses[:]

    def lag(self, late_ns: int) -> None:
        """Record that the loop's timer fired ``late_ns`` after it was due."""
        self._lags.append(max(0, late_ns - 1_000_000))

    def on_gc(self, phase: str, info: dict[str, int]) -> None:
        """For ``gc.callbacks``."""
        if phase == "start":
            self._pause_began = perf_counter_ns()
        else:
            self._pauses.append(perf_counter_ns() - self._pause_began)

    def watch_gc(self) -> None:
        """Watch collections, and make them rare: what exists now is taken for permanent."""
        gc.collect()
        gc.freeze()
        self._threshold = gc.get_threshold()
        gc.set_threshold(50_000, 50, 50)
        gc.callbacks.append(self.on_gc)

    def unwatch_gc(self) -> None:
        if self.on_gc in gc.callbacks:
            gc.callbacks.remove(self.on_gc)
            gc.unfreeze()
            gc.set_threshold(*self._threshold)

    def report(self) -> WorkerHealth:
        lags = sorted(self._lags) or [0]
        return WorkerHealth(
            wall_s=(perf_counter_ns() - self._from_ns) / 1e9,
            cpu_s=_cpu_s() - self._from_cpu,
            reads=self.reads - self._from_reads,
            events=self.events - self._from_events,
            lag_p50_ms=lags[len(lags) // 2] / 1e6,
            lag_p99_ms=lags[min(len(lags) - 1, int(len(lags) * 0.99))] / 1e6,
            lag_max_ms=lags[-1] / 1e6,
            gc_pause_max_ms=max(self._pauses, default=0) / 1e6,
            gc_pause_total_ms=sum(self._pauses) / 1e6,
            max_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def client_bound(workers: list[WorkerHealth], tpot_ms: float | None) -> list[str]:
    """Why the client, not the engine, may have set these numbers; empty when it did not.

    A worker is the limit when it used more than 90 % of a core, or when the p99 of its loop lag is above
    5 ms and above half of the median TPOT.
    """
    reasons = []
    for number, worker in enumerate(workers):
        if worker.cpu_share > CPU_LIMIT:
            reasons.append(f"load worker {number} used {worker.cpu_share:.0%} of a core (limit {CPU_LIMIT:.0%})")
        limit = max(LAG_FLOOR_MS, LAG_SHARE_OF_TPOT * tpot_ms if tpot_ms is not None else 0.0)
        if worker.lag_p99_ms > limit:
            reasons.append(f"load worker {number}: p99 of loop lag is {worker.lag_p99_ms:.1f} ms (limit {limit:.1f})")
    return reasons
