"""The process ``infx-sim serve …``: from a command line to a listening server, and to its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from infx.simulator.app import log as lines
from infx.simulator.app.asgi import NAME, App
from infx.simulator.app.clock import VirtualClock
from infx.simulator.app.engine import Engine
from infx.simulator.app.log import Log
from infx.simulator.argv import Arguments, parse
from infx.simulator.deployment import Deployment, Refused, resolve
from infx.simulator.facts import load_facts
from infx.simulator.metrics import Metrics
from infx.sources.tree import find_tree


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
    listener.listen(config.backlog)  # so that nobody who reads of the finished start-up is turned away
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


def _local_config(model: str) -> Mapping[str, Any] | None:
    """The config.json of a model folder, where MODEL is one."""
    path = Path(model) / "config.json"
    try:
        return json.loads(path.read_text()) if path.is_file() else None
    except (OSError, ValueError) as error:
        raise Refused(f"OSError: {path} cannot be read: {error}") from None


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
        deployment = resolve(arguments, os.environ, catalog, constants, _local_config(str(arguments["model"])))
        speed = _speed()
    except Refused as refusal:
        for text in refusal.lines:
            print(f"(EngineCore pid={os.getpid()}) ERROR {text}", file=sys.stderr, flush=True)
        sys.exit(1)
    lines.start_up(log, arguments, deployment, NAME)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(arguments, deployment, listener, log, speed))
