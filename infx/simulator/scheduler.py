"""Continuous batching in virtual time: one call of ``step`` is one engine step. Pure: no clock, no I/O, no randomness
but the seeded acceptance.

Order and rules follow vLLM's V1 scheduler: running sequences first, in order of admission; what is left of the token
budget admits waiting ones first-in first-out; a prompt is cut into chunks that fit the budget; without a free block
the youngest running sequence is preempted (its KV dropped, recomputed later) and returns to the head of the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from infx.predict.roofline import StepShape
from infx.predict.steptime import NO_SAVING, Saving, StepTimer
from infx.simulator.kvcache import KVCache
from infx.simulator.sequence import Sequence
from infx.simulator.specdec import Acceptance


class Engaged(NamedTuple):
    """Feature launches that a step takes: their names, and what they save."""

    names: tuple[str, ...] = ()
    saving: Saving = NO_SAVING


NOTHING = Engaged()
Engage = Callable[[int, int, bool], Engaged]


@dataclass(frozen=True, slots=True)
class Limits:
    """The server's caps: sequences in a step, tokens in a step, tokens of a sequence."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int


class Output(NamedTuple):
    """``tokens`` that a sequence got in a step, ``gap`` seconds after its last ones (None for its first)."""

    sequence: Sequence
    tokens: int
    gap: float | None


@dataclass(slots=True)
class StepResult:
    """What one step did: it ran from ``started`` to ``ended`` with ``shape``; outputs are due at ``ended``."""

    started: float
    ended: float
    shape: StepShape
    captured: bool
    engaged: tuple[str, ...]
    outputs: list[Output]
    finished: list[Sequence]
    preempted: int
    running: int
    waiting: int
    kv_usage: float


@dataclass(slots=True)
class Totals:
    """Counters since the start, in tokens unless the name says otherwise."""

    steps: int = 0
    prompt_computed: int = 0
    prompt_recomputed: int = 0
    generated: int = 0
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    accepted_per_position: list[int] = field(default_factory=list)


class Scheduler:
    """The engine core: ``add`` sequences, call ``step(now)`` while ``busy``."""

    def __init__(
        self,
        limits: Limits,
        cache: KVCache,
        timer: StepTimer,
        *,
        acceptance: Acceptance | None = None,
        engage: Engage | None = None,
    ) -> None:
        self.limits = limits
        self.cache = cache
        self.timer = timer
        self.acceptance = acceptance
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.totals = Totals(accepted_per_position=[0] * (acceptance.drafts if acceptance else 0))
        self._drafts = acceptance.drafts if acceptance else 0
        self._engage = engage
        self._engagements: dict[int, Engaged] = {}
        self._budget = 0
        self._preempted = 0

    @property
    def busy(self) -> bool:
        """Whether a step would have something to do."""
        return bool(self.running or self.waiting)

    def check(self, sequence: Sequence) -> None:
        """ValueError for a sequence that the server could never finish."""
        longest = sequence.prompt_tokens + sequence.max_tokens
        if sequence.prompt_tokens < 1 or sequence.max_tokens < 1:
            raise ValueError("a sequence needs at least one prompt token and one output token")
        if longest > self.limits.max_model_len:
            raise ValueError(f"{longest} tokens exceed the maximum model length {self.limits.max_model_len}")
        if -(-(longest + self._drafts) // self.cache.block_size) > self.cache.capacity:
            raise ValueError(f"{longest} tokens never fit {self.cache.capacity} blocks of {self.cache.block_size}")

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence. ValueError for one that the server could never finish."""
        self.check(sequence)
        if self.acceptance:
            sequence.draws = self.acceptance.start(sequence.id)
        self.waiting.append(sequence)

    def abort(self, sequence: Sequence) -> bool:
        """Drop an unfinished sequence; False if it had ended already."""
        if sequence.finish_reason is not None:
            return False
        sequence.finish_reason = "abort"
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self.cache.release(sequence.blocks)
        sequence.blocks = []
        return True

    def step(self, now: float) -> StepResult | None:
        """Plan, time and carry out the step that begins at ``now``; None when there is nothing to do."""
        if not self.busy:
            return None
        self._budget = self.limits.max_num_batched_tokens
        self._preempted = 0
        work: list[tuple[Sequence, int]] = []
        self._schedule_running(work)
        if not self._preempted:
            self._schedule_waiting(work, now)
        shape = _shape(work, bool(self._drafts))
        engaged = self.engaged(shape)
        ended = now + self.timer.seconds(shape, engaged.saving)
        outputs, finished = self._commit(work, ended)
        self.totals.steps += 1
        return StepResult(
            now, ended, shape, self.timer.captured(shape), engaged.names, outputs, finished, self._preempted,
            len(self.running), len(self.waiting), self.cache.usage,
        )  # fmt: skip

    def engaged(self, shape: StepShape) -> Engaged:
        """Engaged launches by the rule (rows, tokens, any prompt work); pure decodes of equal rows are looked up."""
        if self._engage is None:
            return NOTHING
        if shape.prompt_tokens:
            return self._engage(shape.decode_rows, shape.decode_rows + shape.prompt_tokens, True)
        known = self._engagements.get(shape.decode_rows)
        if known is None:
            known = self._engage(shape.decode_rows, shape.decode_rows, False)
            self._engagements[shape.decode_rows] = known
        return known

    def _schedule_running(self, work: list[tuple[Sequence, int]]) -> None:
        budget = self._budget
        running = self.running
        drafts = self._drafts
        max_len = self.limits.max_model_len
        block = self.cache.block_size
        index = 0
        while index < len(running) and budget > 0:
            sequence = running[index]
            if sequence.decoding:
                count = 1 + drafts if drafts else 1
                count = min(count, budget, max_len - sequence.computed)
            else:
                count = min(sequence.prompt_tokens + sequence.generated - sequence.computed, budget)
            short = sequence.computed + count - len(sequence.blocks) * block
            if short > 0 and not self._grow(sequence, -(-short // block)):
                break
            work.append((sequence, count))
            budget -= count
            index += 1
        self._budget = budget

    def _grow(self, sequence: Sequence, blocks: int) -> bool:
        """Give ``sequence`` more blocks, preempting from the youngest; False if it was itself preempted."""
        while True:
            taken = self.cache.allocate(blocks)
            if taken is not None:
                sequence.blocks.extend(taken)
                return True
            victim = self.running.pop()
            self.cache.release(victim.blocks)
            victim.blocks = []
            victim.computed = victim.published = 0
            victim.decoding = False
            victim.preemptions += 1
            self._preempted += 1
            self.totals.preemptions += 1
            self.waiting.appendleft(victim)
            if victim is sequence:
                return False

    def _schedule_waiting(self, work: list[tuple[Sequence, int]], now: float) -> None:
        cache = self.cache
        block = cache.block_size
        while self.waiting and self._budget > 0 and len(self.running) < self.limits.max_num_seqs:
            sequence = self.waiting[0]
            total = sequence.total
            found = cache.lookup(sequence.hashes or (), total)
            wanted = -(-total // block) - len(found)
            if wanted + cache.idle(found) > cache.available:
                break
            cached = len(found) * block
            count = min(total - cached, self._budget)
            cache.share(found)
            sequence.blocks = found + (cache.allocate(-(-(cached + count) // block) - len(found)) or [])
            sequence.computed = cached
            sequence.published = len(found)
            if sequence.scheduled_at is None:
                sequence.scheduled_at = now
                sequence.cached_tokens = cached
                self.totals.prefix_queries += total
                self.totals.prefix_hits += cached
            self.waiting.popleft()
            self.running.append(sequence)
            work.append((sequence, count))
            self._budget -= count

    def _commit(self, work: list[tuple[Sequence, int]], ended: float) -> tuple[list[Output], list[Sequence]]:
        outputs: list[Output] = []
        finished: list[Sequence] = []
        totals = self.totals
        for sequence, count in work:
            if sequence.decoding:
                tokens = self._decode(sequence, count)
            else:
                totals.prompt_computed += count
                if sequence.preemptions:
                    totals.prompt_recomputed += count
                sequence.prompt_computed += count
                sequence.computed += count
                if sequence.computed < sequence.prompt_tokens + sequence.generated:
                    self.publish(sequence)
                    continue
                sequence.decoding = True
                sequence.generated += 1
                tokens = 1
            if sequence.computed // self.cache.block_size > sequence.published:
                self.publish(sequence)
            totals.generated += tokens
            last = sequence.last_token_at
            outputs.append(Output(sequence, tokens, None if last is None else ended - last))
            if last is None:
                sequence.first_token_at = ended
            sequence.last_token_at = ended
            if sequence.generated >= sequence.limit:
                finished.append(sequence)
        if finished:
            self._retire(finished, ended)
        return outputs, finished

    def _decode(self, sequence: Sequence, count: int) -> int:
        """Tokens that a decoding sequence gets for ``count`` rows."""
        if count == 1:
            sequence.computed += 1
            sequence.generated += 1
            return 1
        assert self.acceptance is not None
        drafted = count - 1
        accepted, sequence.draws = self.acceptance.draw(sequence.draws, drafted)
        totals = self.totals
        totals.drafts += 1
        totals.draft_tokens += drafted
        totals.accepted_tokens += accepted
        for position in range(accepted):
            totals.accepted_per_position[position] += 1
        tokens = min(1 + accepted, sequence.limit - sequence.generated)
        sequence.computed += tokens
        sequence.generated += tokens
        return tokens

    def publish(self, sequence: Sequence) -> None:
        """Make the sequence's newly full blocks findable."""
        cache = self.cache
        hashes = sequence.hashes
        if not cache.prefix_caching or hashes is None:
            return
        full = sequence.computed // cache.block_size
        while sequence.published < full:
            while len(hashes) <= sequence.published:
                sequence.extend_hashes(cache.block_size)
            cache.publish(sequence.blocks[sequence.published], hashes[sequence.published])
            sequence.published += 1

    def _retire(self, finished: list[Sequence], ended: float) -> None:
        for sequence in finished:
            sequence.finished_at = ended
            sequence.finish_reason = "stop" if sequence.generated == sequence.stop_at else "length"
            self.cache.release(sequence.blocks)
            sequence.blocks = []
        self.running = [sequence for sequence in self.running if sequence.finish_reason is None]


def _shape(work: list[tuple[Sequence, int]], drafting: bool) -> StepShape:
    seqs = rows = prompt = prompts = ends = 0
    context = pairs = 0.0
    for sequence, count in work:
        if sequence.decoding:
            seqs += 1
            rows += count
            context += sequence.computed
        else:
            prompts += 1
            prompt += count
            pairs += count * (sequence.computed + 0.5 * count)
            if sequence.computed + count == sequence.prompt_tokens + sequence.generated:
                ends += 1
    return StepShape(seqs, rows, context, prompt, pairs, prompts, ends, drafting and bool(seqs or ends))
