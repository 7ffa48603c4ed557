"""Statistics of traces: lengths, turns, pauses, reuse, and the hit rate a prefix cache could reach by its size."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from infx.workload.traces.model import BlockTree, Scope, Session, Turn

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_SIZES = 24  # cache sizes tried: doublings of the smallest block count


class CacheProfile:
    """Prompt tokens that an LRU prefix cache would answer, for every size at once (Mattson's stack distances).

    Requests come in the order in which they are served; an unbounded cache and every bounded one see the same
    order. Of blocks used last by one request the deepest leave first, as vLLM frees them. A hit needs all
    blocks before it, whole blocks only, and never covers a prompt's last token.
    """

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.prompt_tokens = 0
        self._last: dict[int, int] = {}
        self._used = [0]
        self._distances: dict[int, int] = {}

    def serve(self, path: Sequence[int], tokens: int) -> int:
        """One request; returns the prompt tokens that an unbounded cache answers."""
        self.prompt_tokens += tokens
        now, last, used = len(self._used), self._last, self._used
        whole = min(len(path), (tokens - 1) // self.block_size)
        hits, deeper = 0, 0
        for request, group in itertools.groupby(last.get(node, 0) for node in path):
            count = sum(1 for _ in group)
            if not request:
                break
            newer = sum(used[request + 1 :]) + deeper
            for index in range(min(count, whole - hits)):
                distance = newer + index + 1
                self._distances[distance] = self._distances.get(distance, 0) + 1
            hits += min(count, whole - hits)
            used[request] -= count
            deeper += count
        used.append(len(path))
        for node in path:
            last[node] = now
        return hits * self.block_size

    def hit_tokens(self, blocks: int | None = None) -> int:
        """Prompt tokens answered by a cache of ``blocks`` blocks (None: unbounded)."""
        return self.block_size * sum(n for at, n in self._distances.items() if blocks is None or at <= blocks)

    def merge(self, other: CacheProfile) -> None:
        """Count the hits of ``other``, whose blocks are none of ours and whose requests came after ours."""
        self.prompt_tokens += other.prompt_tokens
        for distance, count in other._distances.items():
            self._distances[distance] = self._distances.get(distance, 0) + count


@dataclass(slots=True)
class TraceStats:
    """Collects sessions one by one, then tells of them; holds numbers alone, never the sessions of local scope."""

    sessions: int = 0
    streams: int = 0
    joined: int = 0
    background: int = 0
    blocks: int = 0
    block_sizes: set[int] = field(default_factory=set)
    columns: dict[str, array] = field(default_factory=dict)
    profiles: dict[int, CacheProfile] = field(default_factory=dict)
    _shared: dict[int, tuple[BlockTree, list[Session]]] = field(default_factory=dict)

    def add(self, session: Session) -> None:
        """Count one session."""
        self.sessions += 1
        self.streams += len(session.streams)
        self.block_sizes.add(session.block_size)
        agents = session.streams[1:]
        self.joined += sum(stream.join is not None for stream in agents)
        self.background += sum(stream.join is None for stream in agents)
        self._note("turns-per-session", session.turns)
        self._note("turns-of-main-stream", len(session.streams[0].turns))
        self._note("longest-request", session.longest)
        self._note("recorded-s", max(turn.at_s for stream in session.streams for turn in stream.turns))
        for stream in session.streams:
            for number, turn in enumerate(stream.turns):
                self._note("input-tokens", turn.input_tokens)
                self._note("output-tokens", turn.output_tokens)
                if number:
                    self._note("pause-s", turn.wait_s)
        if session.scope is Scope.GLOBAL:
            self._shared.setdefault(id(session.tree), (session.tree, []))[1].append(session)
        else:
            self._serve(session.tree, session.block_size, _in_order([session]))

    def finish(self) -> None:
        """Serve what shares blocks across sessions, in recorded order. Call once, after the last ``add``."""
        for tree, sessions in self._shared.values():
            self._serve(tree, sessions[0].block_size, _in_order(sessions))
        self._shared.clear()

    def as_dict(self) -> dict[str, object]:
        """Everything, as plain values for JSON; tokens and seconds."""
        quantiles = {name: _quantiles(column) for name, column in sorted(self.columns.items())}
        prompt = sum(profile.prompt_tokens for profile in self.profiles.values())
        return {
            "sessions": self.sessions,
            "requests": len(self.columns.get("input-tokens", ())),
            "sub-agents": {"joined": self.joined, "background": self.background},
            "block-sizes": sorted(self.block_sizes),
            "prompt-tokens": prompt,
            "output-tokens": int(sum(self.columns.get("output-tokens", ()))),
            "distinct-blocks": self.blocks,
            "quantiles": quantiles,
            "hit-rate": {"unbounded": self.hit_rate(), "by-cache-tokens": dict(self.hit_rates())},
        }

    def hit_rate(self, cache_tokens: int | None = None) -> float | None:
        """Theoretical share of prompt tokens answered by a cache (None: unbounded); None when no blocks are known."""
        prompt = sum(profile.prompt_tokens for profile in self.profiles.values())
        if not self.blocks or not prompt:
            return None
        hits = 0
        for size, profile in self.profiles.items():
            hits += profile.hit_tokens(None if cache_tokens is None else cache_tokens // size)
        return hits / prompt

    def hit_rates(self) -> list[tuple[int, float]]:
        """(cache size in tokens, hit rate) at doubling sizes, up to the first that reaches the unbounded rate."""
        found, best = [], self.hit_rate()
        if best is None:
            return []
        for power in range(_SIZES):
            tokens = (1 << power) * 1024
            rate = self.hit_rate(tokens)
            assert rate is not None
            if rate or found:
                found.append((tokens, rate))
            if rate >= best:
                break
        return found

    def _serve(self, tree: BlockTree, block_size: int, turns: Iterable[Turn]) -> None:
        profile = CacheProfile(block_size)
        for turn in turns:
            hits = profile.serve(tree.path(turn.leaf), turn.input_tokens)
            self._note("new-tokens", turn.input_tokens - hits)
        self.blocks += len(tree)
        if block_size in self.profiles:
            self.profiles[block_size].merge(profile)
        else:
            self.profiles[block_size] = profile

    def _note(self, name: str, value: float) -> None:
        self.columns.setdefault(name, array("d")).append(value)


def _in_order(sessions: Iterable[Session]) -> list[Turn]:
    timed = []
    for number, session in enumerate(sessions):
        for place, stream in enumerate(session.streams):
            for index, turn in enumerate(stream.turns):
                timed.append((session.start_s + turn.at_s, number, place, index, turn))
    timed.sort(key=lambda row: row[:4])
    return [row[4] for row in timed]


def _quantiles(column: Sequence[float]) -> Mapping[str, float]:
    """Nearest-rank quantiles (values that occur), the mean and the number of values."""
    ordered = sorted(column)
    last = len(ordered) - 1
    found = {f"p{100 * q:g}": round(ordered[round(q * last)], 3) for q in QUANTILES}
    return found | {"mean": round(sum(ordered) / len(ordered), 3), "n": len(ordered)}
