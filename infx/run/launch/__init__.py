"""Launching engines: one module a way, all of them ending in a command that runs under guard."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from infx.engines.protocol import Engine
from infx.errors import RunnerError
from infx.run.launch import container, pyxis
from infx.run.launch.prepared import Prepared
from infx.run.launch.process import EngineProcess, find_executable
from infx.schema.runner import Runner
from infx.schema.settings import ServerConfig

OWNER = "INFX_OWNER"
"""Name that every engine process has in its environment: who started it, so that leftovers can be told apart."""

_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
"""Names that every engine process gets from the caller; all else must be in the recipe or the profile."""


def check_program(runner: Runner, root: Path) -> None:
    """Before anything is made: the engine's program must be there. Raises RunnerError."""
    if runner.launch == "process" and runner.executable is not None:
        find_executable(runner.executable, root)


def prepare(runner: Runner, engine: Engine, server: ServerConfig, *, hardware: str, port: int, root: Path,
            caller: Mapping[str, str], gpus: Sequence[int], known_digest: str | None, owner: str) -> Prepared:
    """Make an engine start ready. Raises RunnerError or RemoteError before anything runs.

    ``gpus``: indices of the accelerators that it may use; ``known_digest``: the digest that this run has used
    for the image so far; ``owner``: who starts it, for labels.
    """
    env = environment_of(runner, server, hardware, gpus)
    argv = [*server.argv, *engine.listen("127.0.0.1", port)]
    if runner.launch == "process" and runner.executable is not None:
        command = [find_executable(runner.executable, root), *engine.program[1:], *argv]
        passed = {name: caller[name] for name in (*_PASSED, *runner.pass_env) if name in caller}
        return Prepared(shown=command, env=env, spawn_env={**passed, **env, OWNER: owner},
                        passed=list(passed))
    if runner.launch == "docker" and runner.container is not None:
        image = container.resolve_image(runner.container, server.image, known=known_digest)
        asked = container.ContainerRequest(
            name=f"infx-{secrets.token_hex(6)}", owner=owner, program=engine.program, argv=argv, env=env,
            passed={name: caller[name] for name in runner.pass_env if name in caller}, gpus=gpus,
            grace_s=runner.limits.stop_s)
        return container.prepare(runner.container, image, asked)
    if runner.launch == "pyxis" and runner.container is not None and runner.slurm is not None:
        image = pyxis.imported(Path(os.path.expandvars(runner.slurm.images)), server.image, known=known_digest)
        return pyxis.prepare(runner.container, image, program=engine.program, argv=argv, env=env,
                             passed={name: caller[name] for name in runner.pass_env if name in caller}, caller=caller)
    raise RunnerError(f"launch: {runner.launch} is not available here", where=f"runners/{runner.name}.yaml",
                      allowed="process, docker, pyxis")


def environment_of(runner: Runner, server: ServerConfig, hardware: str, gpus: Sequence[int] = ()) -> dict[str, str]:
    """What the profile and the recipe set; the recipe has the last word, except on the accelerators."""
    filled = {name: value.format_map({"hardware": hardware, "image": server.image, "model": server.model})
              for name, value in runner.env.items()}
    mine = {runner.visible: ",".join(map(str, gpus))} if runner.visible and gpus else {}
    return {**filled, **server.env, **mine}


def launch(prepared: Prepared, log: Path, root: Path, grace_s: float) -> EngineProcess:
    """Run a prepared engine under guard; values of the environment join only here."""
    return EngineProcess(prepared.shown, prepared.spawn_env, log, root, grace_s, stop=prepared.stop,
                         abandon=prepared.abandon, afterwards=prepared.afterwards)


def owner_label(run: str, job: str = "") -> str:
    """Who starts an engine: the run, this process and when it began (a process id alone is used again), the job."""
    return f"{run}:{os.getpid()}:{began(os.getpid())}" + (f":{job}" if job else "")


def began(pid: int) -> str | None:
    """When a process began, in the kernel's ticks since boot; None when there is no such process, or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] == "Z" else fields[19]
