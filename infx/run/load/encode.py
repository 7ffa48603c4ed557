"""Requests as bytes: one HTTP/1.1 message, head and JSON body, ready to be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from infx.errors import UsageError
from infx.run.load.spec import LoadSpec
from infx.workload.session import Request

PIECE = 8192
"""Ids of a prompt that are encoded in one go."""


class Encoder:
    """Encodes the requests of one load; everything that they share is encoded once."""

    def __init__(self, spec: LoadSpec) -> None:
        self._spec = spec
        shared: dict[str, object] = {"model": spec.model, "stream": True}
        shared["stream_options"] = {"include_usage": True}
        if spec.continuous_usage:
            shared["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
        if spec.temperature is not None:
            shared["temperature"] = spec.temperature
        shared.update(spec.body)
        self._shared = msgspec.json.encode(shared)[:-1]
        head = [
            f"POST {spec.path} HTTP/1.1",
            f"Host: {spec.host}:{spec.port}",
            "Content-Type: application/json",
            "Accept: text/event-stream",
            "User-Agent: infx",
            *(f"{name}: {value}" for name, value in spec.headers.items()),
        ]
        if any("\r" in line or "\n" in line for line in head):
            raise UsageError("an HTTP header may not hold a line break", where="headers")
        self._head = ("\r\n".join(head) + "\r\nContent-Length: ").encode("latin-1")

    def encode(self, request: Request) -> bytes:
        """The bytes of ``request``; raises UsageError for a prompt that the endpoint cannot take."""
        return self.message(request, self.pieces(request))

    def pieces(self, request: Request) -> Iterator[bytes]:
        """The ids of a prompt in JSON without brackets, some thousands at a time: each piece takes a millisecond."""
        ids = request.prompt_ids
        for first in range(0, len(ids) if ids is not None else 0, PIECE):
            yield msgspec.json.encode(list(ids[first : first + PIECE]))[1:-1]

    def message(self, request: Request, pieces: Iterable[bytes]) -> bytes:
        """The whole message, the prompt's ids given as ``pieces``; raises UsageError as ``encode`` does."""
        own: dict[str, object] = {"max_tokens": request.max_tokens}
        if request.ignore_eos:
            own["ignore_eos"] = True
        if request.min_tokens:
            own["min_tokens"] = request.min_tokens
        if request.need_ids:
            own["return_token_ids"] = True
        prompt = b""
        if self._spec.endpoint == "chat":
            if request.messages is None:
                raise UsageError("the chat endpoint needs messages", hint="use the completions endpoint for ids")
            own["messages"] = request.messages
        elif request.prompt_ids is not None:
            prompt = b',"prompt":[%b]' % b",".join(pieces)
        elif request.text is not None:
            own["prompt"] = request.text
        else:
            raise UsageError("the completions endpoint needs ids or text", hint="use the chat endpoint for messages")
        body = self._shared + b"," + msgspec.json.encode(own)[1:-1] + prompt + b"}"
        return b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
