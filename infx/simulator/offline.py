"""Whole closed-loop curves in virtual time, without HTTP and without waiting: the scheduler, fed directly.

A lane sends its next turn when the last one has ended (plus the turn's wait), as the load client does. Everything is
determined by the lanes and the scheduler's seed.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from infx.simulator.coast import Stretch, coast
from infx.simulator.scheduler import Scheduler, StepResult
from infx.simulator.sequence import Sequence


class Turn(NamedTuple):
    """One request of a lane: lengths in tokens, ``hashes`` of its full blocks (None: shared with nobody).

    ``tail`` and ``key`` as in ``Sequence``; ``wait``: virtual seconds after the lane's last answer.
    """

    prompt_tokens: int
    output_tokens: int
    hashes: list[int] | None = None
    tail: bytes = b""
    key: int = 0
    wait: float = 0.0


@dataclass
class Run:
    """What happened, one row a finished request (arrays of equal length, in order of their end) and one a step.

    Times in virtual seconds. ``gaps``: seconds between two chunks of a request → how often; ``step_tokens`` are
    generated tokens of a step, ``step_prompt`` its prompt tokens, ``step_engaged`` the launches that it took.
    ``load_end``: when the first lane had no further turn (infinity if none ran out).
    """

    lanes: int
    load_end: float
    lane: np.ndarray
    sent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    cached: np.ndarray
    preemptions: np.ndarray
    step_end: np.ndarray
    step_tokens: np.ndarray
    step_rows: np.ndarray
    step_prompt: np.ndarray
    step_engaged: list[tuple[str, ...]]
    gap: np.ndarray
    gap_at: np.ndarray
    gap_count: np.ndarray


@dataclass
class _Record:
    rows: list[tuple] = field(default_factory=list)
    steps: list[tuple] = field(default_factory=list)
    engaged: list[tuple[str, ...]] = field(default_factory=list)
    gaps: list[tuple[float, float, int]] = field(default_factory=list)

    def step(self, result: StepResult) -> None:
        tokens = 0
        seen: dict[float, int] = {}
        for output in result.outputs:
            tokens += output.tokens
            if output.gap is not None:
                seen[output.gap] = seen.get(output.gap, 0) + 1
        shape = result.shape
        self.steps.append((result.ended, tokens, shape.decode_rows, shape.prompt_tokens))
        self.engaged.append(result.engaged)
        self.gaps += [(gap, result.ended, count) for gap, count in seen.items()]

    def stretch(self, quiet: Stretch) -> None:
        began = quiet.ends[0]
        self.gaps += [(gap, began, count) for gap, count in quiet.first_gaps.items()]
        last = began
        for ended in quiet.ends:
            self.steps.append((ended, quiet.seqs, quiet.seqs, 0))
            if ended > began:
                self.gaps.append((ended - last, ended, quiet.seqs))
            last = ended
        self.engaged += [quiet.engaged] * len(quiet.ends)

    def table(self, lanes: int, load_end: float) -> Run:
        rows = np.array(self.rows, dtype=np.float64).reshape(-1, 8)
        steps = np.array(self.steps, dtype=np.float64).reshape(-1, 4)
        gaps = np.array(self.gaps, dtype=np.float64).reshape(-1, 3)
        whole = rows.astype(np.int64)
        return Run(
            lanes, load_end, whole[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], *(whole[:, at] for at in range(4, 8)),
            steps[:, 0], steps[:, 1].astype(np.int64), steps[:, 2].astype(np.int64), steps[:, 3].astype(np.int64),
            self.engaged, gaps[:, 0], gaps[:, 1], gaps[:, 2].astype(np.int64),
        )  # fmt: skip


def replay(
    scheduler: Scheduler, lanes: list[Iterator[Turn]], *, requests: int | None = None, duration: float | None = None,
    fast: bool = True,
) -> Run:  # fmt: skip
    """Run every lane until its turns are used up, ``requests`` have ended or ``duration`` virtual seconds are over.

    ``fast``: take quiet decode steps together (the result is the same). Raises ValueError for a turn that the server
    would refuse.
    """
    record = _Record()
    queue: list[_Sent] = []
    for number, lane in enumerate(lanes):
        _enqueue(queue, lane, number, 0.0, scheduler)
    load_end = math.inf
    now, sequences = 0.0, 0
    while (queue or scheduler.busy) and (requests is None or len(record.rows) < requests):
        if not scheduler.busy:
            now = max(now, queue[0][0])
        if duration is not None and now >= duration:
            break
        while queue and queue[0][0] <= now:
            _, number, turn, sent = heapq.heappop(queue)
            scheduler.add(_sequence(sequences, sent, turn, number))
            sequences += 1
        limit = min(queue[0][0] if queue else math.inf, math.inf if duration is None else duration)
        quiet = coast(scheduler, now, limit) if fast else None
        if quiet is not None:
            record.stretch(quiet)
            now = quiet.ends[-1]
            continue
        result = scheduler.step(now)
        assert result is not None
        now = result.ended
        record.step(result)
        for sequence in result.finished:
            number = sequence.sink
            record.rows.append(
                (
                    number, sequence.arrival, sequence.first_token_at, sequence.finished_at, sequence.prompt_tokens,
                    sequence.generated, sequence.cached_tokens, sequence.preemptions,
                )
            )  # fmt: skip
            if not _enqueue(queue, lanes[number], number, now, scheduler):
                load_end = min(load_end, now)
    return record.table(len(lanes), load_end)


def closed_loop(
    scheduler: Scheduler, concurrency: int, lengths: Iterable[tuple[int, int]], *, requests: int | None = None,
    duration: float | None = None,
) -> Run:  # fmt: skip
    """``concurrency`` streams that take (prompt, output) lengths from one shared source, prompts all different."""
    source = iter(lengths)

    def stream() -> Iterator[Turn]:
        for prompt, output in source:
            yield Turn(prompt, output)

    return replay(scheduler, [stream() for _ in range(concurrency)], requests=requests, duration=duration)


class _Sent(NamedTuple):
    """A request on its way through the front end: when the engine core sees it, its lane, and when it was sent."""

    seen: float
    lane: int
    turn: Turn
    sent: float


def _enqueue(queue: list[_Sent], lane: Iterator[Turn], number: int, now: float, scheduler: Scheduler) -> bool:
    turn = next(lane, None)
    if turn is not None:
        sent = now + turn.wait
        heapq.heappush(queue, _Sent(sent + scheduler.timer.front(len(scheduler.running)), number, turn, sent))
    return turn is not None


def _sequence(number: int, ready: float, turn: Turn, lane: int) -> Sequence:
    sequence = Sequence(
        number, turn.prompt_tokens, turn.output_tokens, ready, hashes=turn.hashes, tail=turn.tail, key=turn.key
    )
    sequence.sink = lane
    return sequence


class Steady(NamedTuple):
    """Figures of the steady window (seconds, tokens a second): what a curve is made of.

    ``median_itl`` weighs every chunk of the window once; ``mono_steps`` is the share of pure-decode steps that ran
    with a mono decode launch.
    """

    requests: int
    seconds: float
    output_s: float
    total_s: float
    median_ttft: float
    median_tpot: float
    median_itl: float
    p90_itl: float
    p90_tpot: float
    mono_steps: float


def steady(run: Run) -> Steady:
    """The window opens when every lane has ended a request and closes as the first lane runs dry, or with the last end;
    requests that began in it count. ValueError when there is none."""
    first_ends = [run.last[run.lane == lane] for lane in range(run.lanes)]
    if any(not len(ends) for ends in first_ends):
        raise ValueError("not every lane has ended a request")
    opened = max(float(ends[0]) for ends in first_ends)
    closed = min(float(run.last.max()), run.load_end)
    inside = (run.sent >= opened) & (run.sent <= closed)
    if not inside.any() or closed <= opened:
        raise ValueError("no request began in the steady window")
    seconds = closed - opened
    steps = (run.step_end > opened) & (run.step_end <= closed)
    output = float(run.step_tokens[steps].sum()) / seconds
    arrived = float(run.prompt[(run.first > opened) & (run.first <= closed)].sum()) / seconds
    tpot = (run.last - run.first)[inside] / np.maximum(run.output[inside] - 1, 1)
    chunks = (run.gap_at > opened) & (run.gap_at <= closed)
    median, p90 = _weighted(run.gap[chunks], run.gap_count[chunks], (0.5, 0.9))
    names = itertools.compress(run.step_engaged, steps & (run.step_prompt == 0))
    decode = [any("mono" in name for name in engaged) for engaged in names]
    return Steady(
        int(inside.sum()), seconds, output, output + arrived, float(np.median((run.first - run.sent)[inside])),
        float(np.median(tpot)), median, p90, float(np.quantile(tpot, 0.9)), float(np.mean(decode)) if decode else 0.0,
    )  # fmt: skip


def _weighted(values: np.ndarray, counts: np.ndarray, shares: tuple[float, ...]) -> list[float]:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[order])
    return [float(values[order][np.searchsorted(reached, share * reached[-1])]) for share in shares]
