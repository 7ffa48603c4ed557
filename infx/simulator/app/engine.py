"""The engine behind the HTTP skin: one task that steps the scheduler on the virtual clock and hands out tokens."""

from __future__ import annotations

import asyncio

from infx.simulator.app.clock import VirtualClock
from infx.simulator.app.log import Log
from infx.simulator.deployment import Deployment
from infx.simulator.metrics import Metrics
from infx.simulator.sequence import Sequence

LATE = 0.002
EVERY = 10.0


class Stream:
    """Tokens on their way to one request: counts that were not fetched yet, and why it ended."""

    __slots__ = ("_waiter", "finish", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self.finish: str | None = None
        self._waiter: asyncio.Future[None] | None = None

    def push(self, tokens: int, finish: str | None) -> None:
        """More tokens; a reader that is behind gets them merged, as the engine's own clients do."""
        self.tokens += tokens
        self.finish = finish
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def fetch(self) -> tuple[int, str | None]:
        """(new tokens, finish reason or None), once there is one of them."""
        if not self.tokens and self.finish is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        tokens, self.tokens = self.tokens, 0
        return tokens, self.finish


class Engine:
    """Owns scheduler, clock and metrics of a running server."""

    def __init__(self, deployment: Deployment, clock: VirtualClock, metrics: Metrics, log: Log) -> None:
        self.deployment = deployment
        self.scheduler = metrics.scheduler
        self.clock = clock
        self.metrics = metrics
        self._log = log
        self._wake = asyncio.Event()
        self._now = 0.0
        self._number = 0
        self._front: dict[int, Sequence] = {}
        self._proof = dict(deployment.features.proof)
        self._reported = (0.0, 0, 0, 0, 0, [])

    def submit(self, **facts: object) -> Sequence:
        """Queue a request (the keywords of ``Sequence``); ValueError where it can never be served."""
        sequence = Sequence(self._number, arrival=self.clock.now(), **facts)  # type: ignore[arg-type]
        sequence.sink = Stream()
        self._number += 1
        wait = self.scheduler.timer.front(len(self.scheduler.running))
        if not wait:
            self.scheduler.add(sequence)
            self._wake.set()
            return sequence
        self.scheduler.check(sequence)
        self._front[sequence.id] = sequence
        asyncio.get_running_loop().call_later(wait / self.clock.speed, self._seen, sequence)
        return sequence

    def _seen(self, sequence: Sequence) -> None:
        """The front end hands a request to the engine core, unless its client has gone meanwhile."""
        if self._front.pop(sequence.id, None) is not None:
            self.scheduler.add(sequence)
            self._wake.set()

    def abort(self, sequence: Sequence) -> None:
        """The client went away."""
        if self._front.pop(sequence.id, None) is not None:
            sequence.finish_reason = "abort"
            self.metrics.ended("abort")
            sequence.sink.push(0, "abort")
        elif self.scheduler.abort(sequence):
            self.metrics.ended("abort")
            sequence.sink.push(0, "abort")

    def abort_all(self) -> None:
        """The server is going down: every request ends where it is."""
        for sequence in [*self.scheduler.running, *self.scheduler.waiting, *self._front.values()]:
            self.abort(sequence)

    async def run(self) -> None:
        """Step for ever."""
        asyncio.get_running_loop().call_later(EVERY / self.clock.speed, self._report)
        while True:
            if not self.scheduler.busy:
                self._wake.clear()
                await self._wake.wait()
                self._now = max(self._now, self.clock.now())
            result = self.scheduler.step(self._now)
            if result is None:
                continue
            self._now = result.ended
            lag = await self.clock.until(result.ended)
            self._account_lag(lag)
            self.metrics.step(result)
            for sequence, tokens, _ in result.outputs:
                if sequence.finish_reason != "abort":
                    sequence.sink.push(tokens, sequence.finish_reason)
            for name in result.engaged:
                if name in self._proof:
                    self._log.line(self._proof.pop(name), place="mono_decode.py:1")

    def _account_lag(self, lag: float) -> None:
        metrics = self.metrics
        metrics.lag = lag
        metrics.lag_worst = max(metrics.lag_worst, lag)
        if lag > LATE * self.clock.speed:
            metrics.late_steps += 1

    def _report(self) -> None:
        """The throughput lines that the engine logs every ten seconds while it is in use."""
        totals, metrics = self.scheduler.totals, self.metrics
        now = self.clock.now()
        per = list(totals.accepted_per_position)
        state = (now, totals.prompt_computed, totals.generated, totals.drafts, totals.accepted_tokens, per)
        before, self._reported = self._reported, state
        span = now - before[0]
        asyncio.get_running_loop().call_later(EVERY / self.clock.speed, self._report)
        if state[2] == before[2] and state[1] == before[1]:
            return
        hits = totals.prefix_hits / totals.prefix_queries if totals.prefix_queries else 0.0
        self._log.line(
            f"Engine 000: Avg prompt throughput: {(state[1] - before[1]) / span:.1f} tokens/s, Avg generation "
            f"throughput: {(state[2] - before[2]) / span:.1f} tokens/s, Running: {metrics.running} reqs, Waiting: "
            f"{metrics.waiting} reqs, GPU KV cache usage: {self.scheduler.cache.usage:.1%}, Prefix cache hit rate: "
            f"{hits:.1%}",
            who="APIServer", place="loggers.py:271",
        )  # fmt: skip
        drafts, accepted = state[3] - before[3], state[4] - before[4]
        if drafts:
            drafted = drafts * len(per)
            old = before[5] or [0] * len(per)
            rates = ", ".join(f"{(new - was) / drafts:.3f}" for new, was in zip(per, old, strict=True))
            self._log.line(
                f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, Accepted throughput: "
                f"{accepted / span:.2f} tokens/s, Drafted throughput: {drafted / span:.2f} tokens/s, Accepted: "
                f"{accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, Avg Draft "
                f"acceptance rate: {100 * accepted / drafted:.1f}%",
                who="APIServer", place="metrics.py:120",
            )  # fmt: skip
