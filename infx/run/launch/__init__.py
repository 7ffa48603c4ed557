"""Launching engines: one module a way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from infx.engines.protocol import Engine
from infx.errors import RunnerError
from infx.run.launch.process import EngineProcess, find_executable
from infx.schema.runner import Runner
from infx.schema.settings import ServerConfig

_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
"""Names that every engine process gets from the caller; all else must be in the recipe or the profile."""


def command_of(runner: Runner, engine: Engine, server: ServerConfig, port: int, root: Path) -> list[str]:
    """The full command line of an engine process, its port included. Raises RunnerError without the program."""
    if runner.launch != "process" or runner.executable is None:
        raise RunnerError(f"launch: {runner.launch} is not available yet", where=f"runners/{runner.name}.yaml",
                          allowed="process")
    return [find_executable(runner.executable, root), *server.argv, *engine.listen("127.0.0.1", port)]


def check_program(runner: Runner, root: Path) -> None:
    """Before anything is made: the engine's program must be there. Raises RunnerError."""
    if runner.launch == "process" and runner.executable is not None:
        find_executable(runner.executable, root)


def environment_of(runner: Runner, server: ServerConfig, hardware: str) -> dict[str, str]:
    """What the profile and the recipe set; the recipe has the last word."""
    filled = {name: value.format_map({"hardware": hardware, "image": server.image, "model": server.model})
              for name, value in runner.env.items()}
    return {**filled, **server.env}


def passed_names(runner: Runner, caller: Mapping[str, str]) -> list[str]:
    """Names that are taken from the caller's environment."""
    return [name for name in dict.fromkeys([*_PASSED, *runner.pass_env]) if name in caller]


def launch_process(runner: Runner, command: list[str], env: Mapping[str, str], caller: Mapping[str, str], log: Path,
                   root: Path) -> EngineProcess:
    """Start an engine process with the given environment and the passed names, values joined only here."""
    joined = {name: caller[name] for name in passed_names(runner, caller)}
    return EngineProcess(command, {**joined, **env}, log, root, runner.limits.stop_s)
