"""Requests and answers in vLLM's shape."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.simulator.answers import DONE, Answer, text_of
from infx.simulator.requests import BadRequest, read

NAMES = ("m", "other")


def wanted(chat: bool = False, **body: object):
    return read(json.dumps(body).encode(), NAMES, 1000, chat=chat)


def refused(chat: bool = False, raw: bytes | None = None, **body: object) -> dict:
    with pytest.raises(BadRequest) as stopped:
        read(json.dumps(body).encode() if raw is None else raw, NAMES, 1000, chat=chat)
    error = json.loads(stopped.value.body())["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["code"] == stopped.value.status
    return error


def test_token_ids_are_counted_one_by_one():
    for prompt in ([5, 6, 7], [[5, 6, 7]]):
        found = wanted(prompt=prompt, max_tokens=9, model="other")
        assert (found.prompt_tokens, found.max_tokens, found.stop_at, found.stream) == (3, 9, None, False)


def test_text_is_cut_into_tokens_of_four_bytes_and_keeps_its_prefix():
    short, long = wanted(prompt="abcdefg"), wanted(prompt=["abcdefgh"])
    assert (short.prompt_tokens, long.prompt_tokens) == (2, 2)
    assert short.data[:4] == long.data[:4] and short.data[4:] != long.data[4:]
    assert short.max_tokens == 16, "the completion endpoint's default"


def test_a_conversation_is_a_prefix_of_its_next_turn():
    first = [{"role": "user", "content": "hello there"}]
    parts = [{"type": "text", "text": "x"}]
    more = [*first, {"role": "assistant", "content": "hi"}, {"role": "user", "content": parts}]
    one, two = wanted(chat=True, messages=first), wanted(chat=True, messages=more)
    head = one.data[: -len("<|assistant|>") // 4 * 4]
    assert two.data.startswith(head) and two.prompt_tokens > one.prompt_tokens


def test_a_chat_without_a_limit_ends_by_itself_unless_told_not_to():
    free = wanted(chat=True, messages=[{"role": "user", "content": "a"}])
    assert 64 <= free.stop_at < 256 and free.max_tokens == 1000 - free.prompt_tokens
    assert wanted(chat=True, messages=[{"role": "user", "content": "a"}], ignore_eos=True).stop_at is None
    assert wanted(chat=True, messages=[{"role": "user", "content": "a"}], min_tokens=500).stop_at == 500


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"prompt": [1] * 990, "max_tokens": 11}, "maximum context length is 1000 tokens"),
        ({"prompt": [1] * 1000}, "maximum context length is 1000 tokens"),
        ({"prompt": [1], "max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"prompt": [1], "max_tokens": 4, "min_tokens": 5}, "min_tokens must be less than or equal to max_tokens=4"),
        ({"prompt": []}, "Either prompt or prompt_embeds"),
        ({"prompt": ""}, "Either prompt or prompt_embeds"),
        ({}, "Either prompt or prompt_embeds"),
        ({"prompt": [-1]}, "Token id -1 is out of vocabulary"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [[1], [2]]}, "one prompt a request"),
        ({"prompt": [1], "n": 2}, "n must be 1"),
        ({"prompt": [1], "max_tokens": "4"}, "max_tokens"),
        ({"prompt": [1], "temperature": -1}, "temperature must be non-negative"),
        ({"prompt": [1], "stream_options": {"include_usage": True}}, "only be defined when `stream=True`"),
    ],
)
def test_what_cannot_be_served_is_a_400(body, said):
    error = refused(**body)
    assert said in error["message"] and (error["type"], error["code"]) == ("BadRequestError", 400)


def test_other_refusals_have_their_own_status():
    assert refused(prompt=[1], model="x")["code"] == 404
    assert refused(prompt=[1], model="x")["message"] == "The model `x` does not exist."
    assert "JSON" in refused(raw=b"{")["message"]
    assert "messages" in refused(chat=True, messages=[])["message"]
    assert "role" in refused(chat=True, messages=[{"content": "x"}])["message"]


def events(raw: bytes) -> list[dict]:
    return [json.loads(part.removeprefix(b"data: ")) for part in raw.split(b"\n\n") if part]


def answer(**over: object) -> Answer:
    kwargs = {"chat": False, "continuous_usage": True, "ids": False, **over}
    return Answer("cmpl-1", 'a "name"', 17, 6, 99, **kwargs)


def test_a_completion_event_has_vllms_keys_and_a_running_usage():
    made = answer()
    first, last = events(made.event(1, None) + made.event(4, "length"))
    assert list(first) == ["id", "object", "created", "model", "choices", "usage"]
    assert (first["object"], first["model"], first["created"]) == ("text_completion", 'a "name"', 17)
    assert list(first["choices"][0]) == [
        "index", "text", "logprobs", "finish_reason", "stop_reason", "prompt_token_ids", "token_ids",
    ]  # fmt: skip
    assert first["usage"] == {"prompt_tokens": 6, "total_tokens": 7, "completion_tokens": 1}
    assert last["usage"] == {"prompt_tokens": 6, "total_tokens": 11, "completion_tokens": 5}
    assert (first["choices"][0]["finish_reason"], last["choices"][0]["finish_reason"]) == (None, "length")
    (usage,) = events(made.usage_event())
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 5
    assert DONE == b"data: [DONE]\n\n"


def test_a_chat_stream_begins_with_a_role_and_no_token():
    made = answer(chat=True)
    (role,) = events(made.role())
    assert role["object"] == "chat.completion.chunk"
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert role["usage"]["completion_tokens"] == 0
    (event,) = events(made.event(2, None))
    assert event["choices"][0]["delta"]["content"].strip()
    body = json.loads(made.whole("stop"))
    assert body["object"] == "chat.completion" and body["choices"][0]["message"]["role"] == "assistant"


def test_without_continuous_usage_events_carry_none():
    assert "usage" not in events(answer(continuous_usage=False).event(1, None))[0]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=20))
def test_however_tokens_arrive_the_text_and_ids_are_the_same(parts):
    made = answer(ids=True)
    found = events(b"".join(made.event(part, None) for part in parts))
    text = "".join(event["choices"][0]["text"] for event in found)
    ids = [one for event in found for one in event["choices"][0]["token_ids"]]
    assert text == text_of(99, 0, sum(parts)) == json.loads(made.whole("length"))["choices"][0]["text"]
    assert ids == json.loads(made.whole("length"))["choices"][0]["token_ids"] and len(ids) == sum(parts)


def test_cached_tokens_are_reported_where_they_are_known():
    made = answer()
    made.cached = 4
    (usage,) = events(made.usage_event())
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
