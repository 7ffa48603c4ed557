"""When the window opens and closes, and when a load is over: a pure state machine, told the time.

ramp → open → drain → done. The window opens half a mean gap between ends after all lanes have ended one request
and begun one of phase main (the end of a request is no typical instant: a prefill follows it). It closes by
``WindowRule``; the drain lasts until the last request that started in the window ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from infx.run.load.spec import LoadSpec
from infx.run.load.worker import Snapshot


class Stage(StrEnum):
    RAMP = "ramp"
    OPEN = "open"
    DRAIN = "drain"
    DONE = "done"


class Ending(StrEnum):
    """Why the load ended. Only the first three give a full window."""

    COMPLETE = "complete"
    CAP = "cap"
    EXHAUSTED = "exhausted"
    FAILING = "failing"
    HUNG = "hung"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is shown to whoever waits."""

    stage: Stage
    elapsed_s: float
    window_s: float
    in_flight: int
    ended: int
    failed: int
    measured_ended: int
    minimum_requests: int
    tokens: int


class Controller:
    """Moves from stage to stage; ``enough(now_ns)`` may close a window early once the minimum is met."""

    def __init__(self, spec: LoadSpec, began_ns: int, enough: Callable[[int], bool] | None = None) -> None:
        self._spec = spec
        self._began_ns = began_ns
        self._enough = enough
        self.stage = Stage.RAMP
        self.open_ns = self.close_ns = 0
        self.ending: Ending | None = None
        self.message = ""
        self._open_after_ns = 0

    def step(self, now_ns: int, snapshots: Sequence[Snapshot], stop: bool) -> Stage:
        """The stage that holds from ``now_ns`` on."""
        if self.stage is Stage.DONE:
            return self.stage
        total = _sum(snapshots)
        trouble = self._trouble(now_ns, total, stop)
        if trouble is not None:
            self._finish(now_ns, *trouble)
        elif self.stage is Stage.RAMP:
            self._ramp(now_ns, total)
        elif self.stage is Stage.OPEN:
            self._open(now_ns, total)
        elif all(s.close_known for s in snapshots) and not total.outstanding:
            self.stage = Stage.DONE
        elif now_ns - self.close_ns > self._spec.drain_s * 1e9:
            self.stage = Stage.DONE
            self.message = f"requests still ran {self._spec.drain_s:g} s after the window and were cut"
        return self.stage

    def progress(self, now_ns: int, snapshots: Sequence[Snapshot]) -> Progress:
        total = _sum(snapshots)
        until = self.close_ns or now_ns
        return Progress(
            self.stage, (now_ns - self._began_ns) / 1e9, (until - self.open_ns) / 1e9 if self.open_ns else 0.0,
            total.in_flight, total.ended, total.failed, total.measured_ended,
            self._spec.window.minimum_requests, total.tokens,
        )  # fmt: skip

    def _ramp(self, now_ns: int, total: Snapshot) -> None:
        if self._spec.arrivals is not None:
            ready = now_ns - self._began_ns >= self._spec.arrivals.warmup_s * 1e9
        else:
            if not self._open_after_ns and total.lanes_ready >= total.lanes:
                self._open_after_ns = now_ns + (now_ns - self._began_ns) // (2 * total.lanes)
            ready = self._open_after_ns and now_ns >= self._open_after_ns
        if self._spec.arrivals is None and not total.lanes_live:
            self._finish(now_ns, Ending.EXHAUSTED, "the workload ended before every lane had ended one request")
        elif ready:
            self.stage, self.open_ns = Stage.OPEN, now_ns

    def _open(self, now_ns: int, total: Snapshot) -> None:
        rule, passed = self._spec.window, (now_ns - self.open_ns) / 1e9
        if self._spec.arrivals is None and not total.lanes_live:
            self.ending = Ending.EXHAUSTED
        elif rule.duration_s is not None:
            if passed >= rule.duration_s:
                self.ending = Ending.COMPLETE
        elif self._minimum_met(passed, total) and (self._enough is None or self._enough(now_ns)):
            self.ending = Ending.COMPLETE
        if self.ending is None and passed >= rule.cap_s and rule.duration_s is None:
            self.ending = Ending.CAP
        if self.ending is not None:
            self.stage, self.close_ns = Stage.DRAIN, now_ns

    def _minimum_met(self, passed: float, total: Snapshot) -> bool:
        rule = self._spec.window
        return passed >= rule.minimum_s and total.measured_ended >= rule.minimum_requests

    def _trouble(self, now_ns: int, total: Snapshot, stop: bool) -> tuple[Ending, str] | None:
        if stop:
            return Ending.STOPPED, "asked to stop"
        if total.failures_in_a_row >= self._spec.failures_in_a_row:
            return Ending.FAILING, f"{total.failures_in_a_row} requests failed in a row; the last: {total.last_failure}"
        silent_s = (now_ns - max(total.last_byte_ns, self._began_ns)) / 1e9
        if total.in_flight and silent_s > self._spec.stall_s:
            return Ending.HUNG, f"no byte for {silent_s:.0f} s with {total.in_flight} requests in flight"
        return None

    def _finish(self, now_ns: int, ending: Ending, message: str) -> None:
        if self.open_ns and not self.close_ns:
            self.close_ns = now_ns
        if self.stage is not Stage.DRAIN or self.ending is None or ending is not Ending.STOPPED:
            self.ending = ending
        self.message = message
        self.stage = Stage.DONE


def _sum(snapshots: Sequence[Snapshot]) -> Snapshot:
    total = Snapshot()
    for one in snapshots:
        total.lanes += one.lanes
        total.lanes_ready += one.lanes_ready
        total.lanes_live += one.lanes_live
        total.in_flight += one.in_flight
        total.ended += one.ended
        total.failed += one.failed
        total.failures_in_a_row += one.failures_in_a_row
        total.measured_started += one.measured_started
        total.measured_ended += one.measured_ended
        total.outstanding += one.outstanding
        total.tokens += one.tokens
        total.last_byte_ns = max(total.last_byte_ns, one.last_byte_ns)
        total.last_failure = one.last_failure or total.last_failure
    return total
