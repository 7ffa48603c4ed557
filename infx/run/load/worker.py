"""One load worker: keeps its lanes busy on one event loop and writes down what came back.

It knows nothing of windows beyond two timestamps that its controller sets; it never decides to stop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from time import perf_counter_ns

from infx.errors import LoadError
from infx.measure.columns import Outcome
from infx.run.load.arrivals import arrival_times
from infx.run.load.decode import Response
from infx.run.load.encode import PIECE, Encoder
from infx.run.load.health import LAG_INTERVAL_S, Monitor, WorkerHealth
from infx.run.load.protocol import Connection
from infx.run.load.records import Records
from infx.run.load.spec import LoadSpec
from infx.workload.lanes import LaneSource
from infx.workload.session import Due, Phase, Request

READS_PER_TURN = 32
_NEVER = 1 << 62


@dataclass(slots=True)
class Snapshot:
    """What a controller needs to know of a worker, now."""

    lanes: int = 0
    lanes_ready: int = 0
    lanes_live: int = 0
    in_flight: int = 0
    ended: int = 0
    failed: int = 0
    failures_in_a_row: int = 0
    measured_started: int = 0  # phase main, sent in the window
    measured_ended: int = 0  # of those, ended well
    tokens: int = 0  # received since the start, at ``at_ns``
    at_ns: int = 0
    outstanding: int = 0  # measured requests in flight
    close_known: bool = False
    last_byte_ns: int = 0
    last_failure: str = ""


class Flight:
    """One request in flight: the exchange that a ``Connection`` talks to."""

    __slots__ = ("connection", "data", "monitor", "reads", "reconnects", "request", "response", "scheduled_ns",
                 "sent_ns", "started_ns", "worker")  # fmt: skip

    def __init__(self, worker: Worker, request: Request, scheduled_ns: int) -> None:
        self.worker = worker
        self.request = request
        self.scheduled_ns = scheduled_ns
        self.started_ns = perf_counter_ns()
        self.sent_ns = 0
        self.reads = self.reconnects = 0
        self.response = Response(keep_ids=request.need_ids)
        self.connection: Connection | None = None
        self.data = b""

    def body(self, ns: int, data: bytes) -> bool:
        if not self.reads:
            self.data = b""  # no second sending any more; prompts of agents are megabytes
        self.reads += 1
        self.response.read(ns, data)
        return not self.response.error

    def ended(self, ns: int, status: int, failure: Outcome | None, reusable: bool) -> None:
        self.worker.exchange_ended(self, ns, status, failure, reusable)


class Worker:
    """Plays ``source`` on ``lanes`` against ``spec.base_url``; see ``run``."""

    def __init__(self, spec: LoadSpec, source: LaneSource, lanes: Iterable[int], *, number: int = 0,
                 workers: int = 1) -> None:  # fmt: skip
        self.spec = spec
        self.source = source
        self.lanes = list(lanes)
        self.number, self.workers = number, workers
        self.monitor = Monitor()
        self.records = Records(number)
        self.began_ns = 0  # when arrivals of an open loop count from (0: from the call of ``run``)
        self.open_ns, self.close_ns = _NEVER, _NEVER
        self.state = Snapshot(lanes=len(self.lanes))
        self._encoder = Encoder(spec)
        self._prepare = getattr(source, "prepare", None)
        self._idle: list[Connection] = []
        self._flights: set[Flight] = set()
        self._ended_tokens = self._ended_events = 0
        self._pending: dict[int, int] = dict.fromkeys(self.lanes, 0)  # lane → requests in flight or due
        self._begun_main: set[int] = set()
        self._ended_once: set[int] = set()
        self._ready: set[int] = set()
        self._lane_failures: dict[int, int] = {}
        self._queue: deque[Connection] = deque()
        self._draining = False
        self._timers: set[asyncio.TimerHandle] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._begun = False
        self._crashed: BaseException | None = None
        self._stop = asyncio.Event()

    # -- life --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Load until ``stop`` is called; then cut what is in flight and return."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._crash)
        self.state.last_byte_ns = perf_counter_ns()
        self._watch(perf_counter_ns(), 1)
        if self.spec.arrivals is None:
            for lane in self.lanes:
                self._schedule(self.source.start(lane), lane)
        else:
            self._spawn(self._arrive())
        self._begun = True
        try:
            await self._stop.wait()
        finally:
            self._timer.cancel()
            self._cut()
            await asyncio.sleep(0)
        if self._crashed is not None:
            raise self._crashed

    def _crash(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """A fault in a callback of ours or of the workload ends the load; it must not stall a lane."""
        error = context.get("exception")
        if self._crashed is None:
            self._crashed = error if isinstance(error, BaseException) else LoadError(str(context.get("message")))
        self.stop()

    def stop(self) -> None:
        self._stopping = True
        self._stop.set()

    def snapshot(self) -> Snapshot:
        """The present state; ``outstanding`` counts measured requests (sent in the window) still in flight."""
        self._tally()
        self.state.at_ns = perf_counter_ns()
        self.state.in_flight = len(self._flights)
        self.state.outstanding = sum(1 for flight in self._flights if self._measured(flight))
        self.state.close_known = self.close_ns < _NEVER
        self.state.lanes_ready = len(self._ready)
        self.state.lanes_live = sum(1 for count in self._pending.values() if count) if self._begun else len(self.lanes)
        return self.state

    def mark(self) -> None:
        """Begin the stretch of time that ``health`` describes."""
        self._tally()
        self.monitor.mark()

    def health(self) -> WorkerHealth:
        self._tally()
        return self.monitor.report()

    def _tally(self) -> None:
        """Add up what ended and what is in flight, now that it is asked for: not at every read."""
        self.state.tokens = self._ended_tokens + sum(flight.response.count for flight in self._flights)
        self.monitor.events = self._ended_events + sum(flight.response.events for flight in self._flights)

    def _measured(self, flight: Flight) -> bool:
        sent = flight.sent_ns or flight.started_ns
        return flight.request.phase is Phase.MAIN and self.open_ns <= sent < self.close_ns

    def _watch(self, due: int, tick: int) -> None:
        """Loop lag every 20 ms, time-outs every fifth of a second."""
        now = perf_counter_ns()
        self.monitor.lag(now - due)
        if tick % 10 == 0:
            self._time_out()
        due = max(due, now - 10**9) + int(LAG_INTERVAL_S * 1e9)
        self._timer = self._loop.call_later(max(0.0, (due - now) / 1e9), self._watch, due, tick + 1)

    def _time_out(self) -> None:
        now = perf_counter_ns()
        limit = int(self.spec.request_timeout_s * 1e9)
        for flight in [flight for flight in self._flights if now - flight.started_ns > limit]:
            if flight.connection is not None:
                flight.connection.abort()
            self._end(flight, now, 0, Outcome.TIMEOUT, f"no end after {self.spec.request_timeout_s:g} s")

    def _cut(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        self._work_off(1 << 30)
        now = perf_counter_ns()
        for flight in list(self._flights):
            if flight.connection is not None:
                flight.connection.abort()
            self._end(flight, now, 0, Outcome.CUT, "")
        for connection in self._idle:
            connection.abort()

    # -- sending -----------------------------------------------------------------------------------------

    async def _arrive(self) -> None:
        """Open loop: every arrival is a lane of its own, started when its time has come."""
        began = self.began_ns or perf_counter_ns()
        for index, at in enumerate(arrival_times(self.spec.arrivals)):
            if index % self.workers != self.number:
                continue
            due = began + int(at * 1e9)
            wait = (due - perf_counter_ns()) / 1e9
            if wait > 0:
                await asyncio.sleep(wait)
            while perf_counter_ns() < due:  # the loop's timers have a resolution of 1 ms and may be early
                await asyncio.sleep(0)
            if self._stopping:
                return
            self._pending[index] = 0
            for item in self.source.start(index):
                self._launch(item.request, due + int(item.delay_s * 1e9))

    def _schedule(self, dues: list[Due], lane: int, base_ns: int = 0, extra_s: float = 0.0) -> None:
        base_ns = base_ns or perf_counter_ns()
        for due in dues:
            self._launch(due.request, base_ns + int(due.delay_s * 1e9), extra_s)
        if not self._pending.get(lane):
            self._ready.add(lane)  # nothing (more) to do: nobody needs to wait for it

    def _launch(self, request: Request, scheduled_ns: int, extra_s: float = 0.0) -> None:
        self._pending[request.lane] += 1
        wait = max(0.0, (scheduled_ns - perf_counter_ns()) / 1e9) + extra_s
        if not wait:
            self._start(request, scheduled_ns)
            return

        def fire() -> None:
            self._timers.discard(timer)
            if self._stopping:
                return
            if perf_counter_ns() < scheduled_ns:  # timers of 1 ms resolution may be early
                self._loop.call_soon(fire)
            else:
                self._start(request, scheduled_ns)

        timer = self._loop.call_later(wait, fire)
        self._timers.add(timer)

    def _start(self, request: Request, scheduled_ns: int) -> None:
        flight = Flight(self, request, scheduled_ns)
        self._flights.add(flight)
        if request.phase is Phase.MAIN:
            self._begun_main.add(request.lane)
            if request.lane in self._ended_once:
                self._ready.add(request.lane)
        if request.prompt_tokens > PIECE:
            self._spawn(self._start_long(flight))
            return
        flight.data = self._encoder.encode(request)
        self._dispatch(flight)

    async def _start_long(self, flight: Flight) -> None:
        """Encode a long prompt a piece a turn: the other streams' stamps must not wait for all of it."""
        pieces = []
        for piece in self._encoder.pieces(flight.request):
            pieces.append(piece)
            await asyncio.sleep(0)
        flight.data = self._encoder.message(flight.request, pieces)
        if flight in self._flights:
            self._dispatch(flight)

    def _dispatch(self, flight: Flight) -> None:
        while self._idle:
            connection = self._idle.pop()
            if connection.idle:
                self._send(flight, connection)
                return
        self._spawn(self._connect(flight))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._reap)

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._crash(self._loop, {"exception": task.exception()})

    async def _connect(self, flight: Flight) -> None:
        failure = Outcome.CONNECT
        try:
            async with asyncio.timeout(self.spec.connect_timeout_s):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self), self.spec.host, self.spec.port
                )
        except TimeoutError:
            failure, connection = Outcome.CONNECT_TIMEOUT, None
            message = f"no connection within {self.spec.connect_timeout_s:g} s"
        except OSError as error:
            connection, message = None, str(error)
        if flight not in self._flights:  # cut or timed out meanwhile
            if connection is not None:
                connection.abort()
        elif connection is None:
            self._end(flight, perf_counter_ns(), 0, failure, message)
        else:
            self._send(flight, connection)

    def _send(self, flight: Flight, connection: Connection) -> None:
        flight.connection = connection
        flight.sent_ns = connection.send(flight.data, flight)
        if connection.uses == 1:
            flight.data = b""  # only a used connection can turn out to have been closed
        self.state.measured_started += self._measured(flight)
        if self._prepare is not None:
            self._loop.call_later(0.001, self._prepare, flight.request.lane, flight.request)

    # -- receiving ---------------------------------------------------------------------------------------

    def enqueue(self, connection: Connection, urgent: bool) -> None:
        """Ask for ``connection.process``: ended responses first, since a refill waits for them."""
        if urgent:
            self._queue.appendleft(connection)
        else:
            self._queue.append(connection)
        if not self._draining:
            self._draining = True
            self._loop.call_soon(self._drain)

    def closed(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def _drain(self) -> None:
        self._work_off(READS_PER_TURN)
        if self._queue:
            self._loop.call_soon(self._drain)
        else:
            self._draining = False

    def _work_off(self, reads: int) -> None:
        queue, left = self._queue, reads
        while queue and left > 0:
            left -= queue.popleft().process()
        self.monitor.reads += reads - left
        self.state.last_byte_ns = perf_counter_ns()

    def exchange_ended(self, flight: Flight, ns: int, status: int, failure: Outcome | None, reusable: bool) -> None:
        connection = flight.connection
        untouched = failure is Outcome.CONNECTION_LOST and connection.uses > 1 and not connection.received
        if untouched and self._stopping:
            failure = Outcome.CUT
        elif untouched and not flight.reconnects:
            # The server closed an idle connection while the request was on its way: nothing was begun.
            flight.reconnects += 1
            flight.connection = None
            self._spawn(self._connect(flight))  # another idle one may have been closed too
            return
        if reusable and not self._stopping:
            self._idle.append(connection)
        told = failure and status not in (0, 200)
        self._end(flight, ns, status, failure, f"HTTP {status}: {connection.error_body}" if told else "")

    def _end(self, flight: Flight, ns: int, status: int, failure: Outcome | None, message: str) -> None:
        self._flights.discard(flight)
        request, state = flight.request, self.state
        self._ended_tokens += flight.response.count
        self._ended_events += flight.response.events
        outcome = self.records.add(
            request, flight.response, scheduled_ns=flight.scheduled_ns, sent_ns=flight.sent_ns, end_ns=ns,
            status=status, reads=flight.reads, reconnects=flight.reconnects, failure=failure, message=message,
        )  # fmt: skip
        state.ended += 1
        state.measured_ended += outcome is Outcome.OK and self._measured(flight)
        lane = request.lane
        self._pending[lane] -= 1
        extra = 0.0
        if outcome.failed:
            state.failed += 1
            state.failures_in_a_row += 1
            state.last_failure = f"{outcome.label}: {message or flight.response.error_text}".rstrip(": ")
            self._lane_failures[lane] = self._lane_failures.get(lane, 0) + 1
            # The first failure is refilled at once; a lane that fails again and again must not spin.
            if self._lane_failures[lane] >= 3:
                self._ended_once.add(lane)  # others must not wait for a lane that never succeeds
            if self._lane_failures[lane] > 1:
                extra = min(0.25, 0.005 * 2 ** min(self._lane_failures[lane], 6))
        elif outcome is Outcome.OK:
            self._ended_once.add(lane)
            state.failures_in_a_row = 0
            self._lane_failures.pop(lane, None)
        if not self._stopping:
            ids = flight.response.ids if outcome is Outcome.OK else None
            self._schedule(self.source.finished(request, ids), lane, ns, extra)
        if self.spec.arrivals is not None and not self._pending.get(lane):
            self._pending.pop(lane, None)
