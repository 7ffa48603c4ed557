"""Byte scripts for the oracle: ways in which servers answer, well and badly. Standard library only."""

from __future__ import annotations

import json

from oracle_server import CHUNKED_HEAD, chunk, content, event  # noqa: F401


def engine(**options: object) -> list[dict]:
    """A server that generates ``max_tokens`` tokens for any request; options: ``oracle_server.engine_steps``."""
    return [{"engine": options}]


def steps(*items: dict) -> list[dict]:
    return [{"steps": list(items)}]


def send(text: str, after: float = 0.0, tokens: int = 0, **more: object) -> dict:
    """Raw bytes of UTF-8 ``text``."""
    return {"bytes": text.encode().decode("latin-1"), "after": after, "tokens": tokens, **more}


def status(code: int, reason: str, body: str = "{}", headers: str = "") -> list[dict]:
    """A plain response with a body of known length."""
    return steps(send(f"HTTP/1.1 {code} {reason}\r\ncontent-length: {len(body.encode())}\r\n{headers}\r\n{body}"))


def streamed(*events: str, end: str = "0\r\n\r\n", gap: float = 0.0) -> list[dict]:
    """A chunked stream with one write an event (head in the first); ``end`` follows in the last write."""
    plays = []
    for number, text in enumerate(events):
        body = (CHUNKED_HEAD if number == 0 else "") + chunk(text)
        plays.append({"bytes": body, "after": gap if number else 0.0, "tokens": 1})
    plays.append({"bytes": end})
    return [{"steps": plays}]


def usage(completion: int, prompt: int = 10) -> dict:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def tokens(count: int, *, kind: str = "chunk", chat: bool = False, prompt: int = 10) -> list[str]:
    """``count`` events of one token each and the end of a stream; ``kind`` of usage: chunk, last, final, none."""
    made = []
    for number in range(1, count + 1):
        with_usage = kind == "chunk" or (kind == "last" and number == count)
        made.append(event(content(chat, "x", usage(number, prompt) if with_usage else None,
                                  "length" if number == count else None)))
    if kind in ("chunk", "final"):
        made.append(event({"choices": [], "usage": usage(count, prompt)}))
    return [*made, event("[DONE]")]


def unchunked(body: str, *, length: bool = True) -> list[dict]:
    """The same stream with a content length, or (HTTP/1.0 style) until the connection is closed."""
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    head += f"content-length: {len(body.encode())}\r\n\r\n" if length else "connection: close\r\n\r\n"
    return [{"steps": [send(head + body, close=not length)]}]


def role_only(first_s: float, count: int) -> list[dict]:
    """Chat: a role event at once, ``count`` tokens after ``first_s`` seconds."""
    role = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
                  "usage": usage(0)})
    rest = [{"bytes": chunk(text), "after": first_s if number == 0 else 0.0, "tokens": 1}
            for number, text in enumerate(tokens(count, chat=True))]
    return [{"steps": [{"bytes": CHUNKED_HEAD + chunk(role)}, *rest, {"bytes": "0\r\n\r\n"}]}]


def error_event(message: str = "CUDA out of memory") -> str:
    return "data: " + json.dumps({"error": {"message": message, "type": "InternalServerError", "code": 500}}) + "\n\n"
