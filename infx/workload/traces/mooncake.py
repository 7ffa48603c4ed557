"""Reader of Mooncake traces: one request a line, times in milliseconds, ids of 512-token blocks.

The format names no sessions. A line may carry AIPerf's ``session_id``; otherwise a request whose blocks extend
all whole blocks of an earlier one (two at least, beyond a common system prompt) is read as its next turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from infx.findings import Finding, Mark, errors
from infx.workload.traces.codes import finding
from infx.workload.traces.documents import Document
from infx.workload.traces.fields import Field, Kind, check
from infx.workload.traces.model import BlockTree, Scope, Session, Stream, Turn

BLOCK = 512
_LEAST_SHARED = 2
_FIELDS = {
    "timestamp": Field(Kind.NUMBER),
    "input_length": Field(Kind.COUNT, least=1),
    "output_length": Field(Kind.COUNT),
    "hash_ids": Field(Kind.LIST),
    "session_id": Field(Kind.TEXT, required=False),
}


@dataclass(slots=True)
class _Open:
    """A session that may go on: its turns so far and where its last one stands."""

    start_s: float
    at_s: float = 0.0
    context: int = 0
    turns: list[Turn] = field(default_factory=list)


class MooncakeReader:
    """Collects the lines of one file; ``sessions`` gives what they make."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._tree = BlockTree(PurePath(path).name)
        self._open: list[_Open] = []
        self._names: dict[str, int] = {}
        self._ends: dict[int, int] = {}
        self._last_s = 0.0

    def add(self, document: Document) -> list[Finding]:
        """Take one line; a line with an error is left out."""
        record, mark = document.value, document.mark
        if not isinstance(record, dict):
            return [finding("T-002", mark, f"a request is an object, not {type(record).__name__}")]
        found = check(record, _FIELDS, "request", mark)
        if not errors(found):
            found += _misfit(record, mark)
        if errors(found):
            return found
        at = record["timestamp"] / 1000
        if at < self._last_s:
            message = f"request: timestamp {at:g} s is before the line before it ({self._last_s:g} s)"
            found.append(finding("T-007", mark, message, "its pause is 0"))
        self._last_s = at
        self._take(record, at)
        return found

    def sessions(self) -> tuple[Session, ...]:
        """The sessions in order of their first request."""
        self._tree.freeze()
        made = []
        for number, one in enumerate(self._open):
            streams = (Stream("main", tuple(one.turns)),)
            made.append(Session(f"{self._path}#{number}", BLOCK, streams, self._tree, Scope.GLOBAL, one.start_s))
        return tuple(made)

    def _take(self, record: dict[str, Any], at: float) -> None:
        tokens, ids = record["input_length"], record["hash_ids"]
        before = len(self._tree)
        leaf = self._tree.add(ids)
        seen = len(ids) - (len(self._tree) - before)
        path = self._tree.path(leaf)
        number = self._session(record, path, tokens)
        if number is None:
            number = len(self._open)
            self._open.append(_Open(at))
        one = self._open[number]
        wait = max(0.0, at - one.start_s - one.at_s) if one.turns else 0.0
        one.at_s, one.context = max(one.at_s, at - one.start_s), tokens + record["output_length"]
        one.turns.append(Turn(leaf, tokens, max(1, record["output_length"]), wait, one.at_s, seen))
        if "session_id" in record:
            self._names[record["session_id"]] = number
        elif tokens // BLOCK >= _LEAST_SHARED:
            self._ends[path[tokens // BLOCK - 1]] = number

    def _session(self, record: dict[str, Any], path: list[int], tokens: int) -> int | None:
        if "session_id" in record:
            return self._names.get(record["session_id"])
        for node in reversed(path[_LEAST_SHARED - 1 :]):
            number = self._ends.get(node)
            if number is not None and self._open[number].context <= tokens:
                del self._ends[node]
                return number
        return None


def _misfit(record: dict[str, Any], mark: Mark) -> Iterable[Finding]:
    ids, tokens = record["hash_ids"], record["input_length"]
    wrong = next((i for i in ids if not isinstance(i, int) or isinstance(i, bool) or i >= 2**63), None)
    if wrong is not None:
        return [finding("T-002", mark, f"request: block id {wrong!r:.40} is not a 64-bit integer")]
    if ids and min(ids) < 0:
        return [finding("T-006", mark, f"request: block id {min(ids)} is negative")]
    if len(ids) != -(-tokens // BLOCK):
        message = f"request: {len(ids)} blocks of {BLOCK} tokens for a prompt of {tokens}"
        return [finding("T-005", mark, message, f"{-(-tokens // BLOCK)} blocks, the last one perhaps in part")]
    return []
