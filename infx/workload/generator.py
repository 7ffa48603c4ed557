"""Coding-agent sessions made from a seed, for when no trace corpus is at hand. Its rules are in docs/traces.md.

A generated session is of the same model as a recorded one and is replayed by the same source. It is for the
simulator and for tests: its lengths resemble public coding-agent traces in their quartiles, nothing more.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from functools import lru_cache

from infx.workload.random import TokenIds
from infx.workload.replay import AgenticSource, ReplayOptions
from infx.workload.traces.model import ROOT, BlockTree, Session, Stream, Turn

BLOCK = 64  # tokens in a block, as in the public coding-agent traces
SPREAD = 8  # a drawn quantity is cut at this multiple of its median


@dataclass(frozen=True, slots=True)
class Shape:
    """What generated sessions look like. Lengths are tokens, pauses seconds; every pair is an inclusive range.

    Growth, answers and pauses are lognormal with the given median and ``sigma`` of the logarithm. A turn's
    prompt is the prompt before it, the answer before it and a tool result; where that exceeds
    ``prompt_cap`` the conversation is compacted to its system prompt and a summary.
    """

    name: str
    system: tuple[int, int]
    opening: tuple[int, int]
    turns: tuple[int, int]
    growth: float
    growth_sigma: float
    answer: float
    answer_sigma: float
    answer_range: tuple[int, int]
    pause: float
    pause_sigma: float
    pause_cap: float
    prompt_cap: int
    agent_share: float
    agents: tuple[int, int]
    agent_turns: tuple[int, int]


# Medians and quartiles after six public traces (779 main turns): tool result 428 (112 … 1,013) tokens, answer
# 225 (142 … 415), pause 10.3 s (6.2 … 29.3), first prompt 15,161 … 17,670, sub-agents 9 in 779 turns.
CODING = Shape(
    name="coding-agent",
    system=(13_000, 16_000),
    opening=(200, 2_500),
    turns=(40, 120),
    growth=430.0,
    growth_sigma=1.6,
    answer=240.0,
    answer_sigma=0.8,
    answer_range=(32, 4_096),
    pause=10.3,
    pause_sigma=1.15,
    pause_cap=300.0,
    prompt_cap=160_000,
    agent_share=0.012,
    agents=(1, 3),
    agent_turns=(5, 20),
)
QUICK = Shape(
    name="coding-agent-quick",
    system=(640, 1_024),
    opening=(64, 256),
    turns=(8, 20),
    growth=160.0,
    growth_sigma=0.6,
    answer=56.0,
    answer_sigma=0.4,
    answer_range=(32, 128),
    pause=0.1,
    pause_sigma=0.6,
    pause_cap=0.5,
    prompt_cap=4_096,
    agent_share=0.03,
    agents=(1, 2),
    agent_turns=(2, 4),
)
SHAPES = {shape.name: shape for shape in (CODING, QUICK)}


def fitted(shape: Shape, *, context_limit: int, prompt_cap: int | None = None, pause_cap: float | None = None) -> Shape:
    """``shape`` within a server's context limit (prompt + answer), and within tighter caps where given.

    Raises ValueError when the limit leaves no room for a prompt of 64 tokens.
    """
    answer = (shape.answer_range[0], max(shape.answer_range[0], min(shape.answer_range[1], context_limit // 8)))
    cap = min(shape.prompt_cap, prompt_cap or shape.prompt_cap, context_limit - answer[1])
    if cap < BLOCK:
        raise ValueError(f"a context of {context_limit} tokens has no room for {answer[1]} tokens of answer")
    system = (min(shape.system[0], cap // 4), min(shape.system[1], cap // 3))
    opening = (min(shape.opening[0], cap // 8), min(shape.opening[1], cap // 4))
    pause = shape.pause_cap if pause_cap is None else min(shape.pause_cap, pause_cap)
    return replace(shape, answer_range=answer, prompt_cap=cap, system=system, opening=opening, pause_cap=pause)


class GeneratedSessions:
    """An endless supply of sessions, each a function of (shape, seed, index) alone. No two are equal."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self._shape = shape
        self._seed = seed

    def session(self, index: int) -> Session:
        return generate(self._shape, self._seed, index)

    def round(self, index: int) -> int:
        return 0


def generated_source(
    ids: TokenIds,
    lanes: int,
    options: ReplayOptions,
    *,
    shape: Shape | None = None,
    context_limit: int,
    prompt_cap: int | None = None,
    pause_cap: float | None = None,
) -> AgenticSource:
    """C lanes of generated sessions within ``context_limit`` (prompt + answer) and the tighter caps where given.

    Without ``shape`` a ``prompt_cap`` of at most 8,192 tokens takes ``QUICK`` (sessions of seconds), else ``CODING``.
    """
    if shape is None:
        shape = QUICK if (prompt_cap or context_limit) <= 2 * QUICK.prompt_cap else CODING
    within = fitted(shape, context_limit=context_limit, prompt_cap=prompt_cap, pause_cap=pause_cap)
    return AgenticSource(ids, GeneratedSessions(within, options.seed), lanes, options)


@lru_cache(maxsize=512)
def generate(shape: Shape, seed: int, index: int) -> Session:
    """Session ``index``: growing prompts behind a system prompt that no other session has, and now and then
    sub-agents (with another system prompt, which those of one session share) that the next turn waits for.
    """
    draw = _Draws(random.Random(f"{seed}/{shape.name}/{index}"), shape)
    tree = BlockTree()
    ids = _Ids()
    count = draw.between(shape.turns)
    main = _conversation(draw, tree, ids, ids.take(draw.between(shape.system) // BLOCK), count)
    streams = [Stream("main", main)]
    agent_system = ids.take(draw.between(shape.system) // 2 // BLOCK)
    for turn in range(count - 1):
        if draw.source.random() < shape.agent_share:
            for _ in range(draw.between(shape.agents)):
                turns = _conversation(draw, tree, ids, agent_system, draw.between(shape.agent_turns))
                streams.append(Stream(f"agent-{len(streams)}", turns, 0, turn, draw.pause() / 8, turn + 1))
    tree.freeze()
    return Session(f"{shape.name}-{seed}-{index}", BLOCK, tuple(streams), tree)


def _conversation(draw: _Draws, tree: BlockTree, ids: _Ids, base: list[int], count: int) -> tuple[Turn, ...]:
    """``count`` turns that begin with the blocks ``base``; compaction returns to them."""
    blocks, tokens = list(base), len(base) * BLOCK + draw.between(draw.shape.opening)
    turns: list[Turn] = []
    answer = 0
    for number in range(count):
        if number:
            tokens += answer + draw.growth()
        if tokens > draw.shape.prompt_cap:
            blocks, tokens = list(base), len(base) * BLOCK + draw.between(draw.shape.opening)
        blocks += ids.take(tokens // BLOCK - len(blocks))
        answer = draw.answer()
        leaf = tree.add(blocks) if blocks else ROOT
        turns.append(Turn(leaf, tokens, answer, draw.pause() if number else 0.0))
    return tuple(turns)


class _Ids:
    """Block ids never used before in this session."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> list[int]:
        first, self._next = self._next, self._next + max(0, count)
        return list(range(first, self._next))


class _Draws:
    def __init__(self, source: random.Random, shape: Shape) -> None:
        self.source = source
        self.shape = shape

    def between(self, bounds: tuple[int, int]) -> int:
        return self.source.randint(*bounds)

    def growth(self) -> int:
        return max(8, int(self._lognormal(self.shape.growth, self.shape.growth_sigma)))

    def answer(self) -> int:
        low, high = self.shape.answer_range
        return min(high, max(low, int(self._lognormal(self.shape.answer, self.shape.answer_sigma))))

    def pause(self) -> float:
        return min(self.shape.pause_cap, self._lognormal(self.shape.pause, self.shape.pause_sigma))

    def _lognormal(self, median: float, sigma: float) -> float:
        return min(self.source.lognormvariate(math.log(median), sigma), median * SPREAD)
