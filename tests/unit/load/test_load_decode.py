"""What a response means: token counts from usage, first tokens, and how it ended."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.measure.columns import CountSource, Outcome
from infx.run.load.decode import Response

MS = 1_000_000
DONE = b"data: [DONE]\n\n"


def event(choice: dict | None = None, usage: int | None = None, **more: object) -> bytes:
    body: dict[str, object] = {"id": "c", "object": "text_completion", "choices": [choice] if choice else [], **more}
    if usage is not None:
        body["usage"] = {"prompt_tokens": 6, "total_tokens": 6 + usage, "completion_tokens": usage}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def text(word: str, finish: str | None = None) -> dict:
    return {"index": 0, "text": word, "finish_reason": finish}


def delta(finish: str | None = None, **fields: object) -> dict:
    return {"index": 0, "delta": fields, "finish_reason": finish}


def play(*reads: tuple[int, bytes], asked: int = 0) -> tuple[Response, CountSource, Outcome]:
    response = Response()
    for ms, data in reads:
        response.read(ms * MS, data)
    source = response.close()
    return response, source, response.outcome_at_end(asked, asked > 0)


def test_usage_with_every_chunk_gives_tokens_per_read() -> None:  # P2 (b), P4
    reads = [(100 * i, event(text("abcd", "length" if i == 4 else None), usage=4 * (i + 1))) for i in range(5)]
    response, source, outcome = play(*reads, (500, event(usage=20) + DONE), asked=20)
    assert (source, outcome) == (CountSource.USAGE_PER_READ, Outcome.OK)
    assert list(response.read_tokens) == [4, 4, 4, 4, 4]
    assert list(response.read_ns) == [0, 100 * MS, 200 * MS, 300 * MS, 400 * MS]
    assert (response.count, response.prompt, response.last_ns) == (20, 6, 400 * MS)


def test_usage_on_the_last_content_chunk_only() -> None:  # P2 (a)
    reads = [(10 * i, event(text("a"))) for i in range(19)]
    response, source, outcome = play(*reads, (190, event(text("a", "length"), usage=20) + DONE), asked=20)
    assert outcome is Outcome.OK
    assert response.count == 20
    assert source is CountSource.USAGE_FINAL_SPREAD  # twenty events, twenty tokens: one each
    assert list(response.read_tokens) == [1] * 20


def test_final_usage_leaves_the_spread_unknown_when_events_are_fewer() -> None:
    reads = [(10 * i, event(text("abc"))) for i in range(4)]
    response, source, outcome = play(*reads, (50, event(text("", "stop")) + event(usage=12) + DONE), asked=12)
    assert (source, outcome, response.count) == (CountSource.USAGE_FINAL, Outcome.OK, 12)
    assert list(response.read_tokens) == [-1, -1, -1, -1]
    assert response.last_ns == 30 * MS  # the usage record itself is no token


def test_without_any_usage_the_count_is_unknown_and_the_text_kept() -> None:  # P2 (c)
    response, source, outcome = play((0, event(text("ab"))), (10, event(text("cd", "length")) + DONE), asked=20)
    assert (source, outcome, response.count) == (CountSource.UNKNOWN, Outcome.OK, -1)
    assert "".join(response.text) == "abcd"


def test_role_only_and_empty_events_are_no_first_token() -> None:  # P3
    first = event(delta(role="assistant", content=""), usage=0)
    response, _, outcome = play(
        (0, first), (300, event(delta(content="hi"), usage=1)),
        (400, event(delta(finish="stop", content=""), usage=1) + DONE),
    )  # fmt: skip
    assert outcome is Outcome.OK
    assert response.first_ns == 300 * MS
    assert response.empty_first == 1
    assert list(response.read_tokens) == [1]


def test_a_rising_count_without_text_is_a_token() -> None:
    response, source, _ = play((5, event(text(""), usage=1)), (9, event(text("", "length"), usage=2) + DONE), asked=2)
    assert (response.first_ns, response.last_ns, response.count) == (5 * MS, 9 * MS, 2)
    assert (source, response.empty_first) == (CountSource.USAGE_PER_READ, 0)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_the_first_token_and_the_answer_has_its_own_time(field: str) -> None:  # P6
    reads = [(10 * i + 5, event(delta(**{field: "t"}), usage=i + 1)) for i in range(50)]
    reads += [(600 + 10 * i, event(delta(content="a"), usage=51 + i)) for i in range(10)]
    response, _, outcome = play((0, event(delta(role="assistant"), usage=0)), *reads,
                                (800, event(delta(finish="stop")) + event(usage=60) + DONE), asked=60)  # fmt: skip
    assert outcome is Outcome.OK
    assert (response.first_ns, response.answer_ns, response.count) == (5 * MS, 600 * MS, 60)


def test_a_tool_call_is_a_token_and_an_answer() -> None:
    call = [{"index": 0, "function": {"name": "ls", "arguments": ""}}]
    response, _, _ = play((3, event(delta(tool_calls=call), usage=2)), (4, event(delta(finish="tool_calls")) + DONE))
    assert (response.first_ns, response.answer_ns) == (3 * MS, 3 * MS)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (b'data: {"error":{"message":"out of memory","code":500}}\n\n' + DONE, Outcome.ERROR_EVENT),
        (b'data: {"object":"error","message":"x"}\n\n', Outcome.ERROR_EVENT),
        (b"event: error\ndata: {}\n\n" + DONE, Outcome.ERROR_EVENT),
        (event(text("", "abort")) + DONE, Outcome.ERROR_EVENT),
        (b"", Outcome.TRUNCATED),
        (b"data: {not json}\n\n" + DONE, Outcome.MALFORMED_EVENT),
        (event(text("", "stop"), usage=1) + DONE, Outcome.SHORT),
        (DONE, Outcome.SHORT),
    ],
)
def test_bad_endings_after_one_token_of_twenty(end: bytes, outcome: Outcome) -> None:  # P1
    assert play((1, event(text("a"), usage=1)), (2, end), asked=20)[2] is outcome


def test_no_token_at_all_is_a_failure() -> None:
    assert play((1, event(text("", "stop"), usage=0) + DONE), asked=1)[2] is Outcome.NO_TOKEN
    assert play((1, b'{"choices":[{"text":"not streamed"}]}'))[2] is Outcome.NOT_A_STREAM


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=30))
def test_any_split_gives_the_same_counts(cuts: list[int]) -> None:
    data = b"".join(event(text("é漢😀"), usage=3 * (i + 1)) for i in range(5)) + event(text("", "stop")) + DONE
    places = [*sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reads = [(i + 1, data[a:b]) for i, (a, b) in enumerate(zip([0, *places], places, strict=False))]
    response, source, outcome = play(*reads, asked=15)
    assert (response.count, response.events, source, outcome) == (15, 7, CountSource.USAGE_PER_READ, Outcome.OK)
    assert sum(response.read_tokens) == 15


def test_several_events_of_one_read_share_its_time() -> None:
    response, _, _ = play((7, event(text("a"), usage=1) + event(text("b"), usage=3)), (8, event(usage=3) + DONE))
    assert list(response.read_ns) == [7 * MS]
    assert list(response.read_tokens) == [3]
