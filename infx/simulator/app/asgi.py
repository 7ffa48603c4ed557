"""The HTTP skin of one engine: a bare ASGI application that speaks vLLM's API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from infx.schema.version import __version__
from infx.simulator.answers import DONE, Answer
from infx.simulator.app.engine import Engine
from infx.simulator.argv import Arguments
from infx.simulator.requests import BadRequest, read

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
NAME = f"infx-sim {__version__}"
JSON = [(b"content-type", b"application/json")]
EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]
PLAIN = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]


class App:
    """The ASGI application of one engine."""

    def __init__(self, engine: Engine, arguments: Arguments) -> None:
        self.engine = engine
        self._deployment = engine.deployment
        self._details = bool(arguments["enable_prompt_tokens_details"])
        self._force_usage = bool(arguments["enable_force_include_usage"])
        self._created = int(time.time())
        self._count = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        method, path = scope["method"], scope["path"]
        if path in ("/v1/completions", "/v1/chat/completions"):
            if method != "POST":
                await _reply(send, 405, b'{"detail":"Method Not Allowed"}')
                return
            await self._generate(receive, send, chat=path.startswith("/v1/chat"))
            return
        await self._other(method, path, send)

    async def _other(self, method: str, path: str, send: Send) -> None:
        if path == "/metrics":
            await _reply(send, 200, self.engine.metrics.render(), PLAIN)
        elif path in ("/health", "/ping"):
            await _reply(send, 200, b"")
        elif path == "/version":
            await _reply(send, 200, msgspec.json.encode({"version": NAME, "simulated": True}))
        elif path == "/v1/models":
            await _reply(send, 200, msgspec.json.encode(self._models()))
        elif path == "/reset_prefix_cache" and method == "POST":
            done = self.engine.scheduler.cache.reset_prefix_cache()
            await _reply(send, 200 if done else 500, b"")
        else:
            await _reply(send, 404, b'{"detail":"Not Found"}')

    def _models(self) -> dict[str, Any]:
        length = self._deployment.limits.max_model_len
        common = {"object": "model", "created": self._created, "owned_by": "vllm", "parent": None}
        root = self._deployment.facts.model.location
        data = [{"id": name, **common, "root": root, "max_model_len": length} for name in self._deployment.names]
        return {"object": "list", "data": data}

    async def _generate(self, receive: Receive, send: Send, *, chat: bool) -> None:
        raw = await _body(receive)
        try:
            wanted = read(raw, self._deployment.names, self._deployment.limits.max_model_len, chat=chat)
            sequence = self.engine.submit(**wanted.sequence(self._deployment.block_size))
        except (BadRequest, ValueError) as error:
            refusal = error if isinstance(error, BadRequest) else BadRequest(str(error))
            await _reply(send, refusal.status, refusal.body())
            return
        self._count += 1
        usage = wanted.include_usage or self._force_usage
        answer = Answer(
            f"{'chatcmpl' if chat else 'cmpl'}-{self._count:016x}", self._deployment.names[0], int(time.time()),
            wanted.prompt_tokens, sequence.key,
            chat=chat, continuous_usage=wanted.continuous_usage, ids=wanted.return_token_ids,
        )  # fmt: skip
        watch = asyncio.ensure_future(_gone(receive))
        watch.add_done_callback(lambda task: None if task.cancelled() else self.engine.abort(sequence))
        try:
            if wanted.stream:
                await self._stream(send, sequence, answer, usage=usage, chat=chat)
            else:
                await self._whole(send, sequence, answer)
        finally:
            watch.cancel()
            self.engine.abort(sequence)

    async def _stream(self, send: Send, sequence: Any, answer: Answer, *, usage: bool, chat: bool) -> None:
        stream = sequence.sink
        tokens, finish = await stream.fetch()
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        if chat:
            await send({"type": "http.response.body", "body": answer.role(), "more_body": True})
        while finish is None:
            await send({"type": "http.response.body", "body": answer.event(tokens, None), "more_body": True})
            tokens, finish = await stream.fetch()
        if finish == "abort":
            return
        if self._details:
            answer.cached = sequence.cached_tokens
        tail = answer.event(tokens, finish) + (answer.usage_event() if usage else b"") + DONE
        await send({"type": "http.response.body", "body": tail, "more_body": False})

    async def _whole(self, send: Send, sequence: Any, answer: Answer) -> None:
        finish = None
        while finish is None:
            tokens, finish = await sequence.sink.fetch()
            answer.made += tokens
        if finish == "abort":
            return
        if self._details:
            answer.cached = sequence.cached_tokens
        await _reply(send, 200, answer.whole(finish))


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] = JSON) -> None:
    sized = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": body})
