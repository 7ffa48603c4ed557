"""Replay of sessions by lanes: what each lane sends next, which answers it waits for, and what is measured.

A source without clock (see ``infx.workload.lanes``). A lane plays one session after the other; a session's
streams run side by side as its sub-agents were spawned and joined. Standard library only: load workers import it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from infx.workload.prompts import SessionPrompts, cached_tokens
from infx.workload.random import TokenIds
from infx.workload.session import Due, Phase, Request
from infx.workload.traces.model import Scope, Session

_PER_LANE = 1 << 32


class Supply(Protocol):
    """Where sessions come from: position ``index`` (0, 1, …) of an endless list, equal on every call."""

    def session(self, index: int) -> Session: ...

    def round(self, index: int) -> int:
        """How often the supply was used up before ``index``: a session's copies have different rounds."""
        ...


class RecordedSessions:
    """An endless supply from a corpus: every round plays all its sessions in another order.

    Sessions that share blocks with each other keep the recorded order, on which their reuse depends.
    """

    def __init__(self, sessions: Sequence[Session], seed: int) -> None:
        if not sessions:
            raise ValueError("no session to replay")
        self._sessions = sessions
        self._seed = seed
        self._order: tuple[int, list[int]] | None = None

    def session(self, index: int) -> Session:
        turn, position = divmod(index, len(self._sessions))
        if self._order is None or self._order[0] != turn:
            order = list(range(len(self._sessions)))
            if self._sessions[0].scope is Scope.LOCAL:
                random.Random(_number(self._seed, "order", turn)).shuffle(order)
            self._order = (turn, order)
        return self._sessions[self._order[1][position]]

    def round(self, index: int) -> int:
        return index // len(self._sessions)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a corpus is replayed.

    ``warmup_turns``: requests of a lane (after its primer) that bring it to its steady state and are not
    measured. ``idle_cap_s``: no pause is longer, so no session tree is idle for longer. ``live``: the next
    prompt carries the answer that the engine gave, instead of the recorded one. ``start``: a lane's first
    session is entered at a share of its main turns drawn uniformly from this range. ``cache_block``: tokens
    in a block of the engine's prefix cache, for ``Request.cached_tokens``.
    """

    seed: int
    salt: str
    warmup_turns: int = 10
    idle_cap_s: float = 300.0
    live: bool = False
    start: tuple[float, float] = (0.25, 0.75)
    cache_block: int = 16


class AgenticSource:
    """C lanes of live sessions (a ``LaneSource``).

    Lane ``l`` plays the supply's sessions ``l``, ``l + C``, ``l + 2C``, …, each behind a salt of its own, so
    lanes share nothing but what blocks of scope global share. The first session of a lane is entered in its
    middle: a primer (the turn before the entry, one output token) fills the cache with what the session had
    said so far, sub-agents spawned before the entry have ended. Later sessions run from their first turn.
    """

    def __init__(self, ids: TokenIds, supply: Supply, lanes: int, options: ReplayOptions) -> None:
        if lanes < 1:
            raise ValueError(f"{lanes} lanes: at least 1")
        if not 0 <= options.start[0] <= options.start[1] <= 1:
            raise ValueError(f"start positions {options.start} are not a range within 0 and 1")
        self._ids = ids
        self._supply = supply
        self._lanes = lanes
        self._options = options
        self._live: dict[int, _Live] = {}
        self._warm: dict[int, int] = {}

    def start(self, lane: int) -> list[Due]:
        """The primer of the lane's first session, or its first turn."""
        if not 0 <= lane < self._lanes:
            raise ValueError(f"lane {lane} of {self._lanes}")
        options = self._options
        self._warm[lane] = options.warmup_turns
        live = self._live[lane] = self._open(lane, 0)
        turns = live.session.streams[0].turns
        share = random.Random(_number(options.seed, options.salt, "start", lane)).uniform(*options.start)
        entry = min(len(turns) - 1, int(share * len(turns)))
        if not entry:
            return [self._due(live, 0, 0)]
        live.enter(entry)
        primer = self._request(live, 0, entry - 1)
        primer.phase, primer.max_tokens, primer.min_tokens, primer.need_ids = Phase.PRIMER, 1, 1, False
        return [Due(0.0, primer)]

    def finished(self, request: Request, output_ids: Sequence[int] | None) -> list[Due]:
        """Sub-agents that the turn spawned, turns that waited for it, or the lane's next session."""
        live = self._live[request.lane]
        if request.session != live.number:
            raise ValueError(f"session {request.session} of lane {request.lane} has ended before")
        if request.phase is Phase.PRIMER:
            return [Due(0.0, self._due(live, 0, request.turn + 1).request)]
        if self._options.live:
            live.prompts.answered(request.stream, output_ids or ())
        ready = live.end(request.stream, request.turn)
        if live.over:
            live = self._live[request.lane] = self._open(request.lane, live.ordinal + 1)
            ready = [(0, 0)]
        return [self._due(live, stream, turn) for stream, turn in ready]

    def _open(self, lane: int, ordinal: int) -> _Live:
        options = self._options
        index = lane + ordinal * self._lanes
        session = self._supply.session(index)
        own = f"{lane}/{ordinal}"
        if session.scope is Scope.GLOBAL:
            own = f"round {self._supply.round(index)} of {session.tree.name}"
        salt = f"{options.salt}\x00{own}"
        prompts = SessionPrompts(self._ids, session.tree, session.block_size, seed=options.seed, salt=salt)
        return _Live(lane, ordinal, session, prompts)

    def _due(self, live: _Live, stream: int, turn: int) -> Due:
        played = live.session.streams[stream]
        wait = played.wait_s if turn == 0 and played.parent is not None else played.turns[turn].wait_s
        request = self._request(live, stream, turn)
        left = self._warm[live.lane]
        if left:
            self._warm[live.lane] = left - 1
            request.phase = Phase.WARMUP
        return Due(min(wait, self._options.idle_cap_s), request)

    def _request(self, live: _Live, stream: int, turn: int) -> Request:
        what = live.session.streams[stream].turns[turn]
        prompt, held = live.prompts.build(stream, turn, what.leaf, what.input_tokens)
        held = max(held, min(what.seen_blocks * live.session.block_size, what.input_tokens))
        return Request(
            lane=live.lane,
            session=live.number,
            stream=stream,
            turn=turn,
            prompt_ids=prompt,
            max_tokens=what.output_tokens,
            min_tokens=what.output_tokens,
            cached_tokens=cached_tokens(held, what.input_tokens, self._options.cache_block),
            need_ids=self._options.live,
        )


@dataclass(slots=True)
class _Live:
    """One run of a session: how far each stream is, and who waits for whom."""

    lane: int
    ordinal: int
    session: Session
    prompts: SessionPrompts
    done: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.done = [0] * len(self.session.streams)
        self.sent = [0] * len(self.session.streams)
        self.sent[0] = 1

    @property
    def number(self) -> int:
        return self.lane * _PER_LANE + self.ordinal

    @property
    def over(self) -> bool:
        return all(done == len(stream.turns) for done, stream in zip(self.done, self.session.streams, strict=True))

    def enter(self, turn: int) -> None:
        """Begin at ``turn`` of the main stream: what was spawned before has ended."""
        self.done[0], self.sent[0] = turn, turn + 1
        ended = [0]
        for number in ended:
            for child, stream in enumerate(self.session.streams):
                if stream.parent == number and (number or stream.after < turn):
                    self.done[child] = self.sent[child] = len(stream.turns)
                    ended.append(child)

    def end(self, stream: int, turn: int) -> list[tuple[int, int]]:
        """Note the end of a turn; the (stream, turn) pairs that may be sent because of it."""
        streams = self.session.streams
        self.done[stream] = turn + 1
        ready = []
        for child, spawned in enumerate(streams):
            if spawned.parent == stream and spawned.after == turn and not self.sent[child]:
                self.sent[child] = 1
                ready.append((child, 0))
        parent = streams[stream].parent
        for waiting in (stream, parent):
            if waiting is None:
                continue
            following = self.done[waiting]
            if self.sent[waiting] == following < len(streams[waiting].turns) and self._joined(waiting, following):
                self.sent[waiting] += 1
                ready.append((waiting, following))
        return ready

    def _joined(self, parent: int, turn: int) -> bool:
        return all(
            self.done[child] == len(stream.turns)
            for child, stream in enumerate(self.session.streams)
            if stream.parent == parent and stream.join is not None and stream.join <= turn
        )


def _number(*parts: object) -> int:
    text = "\x00".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")
