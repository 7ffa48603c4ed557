"""Launching an engine as a process of this machine, under guard."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infx.errors import EngineError, RunnerError

_GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True)
class Ended:
    """How an engine process ended; ``asked`` when we stopped it."""

    exit_code: int | None
    signal: int | None
    asked: bool
    error: str = ""


class EngineProcess:
    """A running engine; use as a context manager, so that it is stopped whatever happens."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path, grace_s: float, *,
                 stop: list[str] | None = None, abandon: list[str] | None = None,
                 afterwards: Callable[[Ended], Ended] = lambda ended: ended) -> None:
        """Start ``argv`` with exactly ``env``, output to ``log``; the rest: launch/prepared.

        Raises EngineError when it cannot be started.
        """
        self._grace_s = grace_s
        self._afterwards = afterwards
        self._ended: Ended | None = None
        self._over = threading.Event()
        extra = [word for name, words in (("--stop", stop), ("--abandon", abandon)) if words is not None
                 for word in (name, json.dumps(words))]
        command = [sys.executable, "-I", str(_GUARD), "--log", str(log), "--grace", str(grace_s), *extra, "--", *argv]
        self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env), cwd=cwd,
                                       start_new_session=True, text=True)
        assert self._guard.stdout is not None
        first = json.loads(self._guard.stdout.readline() or '{"error": "the guard process ended at once"}')
        self.pid: int | None = first.get("pid")
        if self.pid is None:
            self._guard.wait()
            raise EngineError(f"the engine could not be started: {first.get('error', 'no reason given')}",
                              where=argv[0], hint="check the runner profile's `executable`")
        self._reader = threading.Thread(target=self._listen, daemon=True, name="engine-guard")
        self._reader.start()

    def _listen(self) -> None:
        assert self._guard.stdout is not None
        for line in self._guard.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                fact = json.loads(line)
                if "asked" in fact:
                    self._ended = Ended(fact["exit"], fact["signal"], fact["asked"], fact.get("error", ""))
        self._guard.wait()
        if self._ended is None:
            self._ended = Ended(None, None, asked=False, error="the guard process was killed")
        self._ended = self._afterwards(self._ended)
        self._over.set()

    @property
    def alive(self) -> bool:
        """True while the engine's first process runs."""
        return not self._over.is_set()

    @property
    def ended(self) -> Ended | None:
        """How it ended, once it has."""
        return self._ended if self._over.is_set() else None

    def stop(self) -> Ended:
        """SIGTERM, SIGKILL after the grace; returns when the engine and its descendants are gone."""
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.close()
        if not self._over.wait(self._grace_s + 90):
            self._guard.kill()
            self._over.wait(5)
        self._reader.join(5)
        return self._ended or Ended(None, None, asked=True, error="the guard process did not end")

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def find_executable(name: str, root: Path | None) -> str:
    """A program by name on PATH (or beside this Python), or by path relative to the repository.

    Raises RunnerError when there is none.
    """
    if "/" in name:
        path = Path(name) if Path(name).is_absolute() or root is None else root / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
        raise RunnerError(f"the engine's program {name} is not there", where=str(path),
                          hint="for the CPU engine run `make engine-cpu`; else correct `executable` in the profile")
    beside = Path(sys.executable).with_name(name)
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(name)
    if found is None:
        raise RunnerError(f"the engine's program {name!r} is not on PATH",
                          hint="install it, or name a path in the profile's `executable`")
    return found


def free_port() -> int:
    """A TCP port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
