"""Requests as bytes: one HTTP message with the JSON that an engine expects."""

import json
from array import array

import pytest

from infx.errors import UsageError
from infx.run.load.encode import PIECE, Encoder
from infx.run.load.spec import LoadSpec
from infx.workload.session import Request


def message(request: Request, **spec: object) -> tuple[list[str], dict]:
    head, _, body = Encoder(LoadSpec("http://host:8000/base", "m", 1, **spec)).encode(request).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert f"Content-Length: {len(body)}" in lines
    return lines, json.loads(body)


def test_ids_are_sent_as_ids_with_exact_lengths() -> None:
    lines, body = message(Request(0, 0, 0, 7, prompt_ids=array("I", [5, 6, 7]), min_tokens=7))
    assert lines[0] == "POST /base/v1/completions HTTP/1.1"
    assert "Host: host:8000" in lines
    assert body == {"model": "m", "stream": True, "temperature": 0.0, "max_tokens": 7, "min_tokens": 7,
                    "ignore_eos": True, "prompt": [5, 6, 7],
                    "stream_options": {"include_usage": True, "continuous_usage_stats": True}}  # fmt: skip


@pytest.mark.parametrize("length", [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
def test_long_prompts_are_encoded_in_pieces_without_a_seam(length: int) -> None:
    ids = array("I", range(length))
    assert message(Request(0, 0, 0, 1, prompt_ids=ids))[1]["prompt"] == list(range(length))


def test_chat_text_and_extra_keys() -> None:
    chat = Request(0, 0, 0, 3, messages=[{"role": "user", "content": "é"}], ignore_eos=False, need_ids=True)
    lines, body = message(chat, endpoint="chat", body={"top_p": 0.9, "temperature": 1.0}, headers={"X-A": "b"})
    assert lines[0] == "POST /base/v1/chat/completions HTTP/1.1"
    assert "X-A: b" in lines
    assert body["messages"] == [{"role": "user", "content": "é"}]
    assert (body["top_p"], body["temperature"], body["return_token_ids"]) == (0.9, 1.0, True)
    assert "ignore_eos" not in body
    assert message(Request(0, 0, 0, 3, text="hi"), continuous_usage=False)[1]["prompt"] == "hi"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="messages"):
        message(Request(0, 0, 0, 1, prompt_ids=[1]), endpoint="chat")
    with pytest.raises(UsageError, match="ids or text"):
        message(Request(0, 0, 0, 1, messages=[{}]))
    with pytest.raises(UsageError, match="line break"):
        message(Request(0, 0, 0, 1, text="a"), headers={"X": "a\r\nY: b"})
