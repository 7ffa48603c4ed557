"""Reader of public coding-agent traces (``cc-traces-weka``): one JSON object a conversation.

Turns of type ``n`` and ``s`` follow each other; a ``subagent`` entry holds turns of its own, was spawned by the
turn before it and is joined by the turn after it, unless it was launched in the background.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from infx.findings import Finding, Mark, errors
from infx.workload.traces.codes import finding
from infx.workload.traces.documents import Document
from infx.workload.traces.fields import Field, Kind, check
from infx.workload.traces.model import BlockTree, Session, Stream, Turn

_TRACE = {
    "id": Field(Kind.TEXT),
    "models": Field(Kind.LIST),
    "block_size": Field(Kind.COUNT, least=None),
    "hash_id_scope": Field(Kind.TEXT),
    "tool_tokens": Field(Kind.COUNT, required=False),
    "system_tokens": Field(Kind.COUNT, required=False),
    "requests": Field(Kind.LIST),
    "totals": Field(Kind.ANY, required=False, nullable=True),
}
_TURN = {
    "t": Field(Kind.NUMBER),
    "type": Field(Kind.TEXT),
    "model": Field(Kind.TEXT),
    "in": Field(Kind.COUNT, least=1),
    "out": Field(Kind.COUNT),
    "hash_ids": Field(Kind.LIST, required=False),
    "input_types": Field(Kind.LIST, required=False),
    "output_types": Field(Kind.LIST, required=False),
    "stop": Field(Kind.TEXT, required=False),
    "api_time": Field(Kind.NUMBER, required=False, nullable=True),
    "think_time": Field(Kind.NUMBER, required=False, nullable=True),
}
_STREAMED = _TURN | {"ttft": Field(Kind.NUMBER, required=False, nullable=True)}
_AGENT = {
    "t": Field(Kind.NUMBER),
    "type": Field(Kind.TEXT),
    "agent_id": Field(Kind.TEXT),
    "subagent_type": Field(Kind.TEXT),
    "duration_ms": Field(Kind.NUMBER, required=False, nullable=True),
    "total_tokens": Field(Kind.COUNT, required=False, nullable=True),
    "tool_use_count": Field(Kind.COUNT, required=False, nullable=True),
    "status": Field(Kind.TEXT),
    "requests": Field(Kind.LIST),
    "models": Field(Kind.LIST),
    "tool_tokens": Field(Kind.COUNT, required=False),
    "system_tokens": Field(Kind.COUNT, required=False),
}
_BACKGROUND = "async_launched"
_LARGEST_BLOCK = 65_536


def session(document: Document) -> tuple[Session | None, list[Finding]]:
    """The session of one document; None when any finding is an error."""
    record = document.value
    if not isinstance(record, dict):
        return None, [finding("T-002", document.mark, f"a session is an object, not {type(record).__name__}")]
    name = str(record.get("id", "?"))
    found = check(record, _TRACE, f"session {name!r}", document.mark)
    if not errors(found):
        found += _unsupported(record, document.mark, name)
    if errors(found):
        return None, found
    reading = _Reading(document.mark, name, record["block_size"])
    reading.findings += found
    reading.main(record["requests"])
    if errors(reading.findings):
        return None, reading.findings
    reading.tree.freeze()
    return Session(name, reading.block_size, tuple(reading.streams()), reading.tree), reading.findings


def _unsupported(record: Mapping[str, Any], mark: Mark, name: str) -> Iterator[Finding]:
    size, scope = record["block_size"], record["hash_id_scope"]
    if not 1 <= size <= _LARGEST_BLOCK:
        yield finding("T-011", mark, f"session {name!r}: block_size is {size}", f"1 to {_LARGEST_BLOCK} tokens")
    if scope != "local":
        yield finding("T-011", mark, f"session {name!r}: hash_id_scope is {scope!r}", "only 'local' is known")
    if not record["requests"]:
        yield finding("T-009", mark, f"session {name!r} has no requests")


@dataclass(slots=True)
class _Agent:
    """A sub-agent before the turn that joins it is known."""

    name: str
    turns: tuple[Turn, ...]
    after: int
    wait_s: float
    end: float
    background: bool


@dataclass(slots=True)
class _Reading:
    """One session being read; times are absolute in the trace (seconds)."""

    mark: Mark
    name: str
    block_size: int
    findings: list[Finding] = field(default_factory=list)
    tree: BlockTree = field(default_factory=BlockTree)
    turns: list[Turn] = field(default_factory=list)
    agents: list[_Agent] = field(default_factory=list)

    def main(self, requests: list[object]) -> None:
        """Read the main turns and, between them, the sub-agents."""
        sent, end, joins = 0.0, 0.0, []
        for index, record in enumerate(requests):
            place = f"session {self.name!r} requests[{index}]"
            if not self._well_formed(record, place, nested=False):
                continue
            assert isinstance(record, dict)
            if record["type"] == "subagent":
                if not self.turns:
                    message = f"{place}: sub-agent {record['agent_id']!r} joins, but no turn spawned it"
                    self._note("T-008", message, "a sub-agent follows the turn that spawned it")
                agent = self._agent(record, place, sent, end)
                if agent:
                    joins.append(agent)
                continue
            at = float(record["t"])
            self._backwards(place, at, sent, bool(self.turns))
            joined = [end, *(agent.end for agent in joins if not agent.background)]
            self.turns.append(self._turn(record, place, max(0.0, at - max(joined)) if self.turns else 0.0, at))
            sent, end = at, at + (record.get("api_time") or 0.0)
            self.agents += joins
            joins = []
        self.agents += joins
        if not self.turns and not self.findings:
            self._note("T-009", f"session {self.name!r} has no turn of its own")

    def streams(self) -> Iterator[Stream]:
        """The main stream, then the sub-agents in the order of their entries."""
        yield Stream("main", tuple(self.turns))
        for agent in self.agents:
            following = agent.after + 1
            join = None if agent.background or following == len(self.turns) else following
            yield Stream(agent.name, agent.turns, 0, agent.after, agent.wait_s, join)

    def _agent(self, record: Mapping[str, Any], place: str, parent_sent: float, parent_end: float) -> _Agent | None:
        inner = record["requests"]
        if not inner:
            self._note("T-009", f"{place}: sub-agent {record['agent_id']!r} has no requests")
            return None
        good = [self._well_formed(turn, f"{place}.requests[{n}]", nested=True) for n, turn in enumerate(inner)]
        if not all(good):
            return None
        started, origin = _started(record, parent_sent)
        turns, end, sent = [], started, 0.0
        for number, turn in enumerate(inner):
            at = origin + float(turn["t"])
            inside = f"{place}.requests[{number}]"
            self._backwards(inside, at, sent, number > 0)
            turns.append(self._turn(turn, inside, max(0.0, at - end) if number else 0.0, at))
            sent, end = at, at + (turn.get("api_time") or 0.0)
        background = record["status"] == _BACKGROUND
        wait = max(0.0, started - parent_end)
        return _Agent(record["agent_id"], tuple(turns), len(self.turns) - 1, wait, end, background)

    def _turn(self, record: Mapping[str, Any], place: str, wait: float, at: float) -> Turn:
        tokens, ids, size = record["in"], record.get("hash_ids", []), self.block_size
        blocks = self._blocks(ids, place)
        if len(ids) not in (tokens // size, tokens // size + 1):
            message = f"{place}: {len(ids)} blocks of {size} tokens for a prompt of {tokens}"
            self._note("T-005", message, f"{tokens // size} whole blocks, and at most one more")
        leaf = self.tree.add(blocks[: -(-tokens // size)])
        return Turn(leaf, tokens, max(1, record["out"]), wait, at)

    def _blocks(self, ids: list[object], place: str) -> list[int]:
        try:
            blocks = array("q", ids)
        except (TypeError, OverflowError):
            wrong = next((n for n, i in enumerate(ids) if not isinstance(i, int) or not -(2**63) <= i < 2**63), 0)
            self._note("T-002", f"{place}: hash_ids[{wrong}] is {ids[wrong]!r:.40}, not a 64-bit integer")
            return []
        if blocks and min(blocks) < 0:
            self._note("T-006", f"{place}: block id {min(blocks)} is negative")
            return []
        return blocks.tolist()

    def _well_formed(self, record: object, place: str, *, nested: bool) -> bool:
        if not isinstance(record, dict):
            self._note("T-002", f"{place}: a turn is an object, not {type(record).__name__}")
            return False
        kind = record.get("type")
        known = {"n": _TURN, "s": _STREAMED} if nested else {"n": _TURN, "s": _STREAMED, "subagent": _AGENT}
        if not isinstance(kind, str) or kind not in known:
            self._note("T-004", f"{place}: turn type {kind!r}", f"one of {', '.join(known)}")
            return False
        found = check(record, known[kind], place, self.mark)
        self.findings += found
        return not errors(found)

    def _backwards(self, place: str, at: float, before: float, compare: bool) -> None:
        if compare and at < before:
            self._note("T-007", f"{place}: t {at:g} s is before the turn before it ({before:g} s)", "its pause is 0")

    def _note(self, code: str, message: str, hint: str = "") -> None:
        self.findings.append(finding(code, self.mark, message, hint))


def _started(record: Mapping[str, Any], parent_sent: float) -> tuple[float, float]:
    """When a sub-agent began, and what its turns' times count from.

    Current captures give its turns absolute times. Older ones give times relative to its start, and their
    ``t`` is the moment it was recorded as finished: parallel agents of one turn start within a tenth of a
    second of each other only as ``t - duration``. Where that lies before the spawning turn, ``t`` is the start.
    """
    at, first = float(record["t"]), float(record["requests"][0]["t"])
    if first >= at > 0:
        return first, 0.0
    began = at - (record.get("duration_ms") or 0.0) / 1000
    if began < parent_sent or record["status"] == _BACKGROUND:
        began = at
    return began, began
