"""Sessions → the coding-agent trace format, so that generated sessions can be shipped and read by other tools."""

from __future__ import annotations

import json

from infx.workload.traces.model import Scope, Session, Stream

_SERVICE_S_PER_TOKEN = 0.01


def weka_line(session: Session) -> bytes:
    """One line of JSON for a session of scope local; times follow from its pauses, 10 ms an answer token.

    Raises ValueError for a session whose blocks are shared with others: the format cannot say so.
    """
    if session.scope is not Scope.LOCAL:
        raise ValueError(f"session {session.id!r} shares blocks with others")
    entries: list[tuple[float, dict[str, object]]] = []
    ends = _ends(session)
    for number, turn in enumerate(_turns(session, 0, 0.0, ends)):
        entries.append((turn[0], turn[1]))
        for child, stream in enumerate(session.streams):
            if stream.parent == 0 and stream.after == number:
                began = ends[0, number] + stream.wait_s
                inner = [record for _, record in _turns(session, child, began, ends)]
                entries.append((began, _agent(session, child, began, inner, ends)))
    record = {
        "id": session.id, "models": ["made"], "block_size": session.block_size, "hash_id_scope": "local",
        "tool_tokens": 0, "system_tokens": 0, "requests": [entry for _, entry in entries],
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _turns(session: Session, stream: int, began: float, ends: dict) -> list[tuple[float, dict[str, object]]]:
    found = []
    for number, turn in enumerate(session.streams[stream].turns):
        end = ends[stream, number]
        service = _service(turn.output_tokens)
        at = round(end - service, 6)
        path = session.tree.path(turn.leaf)
        found.append((at, {
            "t": at, "type": "n", "model": "made", "in": turn.input_tokens, "out": turn.output_tokens,
            "hash_ids": [session.tree.block(node) for node in path], "api_time": round(service, 6),
        }))
    return found


def _agent(session: Session, child: int, began: float, inner: list, ends: dict) -> dict[str, object]:
    stream: Stream = session.streams[child]
    last = ends[child, len(stream.turns) - 1]
    return {
        "t": inner[0]["t"], "type": "subagent", "agent_id": stream.name, "subagent_type": "made",
        "duration_ms": round(1000 * (last - began)), "total_tokens": None, "tool_use_count": None,
        "status": "async_launched" if stream.join is None else "completed", "requests": inner, "models": ["made"],
    }


def _ends(session: Session) -> dict[tuple[int, int], float]:
    """When every turn ends if it is served at once; streams of one level below the main one."""
    ends: dict[tuple[int, int], float] = {}
    now = 0.0
    for number, turn in enumerate(session.streams[0].turns):
        joined = [ends[child, len(stream.turns) - 1] for child, stream in enumerate(session.streams)
                  if stream.parent == 0 and stream.join == number]
        now = max([now, *joined]) + turn.wait_s + _service(turn.output_tokens)
        ends[0, number] = now
        for child, stream in enumerate(session.streams):
            if stream.parent == 0 and stream.after == number:
                inside = now + stream.wait_s
                for index, inner in enumerate(stream.turns):
                    inside += (inner.wait_s if index else 0.0) + _service(inner.output_tokens)
                    ends[child, index] = inside
    return ends


def _service(output_tokens: int) -> float:
    return output_tokens * _SERVICE_S_PER_TOKEN
