"""One engine start: launch, readiness, what it says of itself, and its end."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests
from pydantic import JsonValue

from infx.engines.deaths import classify
from infx.engines.loglines import clean_lines, meaningful_tail
from infx.run.context import Context
from infx.run.events import EngineStarting
from infx.run.launch import launch, owner_label, prepare
from infx.run.launch.endpoint import EndpointEngine
from infx.run.launch.process import Ended, EngineProcess, free_port
from infx.run.lease import GpuLease, lease_folder
from infx.run.place.node import Given, given, job_label, node_name
from infx.run.ready import ask_for_a_token, wait_until_ready
from infx.run.telemetry.samples import samples_csv
from infx.run.telemetry.smi import GpuSampler
from infx.schema.image import Pin, parse_image
from infx.schema.plan import Block
from infx.schema.result import Death, Observed, Start, Visit
from infx.schema.settings import ServerConfig
from infx.schema.version import RUN_FORMAT

_TAIL_BYTES = 200_000
_HEAD_BYTES = 4_000_000


@dataclass
class RunningEngine:
    """An engine that was launched; ``death`` is set when it never became what the plan asks for."""

    start: Start
    process: EngineProcess | EndpointEngine
    base_url: str
    log: Path
    lease: GpuLease | Given | None = None
    sampler: GpuSampler | None = None
    death: Death | None = None
    served: bool = False

    @property
    def alive(self) -> bool:
        return self.process.alive


def start_engine(context: Context, block: Block) -> RunningEngine:
    """Launch the block's server and wait for its first token; the start is stored as soon as it is launched."""
    server = context.plan.servers[block.server]
    identity = f"{block.id}-{secrets.token_hex(3)}"
    context.emit(EngineStarting(block.id, 0.0))
    lease = _gpus(context, server)
    try:
        running = _launched(context, block, server, identity, lease)
    except BaseException:
        if lease is not None:
            lease.release()
        raise
    try:
        start = running.start
        context.store.write_start(start)
        _become_ready(context, running, block, server)
    except BaseException:
        end_start(context, running, None)
        raise
    return running


def _gpus(context: Context, server: ServerConfig) -> GpuLease | Given | None:
    """The accelerators of this start, held until it ends; None where the profile does not count them."""
    if context.runner.place == "slurm":
        return given(context.environment, server.parallel.gpus, context.runner.visible)
    if context.runner.gpus is None:
        return None
    return GpuLease(lease_folder(context.environment), context.runner.gpus, server.parallel.gpus)


def _launched(context: Context, block: Block, server: ServerConfig, identity: str, lease: GpuLease | Given | None
              ) -> RunningEngine:
    runner = context.runner
    if runner.launch == "endpoint":
        return _attached(context, block, server, identity)
    port = free_port()
    gpus = lease.indices if lease is not None else []
    named = lease.named(by_daemon=runner.launch == "docker") if isinstance(lease, Given) else gpus
    prepared = prepare(
        runner, context.engine, server, hardware=context.plan.hardware, port=port, root=context.root,
        caller=context.environment, gpus=named, known_digest=context.digests.get(server.image),
        owner=owner_label(context.store.paths.root.name, job_label(context.environment)))
    if prepared.digest is not None:
        context.digests[server.image] = prepared.digest
    log = context.store.start_folder(identity).engine_log
    launched = time.time()
    process = launch(prepared, log, context.root, runner.limits.stop_s)
    start = Start(
        format_version=RUN_FORMAT, id=identity, block=block.id, server=server.id, argv=prepared.shown,
        env=dict(prepared.env), passed_env=prepared.passed, image=server.image, digest=prepared.digest,
        image_env=dict(prepared.image_env), container=prepared.container, node=node_name(context.environment),
        devices=[str(index) for index in gpus], launched_unix=launched)
    return RunningEngine(start, process, f"http://127.0.0.1:{port}", log, lease)


def _attached(context: Context, block: Block, server: ServerConfig, identity: str) -> RunningEngine:
    url = (context.runner.url or "").rstrip("/")
    start = Start(format_version=RUN_FORMAT, id=identity, block=block.id, server=server.id, argv=[], env={},
                  image=server.image, node=urlsplit(url).hostname or url, launched_unix=time.time())
    return RunningEngine(start, EndpointEngine(), url, context.store.start_folder(identity).engine_log)


def _become_ready(context: Context, running: RunningEngine, block: Block, server: ServerConfig) -> None:
    look = ask_for_a_token(running.base_url, server.served_name, context.plan.token_ids,
                           lambda: running.process.alive, timeout_s=context.runner.limits.quiet_s)
    seconds, death = wait_until_ready(
        look, context.runner.limits.ready_s, context.should_stop,
        lambda at: context.emit(EngineStarting(block.id, at, _last_line(running.log))))
    if death is None:
        version = _version(running.base_url, context.engine.version_path)
        observed, death = _check_identity(context, server, version)
        observed += _read_back(context, running, server)
        wrong = [item for item in observed if item.verdict == "mismatch"]
        if death is None and wrong:
            said = "; ".join(f"{item.name}: asked {item.wanted!r}, found {item.found!r}" for item in wrong)
            death = Death(reason="label-mismatch", message=f"the engine does not run what the recipe says: {said}")
        running.start = running.start.model_copy(update={
            "ready_s": seconds, "version": version, "observed": observed,
            "effective": context.engine.effective(_head(running.log)),
            "simulated": version.get("simulated") is True})
    running.death = None if death is None else _with_lines(death, running)
    if running.death is None:
        context.store.write_start(running.start)
        if context.runner.gpu_metrics is not None:
            running.sampler = GpuSampler(context.runner.gpu_metrics,
                                         context.store.paths.start(running.start.id).smi, context.environment)


def _read_back(context: Context, running: RunningEngine, server: ServerConfig) -> list[Observed]:
    """Verdicts on argv and environment; nothing for an engine that others started, whose log is not ours."""
    if context.runner.launch == "endpoint":
        return []
    log = _head(running.log)
    pid = context.engine.server_pid(log) if running.start.container is None else None
    return context.engine.observe(log, server.argv, server.env, _environ(pid))


def _environ(pid: int | None) -> dict[str, str] | None:
    """The environment of a running process; None where it cannot be read."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    pairs = (item.split("=", 1) for item in data.decode("utf-8", "replace").split("\0") if "=" in item)
    return dict(pairs)


def _version(base_url: str, path: str) -> dict[str, JsonValue]:
    try:
        reply = requests.get(f"{base_url}{path}", timeout=10, allow_redirects=False).json()
    except (requests.RequestException, ValueError):
        return {}
    if not isinstance(reply, dict):
        return {}
    # Elsewhere the version stands among all arguments, keys of clients among them.
    return reply if path == "/version" else {name: reply[name] for name in ("version", "simulated") if name in reply}


def _check_identity(context: Context, server: ServerConfig, version: dict[str, JsonValue]
                    ) -> tuple[list[Observed], Death | None]:
    """The engine must be what the profile says: a simulator or not; a package of the pinned version."""
    simulated = version.get("simulated") is True
    if simulated != context.runner.stands_in:
        word = "simulates" if simulated else "does not say that it simulates"
        said = f"the engine's {context.engine.version_path} {word}"
        return [], Death(reason="wrong-engine", message=f"{said}, but the profile {context.runner.name} "
                         f"has stands-in: {str(context.runner.stands_in).lower()}")
    image = parse_image(server.image)
    found = context.engine.version_of(version)
    if image.pin is not Pin.PACKAGE or simulated:
        return [], None
    if found is None:
        return [Observed(name="version", wanted=image.tag, verdict="unreadable")], None
    same = found.split("+")[0] == image.tag.split("+")[0]
    seen = Observed(name="version", wanted=image.tag, found=found, verdict="verified" if same else "mismatch",
                    evidence=f"GET {context.engine.version_path}")
    if same:
        return [seen], None
    return [seen], Death(reason="wrong-engine", message=f"pinned {server.image}, but /version says {found}")


def death_of(engine: RunningEngine, visit: Visit) -> Death | None:
    """How the engine died during a visit, or hung; None while it lives and answers."""
    if not engine.process.alive:
        ended = engine.process.ended or Ended(None, None, asked=False)
        word = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.exit_code}"
        word = f"{word}; {ended.error}" if ended.error else word
        death = Death(reason="died", message=f"the engine died while it was measured ({word})")
        return _with_lines(death, engine)
    if any(reason.code == "engine-hung" for reason in visit.reasons):
        return _with_lines(Death(reason="hung", message="the engine lives but answers no more"), engine)
    return None


def _with_lines(death: Death, running: RunningEngine) -> Death:
    """The death with its cause, its exit state and the lines that tell it."""
    ended = running.process.ended
    log = _tail(running.log)
    verdict = classify(log, exit_code=ended.exit_code if ended else None, signal=ended.signal if ended else None,
                       out_of_memory=bool(ended and "out of memory" in ended.error))
    telling = meaningful_tail(log)
    return death.model_copy(update={
        "cause": verdict.code, "advice": verdict.advice,
        "lines": telling if not verdict.line or verdict.line in telling else [verdict.line, *telling],
        "exit_code": ended.exit_code if ended else None,
        "signal": str(ended.signal) if ended and ended.signal is not None else None,
    })


def end_start(context: Context, running: RunningEngine, death: Death | None) -> Start:
    """Stop the engine and store how its start ended."""
    ended = running.process.stop()
    samples = running.sampler.stop() if running.sampler is not None else None
    if running.lease is not None:
        running.lease.release()
    proofs = context.engine.features(_head(running.log), running.start.env)
    running.start = running.start.model_copy(update={
        "observed": [*running.start.observed, *proofs],
        "ended_unix": time.time(), "exit_code": ended.exit_code if ended.exit_code is not None else
        -(ended.signal or 0), "death": death if death is not None else running.death})
    context.store.write_start(running.start)
    if samples is not None:
        context.store.write_file(context.store.paths.start(running.start.id).power, samples_csv(samples))
    return running.start


def _head(log: Path) -> str:
    """The beginning of a log, where an engine reports its settings."""
    try:
        with log.open("rb") as file:
            return file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _last_line(log: Path) -> str:
    lines = clean_lines(_tail(log)[-4000:])
    return lines[-1][:160] if lines else ""
