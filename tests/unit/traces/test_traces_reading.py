"""Readers of trace files: what they make of good ones, and the finding with its place for every bad one."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path

import pytest

import infx.workload.traces
from infx.findings import Finding, Severity
from infx.workload.generator import QUICK, generate
from infx.workload.traces.codes import CODES
from infx.workload.traces.documents import documents
from infx.workload.traces.model import Scope
from infx.workload.traces.read import iter_sessions, read
from infx.workload.traces.write import weka_line


def turn(t=0.0, tokens=130, ids=(1, 2), out=10, **more):
    return {"t": t, "type": "n", "model": "m", "in": tokens, "out": out, "hash_ids": list(ids), **more}


def agent(t, requests, **more):
    return {
        "t": t, "type": "subagent", "agent_id": "a1", "subagent_type": "Explore", "status": "completed",
        "requests": requests, "models": ["m"], **more,
    }


def conversation(*requests, **more):
    return {
        "id": "one", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": list(requests), **more,
    }


def reading(value, name="t.json"):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read([(name, io.BytesIO(data))], "corpus")


def codes(result):
    return [f.code for f in result.findings]


def only(result):
    assert result.findings == []
    (session,) = result.corpus.sessions
    return session


def test_turns_wait_from_end_to_start():
    session = only(reading(conversation(turn(api_time=4.0), turn(10.0, api_time=1.0), turn(10.5), turn(30.0))))
    turns = session.streams[0].turns
    assert [t.wait_s for t in turns] == [0.0, 6.0, 0.0, 19.5]  # overlapping turns do not wait
    assert [t.at_s for t in turns] == [0.0, 10.0, 10.5, 30.0]
    assert session.block_size == 64 and session.scope is Scope.LOCAL


def test_paths_share_nodes_and_keep_block_ids():
    session = only(reading(conversation(turn(ids=[7, 8]), turn(1.0, 200, [7, 8, 9]), turn(2.0, 130, [7, 5]))))
    paths = [session.tree.path(t.leaf) for t in session.streams[0].turns]
    assert [[session.tree.block(n) for n in path] for path in paths] == [[7, 8], [7, 8, 9], [7, 5]]
    assert paths[0] == paths[1][:2] and paths[2][0] == paths[0][0] and paths[2][1] not in paths[1]
    assert len(session.tree) == 4


def test_relative_sub_agents_start_their_duration_before_they_are_recorded():
    """Three parallel agents of one turn are recorded as they end; all began 1 s after the turn ended."""
    agents = [
        agent(15.0 + took, [turn(0.0, api_time=2.0), turn(5.0, api_time=1.0)], duration_ms=1000 * took)
        for took in (20, 30, 40)
    ]
    session = only(reading(conversation(turn(api_time=4.0), turn(10.0, api_time=4.0), *agents, turn(60.0))))
    main, *rest = session.streams
    assert [(s.after, s.join, s.wait_s) for s in rest] == [(1, 2, 1.0)] * 3
    assert [t.wait_s for t in rest[0].turns] == [0.0, 3.0]
    assert main.turns[2].wait_s == 60.0 - 21.0  # the last agent's last request ended at 15 + 5 + 1


def test_absolute_sub_agents_keep_their_times():
    inner = [turn(12.5, api_time=1.0), turn(15.0, api_time=1.0)]
    session = only(reading(conversation(turn(api_time=10.0), agent(12.0, inner), turn(20.0))))
    spawned = session.streams[1]
    assert (spawned.wait_s, spawned.after, spawned.join) == (2.5, 0, 1)
    assert [t.wait_s for t in spawned.turns] == [0.0, 1.5]
    assert session.streams[0].turns[1].wait_s == 4.0


@pytest.mark.parametrize("status, last", [("async_launched", False), ("completed", True)])
def test_sub_agents_that_nothing_joins_run_in_the_background(status, last):
    following = [] if last else [turn(50.0)]
    session = only(reading(conversation(turn(api_time=1.0), agent(5.0, [turn()], status=status), *following)))
    assert session.streams[1].join is None
    assert session.streams[1].wait_s == 4.0
    if not last:
        assert session.streams[0].turns[1].wait_s == 49.0  # counts from the turn before, not from the agent


def test_aborted_turns_ask_for_one_token_and_count_no_service_time():
    session = only(reading(conversation(turn(out=0, stop="", output_types=[]), turn(3.0, api_time=None))))
    assert [(t.output_tokens, t.wait_s) for t in session.streams[0].turns] == [(1, 0.0), (10, 3.0)]


def test_jsonl_pretty_lists_and_bom_read_alike():
    one, two = conversation(turn()), conversation(turn(), id="two")
    lines = json.dumps(one).encode() + b"\n\n" + json.dumps(two).encode()
    for data in (lines, json.dumps([one, two], indent=2).encode(), json.dumps([one, two]).encode(),
                 b"\xef\xbb\xbf" + lines + b"\r\n"):
        result = reading(data)
        assert (codes(result), [s.id for s in result.corpus.sessions]) == ([], ["one", "two"])


BAD = {
    "truncated": (b'{"id": "one", "models": ["m"], "requests": [{"t": 0', "T-001", 1, 52),
    "truncated-pretty": (json.dumps(conversation(turn()), indent=1).encode()[:-20], "T-001", None, None),
    "not-json": (b"hello\n", "T-001", 1, 1),
    "deep": (b"[" * 100_000, "T-001", 1, None),
    "no-id": ({k: v for k, v in conversation(turn()).items() if k != "id"}, "T-002", 1, 1),
    "string-length": (conversation(turn(tokens="130")), "T-002", 1, 1),
    "bool-length": (conversation(turn(tokens=True)), "T-002", 1, 1),
    "text-block": (conversation(turn(ids=["1", "2"])), "T-002", 1, 1),
    "huge-block": (conversation(turn(ids=[1, 2**64])), "T-002", 1, 1),
    "number-turn": (conversation(7), "T-002", 1, 1),
    "unknown-type": (conversation(turn(type="x")), "T-004", 1, 1),
    "no-type": (conversation({"t": 0}), "T-004", 1, 1),
    "nested-agent": (conversation(turn(), agent(1.0, [agent(1.0, [turn()])])), "T-004", 1, 1),
    "few-blocks": (conversation(turn(tokens=300)), "T-005", 1, 1),
    "many-blocks": (conversation(turn(tokens=100, ids=[1, 2, 3])), "T-005", 1, 1),
    "no-blocks": (conversation(turn(ids=[])), "T-005", 1, 1),
    "negative-time": (conversation(turn(t=-1.0)), "T-006", 1, 1),
    "negative-think": (conversation(turn(think_time=-0.5)), "T-006", 1, 1),
    "negative-block": (conversation(turn(ids=[1, -2])), "T-006", 1, 1),
    "no-prompt": (conversation(turn(tokens=0, ids=[])), "T-006", 1, 1),
    "join-without-spawn": (conversation(agent(1.0, [turn()]), turn(9.0)), "T-008", 1, 1),
    "empty-session": (conversation(), "T-009", 1, 1),
    "empty-agent": (conversation(turn(), agent(1.0, [])), "T-009", 1, 1),
    "scope": (conversation(turn(), hash_id_scope="global"), "T-011", 1, 1),
    "block-size": (conversation(turn(), block_size=0), "T-011", 1, 1),
    "empty-file": (b"", "T-013", 0, 0),
    "blank-file": (b"\n \n", "T-013", 0, 0),
    "other-format": ({"foo": 1}, "T-015", 1, 1),
    "a-number": (b"3", "T-015", 1, 1),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_input_is_a_finding_with_its_place(name):
    value, code, line, column = BAD[name]
    result = reading(value)
    assert result.corpus is None
    (found,) = [f for f in result.findings if f.code == code]
    assert found.severity is Severity.ERROR and found.where.path == "t.json"
    if line is not None:
        assert found.where.line == line
    if column is not None:
        assert found.where.column == column


def test_findings_name_the_record():
    result = reading(conversation(turn(), agent(1.0, [turn(), turn(type="?")]), turn(5.0, tokens=-1)))
    told = "\n".join(f.message for f in result.findings)
    assert "session 'one' requests[1].requests[1]: turn type '?'" in told
    assert "session 'one' requests[2]: in is -1" in told  # all at once


def test_warnings_leave_the_session_usable():
    result = reading(conversation(turn(5.0, thinktime=1.0), turn(4.0)))
    assert sorted(codes(result)) == ["T-003", "T-007"]
    assert result.corpus.sessions[0].turns == 2
    assert any("think_time" in f.hint for f in result.findings)


def test_a_bad_line_costs_that_line_alone():
    lines = [json.dumps(conversation(turn(), id=str(n))).encode() for n in range(5)]
    lines[2] = lines[2][:-7]
    result = reading(b"\n".join(lines))
    assert [s.id for s in result.corpus.sessions] == ["0", "1", "3", "4"]
    assert [(f.code, f.where.line) for f in result.findings] == [("T-001", 3)]
    lines[0] = lines[0][:-7]
    assert [f.where.line for f in reading(b"\n".join(lines)).findings] == [1, 3]


def test_an_id_used_twice_is_refused():
    one = json.dumps(conversation(turn())).encode()
    result = read([("a.json", io.BytesIO(one)), ("b.json", io.BytesIO(one))], "c")
    assert [(f.code, f.where.path) for f in result.findings] == [("T-010", "b.json")]
    assert len(result.corpus.sessions) == 1


def test_a_document_too_large_is_refused_without_holding_it():
    line = json.dumps(conversation(turn())).encode()
    assert [f.code for f in documents(io.BytesIO(line), "p", limit=50)] == ["T-014"]
    pretty = json.dumps(conversation(turn()), indent=1).encode()
    assert [f.code for f in documents(io.BytesIO(pretty), "p", limit=100)] == ["T-014"]


class _Lines(io.RawIOBase):
    """Many sessions, made while they are read."""

    def __init__(self, line, count):
        self._line, self._count, self._made, self._rest = line, count, 0, b""

    def readable(self):
        return True

    def readinto(self, buffer):
        if not self._rest and self._made < self._count:
            self._rest = self._line.replace(b'"@"', b'"s%d"' % self._made)
            self._made += 1
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)


def test_ten_thousand_sessions_in_one_file_need_the_memory_of_one():
    line = json.dumps(conversation(*(turn(float(n), 64 * 40, range(n, n + 40)) for n in range(3)), id="@")).encode()
    stream = io.BufferedReader(_Lines(line + b"\n", 10_000))
    tracemalloc.start()
    count = sum(1 for one in iter_sessions(stream, "big.jsonl") if not isinstance(one, Finding))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 10_000
    assert peak < 2_000_000


def mooncake(*rows):
    keys = ("timestamp", "input_length", "output_length", "hash_ids")
    return b"\n".join(json.dumps(dict(zip(keys, row, strict=True))).encode() for row in rows)


def test_mooncake_requests_that_extend_another_are_its_next_turn():
    rows = [(0, 1100, 100, [0, 1, 2]), (500, 600, 5, [0, 9]), (4000, 1700, 50, [0, 1, 3, 4]), (5000, 700, 1, [0, 8])]
    result = reading(mooncake(*rows), "m.jsonl")
    assert result.findings == []
    first, second, third = result.corpus.sessions
    assert [t.input_tokens for t in first.streams[0].turns] == [1100, 1700]
    assert [t.wait_s for t in first.streams[0].turns] == [0.0, 4.0]
    assert [t.seen_blocks for t in first.streams[0].turns] == [0, 2]
    assert second.streams[0].turns[0].seen_blocks == 1 and second.start_s == 0.5
    assert first.scope is Scope.GLOBAL and first.tree is third.tree and first.block_size == 512


def test_a_mooncake_request_without_room_for_the_answer_is_no_next_turn():
    result = reading(mooncake((0, 1100, 500, [0, 1, 2]), (500, 1500, 5, [0, 1, 3])))
    assert [s.turns for s in result.corpus.sessions] == [1, 1]


def test_mooncake_sessions_may_be_named():
    row = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 9]}
    rows = [{**row, "timestamp": at, "session_id": name} for at, name in ((0, "a"), (7, "b"), (9, "a"))]
    result = reading(b"\n".join(json.dumps(r).encode() for r in rows))
    assert [len(s.streams[0].turns) for s in result.corpus.sessions] == [2, 1]


@pytest.mark.parametrize(
    "row, code",
    [
        ((0, 1100, 5, [0, 1]), "T-005"),
        ((-1, 100, 5, [0]), "T-006"),
        ((0, 100, 5, [-3]), "T-006"),
        ((0, 100, 5, ["x"]), "T-002"),
        ((0, None, 5, [0]), "T-002"),
    ],
)
def test_wrong_mooncake_lines(row, code):
    result = reading(mooncake((0, 100, 5, [0]), row))
    assert [(f.code, f.where.line) for f in result.findings] == [(code, 2)]
    assert len(result.corpus.sessions) == 1


def test_mooncake_time_that_runs_backwards_is_a_warning():
    result = reading(mooncake((900, 100, 5, [0]), (100, 100, 5, [0])))
    assert codes(result) == ["T-007"] and len(result.corpus.sessions) == 2


def test_azure_lines_are_sessions_of_one_turn_without_blocks():
    rows = b"2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:48.1805900,9,1\n"
    data = b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows
    result = read([("a.csv", io.BufferedReader(io.BytesIO(data)))], "azure")
    assert result.findings == []
    assert [s.streams[0].turns[0].input_tokens for s in result.corpus.sessions] == [374, 9]
    assert [s.start_s for s in result.corpus.sessions] == [0.0, 1.5]
    assert [len(s.tree) for s in result.corpus.sessions] == [0, 0]


@pytest.mark.parametrize("row, code", [(b"x,1,2", "T-002"), (b"2023-11-16 18:15:46,5", "T-002"),
                                       (b"2023-11-16 18:15:46.68,0,2", "T-006")])
def test_wrong_azure_lines(row, code):
    data = b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + row + b"\n"
    result = read([("a.csv", io.BufferedReader(io.BytesIO(data)))], "azure")
    assert [(f.code, f.where.line) for f in result.findings] == [(code, 2)]


def test_written_sessions_are_read_back_as_they_were():
    made = [generate(QUICK, 3, n) for n in range(30)]
    assert any(len(s.streams) > 2 for s in made)
    back = reading(b"".join(map(weka_line, made))).corpus.sessions
    for one, again in zip(made, back, strict=True):
        assert one.id == again.id and len(one.streams) == len(again.streams)
        for stream, other in zip(one.streams, again.streams, strict=True):
            assert (stream.name, stream.after, stream.join) == (other.name, other.after, other.join)
            assert other.wait_s == pytest.approx(stream.wait_s, abs=1e-4)
            for turn_, there in zip(stream.turns, other.turns, strict=True):
                blocks = [[s.tree.block(n) for n in s.tree.path(t.leaf)] for s, t in ((one, turn_), (again, there))]
                assert blocks[0] == blocks[1]
                assert (turn_.input_tokens, turn_.output_tokens) == (there.input_tokens, there.output_tokens)
                assert there.wait_s == pytest.approx(turn_.wait_s, abs=1e-4)


def test_the_shipped_trace_is_whole():
    path = Path(infx.workload.traces.__file__).with_name("small.jsonl")
    with path.open("rb") as stream:
        result = read([("small.jsonl", stream)], "small")
    assert result.findings == []
    assert len(result.corpus.sessions) == 12
    streams = [s for one in result.corpus.sessions for s in one.streams[1:]]
    assert sum(s.join is None for s in streams) == 1 and len(streams) == 9
    assert max(s.longest for s in result.corpus.sessions) <= 2048


def test_codes_are_gapless():
    assert list(CODES) == [f"T-{n:03}" for n in range(1, len(CODES) + 1)]


def test_every_code_is_on_its_page():
    page = (Path(__file__).parents[3] / "docs" / "traces.md").read_text(encoding="utf-8")
    for code, (severity, title) in CODES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {code} |")]
        assert str(severity) in row and title in row
