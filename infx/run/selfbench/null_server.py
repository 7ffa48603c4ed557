"""The null server: an engine that computes nothing, so that only the client is measured.

    python -m infx.run.selfbench.null_server [--tick-ms 20] [--first-ms 20] [--per-tick 1] [--usage asked|always]

It answers completions and chat with ``max_tokens`` tokens, ``per-tick`` of them to every stream at every tick
(all streams tick together, as a batching engine does), with usage in every event when asked for. It prints
``PORT n``. GET /null/log returns and clears its own send times: a line a finished request, ``received first last
tokens`` and the tick gaps' counts, in ns of the machine's monotonic clock; GET /health and /v1/models answer too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from array import array
from functools import lru_cache
from time import perf_counter_ns

import httptools
import msgspec
import uvloop

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_LOGGED = 200_000


class _Wanted(msgspec.Struct, gc=False):
    max_tokens: int = 16
    prompt: msgspec.Raw = msgspec.Raw(b"")
    stream_options: dict[str, bool] | None = None


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


@lru_cache(maxsize=1 << 16)
def _event(done: int, total: int, prompt: int, chat: bool, usage: bool) -> bytes:
    """One event as a vLLM server sends it, about 300 bytes; the last one of a stream carries its end."""
    last = done >= total
    choice: dict[str, object] = {"index": 0, "logprobs": None, "finish_reason": "length" if last else None}
    choice["delta" if chat else "text"] = {"content": " word"} if chat else " word"
    counts = {"prompt_tokens": prompt, "total_tokens": prompt + done, "completion_tokens": done}
    body: dict[str, object] = {
        "id": "cmpl-0123456789abcdef", "object": "chat.completion.chunk" if chat else "text_completion",
        "created": 1_700_000_000, "model": "null", "choices": [{**choice, "stop_reason": None, "token_ids": None}],
    }  # fmt: skip
    text = msgspec.json.encode({**body, "usage": counts} if usage else body)
    made = _chunk(b"data: " + text + b"\n\n")
    if last:
        final = msgspec.json.encode({**body, "choices": [], "usage": counts})
        made += _chunk(b"data: " + final + b"\n\n") + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return made


class Null:
    """All streams of the server, ticked together."""

    def __init__(self, tick_s: float, first_s: float, per_tick: int, usage_always: bool) -> None:
        self.tick_s, self.first_s, self.per_tick, self.usage_always = tick_s, first_s, per_tick, usage_always
        self.streams: dict[_Connection, None] = {}
        self.log: list[tuple[int, int, int, int]] = []
        self.gaps = array("q")

    async def tick(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + self.tick_s, loop.time())
            await asyncio.sleep(due - loop.time())
            now = perf_counter_ns()
            for connection in list(self.streams):
                if now >= connection.first_due_ns:
                    connection.advance(self.per_tick)


class _Connection(asyncio.Protocol):
    def __init__(self, server: Null) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._body: list[bytes] = []
        self._path = b""
        self._descriptor = -1
        self.first_due_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._descriptor = transport.get_extra_info("socket").fileno()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.streams.pop(self, None)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path = url
        self._body = []

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        if not self._path.startswith(b"/v1/") or self._path == b"/v1/models":
            self._answer()
            return
        self._received = perf_counter_ns()
        wanted = msgspec.json.decode(b"".join(self._body), type=_Wanted)
        raw = bytes(wanted.prompt)
        self._prompt = raw.count(b",") + 1 if raw[:1] == b"[" else 1
        self._total, self._done, self._first, self._last = wanted.max_tokens, 0, 0, 0
        asked = bool((wanted.stream_options or {}).get("continuous_usage_stats"))
        self._usage = asked or self._server.usage_always
        self._chat = b"chat" in self._path
        self.first_due_ns = self._received + int(self._server.first_s * 1e9)
        self._server.streams[self] = None

    def advance(self, tokens: int) -> None:
        """Send the next ``tokens`` of this stream in one write."""
        self._done = min(self._total, self._done + tokens)
        data = _event(self._done, self._total, self._prompt, self._chat, self._usage)
        now = perf_counter_ns()
        if not self._first:
            self._first = now
            data = _HEAD + data
        elif len(self._server.gaps) < _LOGGED:
            self._server.gaps.append(now - self._last)
        self._last = now
        try:
            written = os.write(self._descriptor, data)
        except BlockingIOError:
            written = 0
        except OSError:
            written = len(data)
        if written < len(data):
            self._transport.write(data[written:])
        if self._done >= self._total:
            self._server.streams.pop(self, None)
            self._server.log.append((self._received, self._first, now, self._done))

    def _answer(self) -> None:
        answer: dict[str, object] = {"data": [{"id": "null"}], "object": "list"}
        if self._path == b"/null/log":
            answer = {"requests": self._server.log, "gaps": self._server.gaps.tolist()}
            self._server.log, self._server.gaps = [], array("q")
        text = msgspec.json.encode(answer)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text)
        self._transport.write(head + text)


async def _serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    null = Null(options.tick_ms / 1000, options.first_ms / 1000, options.per_tick, options.usage == "always")
    server = await loop.create_server(lambda: _Connection(null), "127.0.0.1", options.port, backlog=4096)
    print("PORT", server.sockets[0].getsockname()[1], flush=True)
    await null.tick()


def main() -> None:
    """Entry of the server's process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tick-ms", type=float, default=20.0)
    parser.add_argument("--first-ms", type=float, default=20.0)
    parser.add_argument("--per-tick", type=int, default=1)
    parser.add_argument("--usage", choices=["asked", "always"], default="asked")
    uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
