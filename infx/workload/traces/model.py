"""The one internal model of a trace: session → streams → turns, with the blocks that prompts share.

Prompts are paths in a tree of blocks: two prompts share exactly the tokens of their common path. That keeps a
session of 70 turns and 100,000-token prompts in tens of kilobytes. Standard library only: load workers hold it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

ROOT = -1  # the node of an empty path


class Scope(StrEnum):
    """Within what equal block ids mean equal tokens."""

    LOCAL = "local"  # one session
    GLOBAL = "global"  # the whole corpus


class BlockTree:
    """Block ids by path: a node is one block behind one particular prefix.

    ``name`` tells apart trees of scope global, whose equal ids would else mean equal tokens.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._parent = array("i")
        self._block = array("q")
        self._children: dict[tuple[int, int], int] = {}
        self._last_ids: Sequence[int] = ()
        self._last_path: list[int] = []

    def __len__(self) -> int:
        return len(self._parent)

    def add(self, ids: Sequence[int]) -> int:
        """The node at the end of the path ``ids`` (``ROOT`` for no blocks), made where it does not exist."""
        keep = common_length(self._last_ids, ids)
        path = self._last_path[:keep]
        node = path[-1] if path else ROOT
        for block in ids[keep:]:
            found = self._children.get((node, block))
            if found is None:
                found = len(self._parent)
                self._children[node, block] = found
                self._parent.append(node)
                self._block.append(block)
            node = found
            path.append(node)
        self._last_ids, self._last_path = list(ids), path
        return node

    def freeze(self) -> None:
        """Forget what only ``add`` needs; the tree can still be read."""
        self._children = {}
        self._last_ids, self._last_path = (), []

    def path(self, leaf: int) -> list[int]:
        """The nodes from the first block to ``leaf``."""
        parent, found = self._parent, []
        while leaf != ROOT:
            found.append(leaf)
            leaf = parent[leaf]
        found.reverse()
        return found

    def block(self, node: int) -> int:
        """The block id that ``node`` stands for."""
        return self._block[node]


@dataclass(frozen=True, slots=True)
class Turn:
    """One request: ``leaf`` ends its path of blocks.

    The path covers ``input_tokens`` down to the last whole block, or beyond it by a part of one more block.
    ``wait_s`` passes between the end of what the turn waits for (the turn before it in its stream, and the
    streams that join it) and its sending. ``at_s`` is when it was recorded, seconds after the session's start.
    ``seen_blocks`` is the number of leading blocks that an earlier request of the corpus already had in
    recorded order; only corpora of scope global fill it.
    """

    leaf: int
    input_tokens: int
    output_tokens: int
    wait_s: float = 0.0
    at_s: float = 0.0
    seen_blocks: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """Turns that follow each other: the main conversation, or a sub-agent.

    A sub-agent starts ``wait_s`` after turn ``after`` of stream ``parent`` has ended, and turn ``join`` of
    ``parent`` waits for its end; ``join`` None leaves it in the background.
    """

    name: str
    turns: tuple[Turn, ...]
    parent: int | None = None
    after: int = 0
    wait_s: float = 0.0
    join: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation with its sub-agents; ``streams[0]`` is the main one."""

    id: str
    block_size: int
    streams: tuple[Stream, ...]
    tree: BlockTree
    scope: Scope = Scope.LOCAL
    start_s: float = 0.0

    @property
    def turns(self) -> int:
        return sum(len(stream.turns) for stream in self.streams)

    @property
    def longest(self) -> int:
        """Tokens of its longest request, prompt and answer together."""
        return max(turn.input_tokens + turn.output_tokens for stream in self.streams for turn in stream.turns)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sessions that are replayed together; ``name`` and ``sha256`` go into the fingerprint."""

    name: str
    sessions: tuple[Session, ...]
    sha256: str | None = None


def within_context(sessions: Iterable[Session], limit: int) -> tuple[tuple[Session, ...], int]:
    """Sessions all of whose requests fit ``limit`` tokens (prompt + answer), and how many were dropped whole."""
    kept, dropped = [], 0
    for session in sessions:
        if session.longest <= limit:
            kept.append(session)
        else:
            dropped += 1
    return tuple(kept), dropped


def common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of leading elements that two sequences have in common."""
    low, high = 0, min(len(first), len(second))
    while low < high:  # bisect with slice comparison: long shared prefixes are the rule
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
