"""``infx-sim serve …``: the HTTP skin (a bare ASGI application) and the process round it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from infx.schema.version import __version__
from infx.simulator import log as lines
from infx.simulator.answers import DONE, Answer
from infx.simulator.argv import Arguments, parse
from infx.simulator.clock import VirtualClock
from infx.simulator.deployment import Deployment, Refused, resolve
from infx.simulator.engine import Engine
from infx.simulator.facts import load_facts
from infx.simulator.log import Log
from infx.simulator.metrics import Metrics
from infx.simulator.requests import BadRequest, read
from infx.sources.tree import find_tree

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


class _Server(uvicorn.Server):
    """The web server; a signal also ends the streams, so that it need not wait for them."""

    def __init__(self, config: uvicorn.Config, engine: Engine) -> None:
        super().__init__(config)
        self._engine = engine
        self._on = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._on.call_soon_threadsafe(self._engine.abort_all)
        super().handle_exit(sig, frame)


def _web_log(pid: int, level: str) -> dict[str, Any]:
    form = f"(APIServer pid={pid}) %(levelname)s:     %(message)s"
    handler = {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "plain"}
    logger = {"handlers": ["out"], "level": level, "propagate": False}
    loggers = {"uvicorn": logger, "uvicorn.access": logger}
    formatters = {"plain": {"format": form}}
    return {"version": 1, "formatters": formatters, "handlers": {"out": handler}, "loggers": loggers}


async def _serve(arguments: Arguments, deployment: Deployment, listener: socket.socket, log: Log, speed: float) -> None:
    clock = VirtualClock(speed)
    metrics = Metrics(deployment.scheduler(), deployment.names[0], deployment.cache_info())
    engine = Engine(deployment, clock, metrics, log)
    config = uvicorn.Config(
        App(engine, arguments), log_config=_web_log(os.getpid(), str(arguments["uvicorn_log_level"]).upper()),
        access_log=not arguments["disable_uvicorn_access_log"], lifespan="on", timeout_graceful_shutdown=1,
        timeout_keep_alive=int(arguments["timeout_keep_alive"] or 5), server_header=False, http="httptools", ws="none",
    )  # fmt: skip
    lines.serving(log, *listener.getsockname()[:2])
    stepping = asyncio.ensure_future(engine.run())
    serving = asyncio.ensure_future(_Server(config, engine).serve(sockets=[listener]))
    await asyncio.wait({stepping, serving}, return_when=asyncio.FIRST_COMPLETED)
    stepping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stepping
    await serving
    clock.close()


def _listen(arguments: Arguments) -> socket.socket:
    """The listening socket, bound before anything is loaded, as the engine does it."""
    host = str(arguments["host"] or "0.0.0.0")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(arguments["port"])))
    except OSError as error:
        listener.close()
        reason = f"error while attempting to bind on address ('{host}', {arguments['port']})"
        raise Refused(f"OSError: [Errno {error.errno}] {reason}: {os.strerror(error.errno or 0).lower()}") from None
    return listener


def _speed() -> float:
    text = os.environ.get("INFX_SIM_SPEED") or "1"
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise Refused(f"ValueError: INFX_SIM_SPEED must be a positive number, not {text!r}")
    return speed


def main() -> None:
    """Console script ``infx-sim``: exit 2 on a wrong command line, 1 where it would not start, 0 on SIGTERM."""
    arguments = parse(sys.argv[1:])
    if arguments is None:
        print(NAME)
        return
    log = Log(os.getpid())
    lines.before_load(log, arguments, NAME)
    try:
        listener = _listen(arguments)
        catalog, constants = load_facts(find_tree(Path.cwd()))
        deployment = resolve(arguments, os.environ, catalog, constants)
        speed = _speed()
    except Refused as refusal:
        for text in refusal.lines:
            print(f"(EngineCore pid={os.getpid()}) ERROR {text}", file=sys.stderr, flush=True)
        sys.exit(1)
    lines.start_up(log, arguments, deployment, NAME)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(arguments, deployment, listener, log, speed))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    import uvloop

    return uvloop.new_event_loop
