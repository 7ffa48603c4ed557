"""The guard: a small program between sweep and engine, so that no engine outlives its sweep.

Run as ``python -I guard.py --log FILE --grace SECONDS -- COMMAND…``. It starts COMMAND in a process group of
its own, copies its output to FILE, and ends the whole group when its standard input closes (the sweep asked,
or died), with SIGTERM first and SIGKILL after the grace. It is a child subreaper, so that helpers which the
engine leaves behind come back to it and are ended too. It reports on standard output, one JSON object a line:
``{"pid": …}`` and at the end ``{"exit": code or null, "signal": number or null, "asked": bool}``.

``--stop`` names a command (JSON list) that asks the engine to stop in SIGTERM's place (a container's engine is
no child of ours), and ``--abandon`` one that clears up when the sweep itself is dead.

Standard library only, and nothing of infx: it must start in milliseconds and never fail to import.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
LOG_LIMIT = 256 * 1024 * 1024


def main() -> int:
    """Run COMMAND under guard; exit status 0 unless it could not be started (127)."""
    arguments = _arguments()
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    # A scheduler's SIGTERM reaches every process of a job, the sweep and the engine too: the guard outlives both.
    # A handler, since what is ignored would be ignored by the engine as well.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    log = Log(arguments.log)
    try:
        engine = subprocess.Popen(arguments.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, process_group=0, bufsize=0, restore_signals=True)
    except OSError as error:
        _say({"exit": 127, "signal": None, "asked": False, "error": f"{arguments.command[0]}: {error.strerror}"})
        return 127
    parent = os.getppid()
    _say({"pid": engine.pid})
    asked = _follow(engine, log)
    if asked:
        _terminate(engine, log, arguments.grace, arguments.stop)
    _sweep_group(engine.pid)
    code = engine.wait()
    _drain(engine, log)
    _reap_strays()
    if os.getppid() != parent and arguments.abandon:
        _run(arguments.abandon)
    _say({"exit": code if code >= 0 else None, "signal": -code if code < 0 else None, "asked": asked})
    return 0


class Log:
    """The engine's output on disk: bounded, and a full disk loses lines, never the engine."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.written = 0

    def write(self, data: bytes) -> None:
        if self.written >= LOG_LIMIT:
            return
        with contextlib.suppress(OSError):
            self.written += os.write(self.fd, data)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("--stop", type=json.loads, default=None)
    parser.add_argument("--abandon", type=json.loads, default=None)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _say(fact: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps(fact) + "\n").encode())


def _follow(engine: subprocess.Popen[bytes], log: Log) -> bool:
    """Copy output until the engine ends (False) or standard input closes (True)."""
    assert engine.stdout is not None
    output = engine.stdout.fileno()
    watched = [0, output]
    while True:
        ready, _, _ = select.select(watched, [], [], 0.2)
        if output in ready:
            data = os.read(output, 65536)
            if data:
                log.write(data)
            else:
                watched.remove(output)
        if 0 in ready and not os.read(0, 4096):
            return True
        if engine.poll() is not None:
            return False


def _run(command: list[str]) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=60)


def _terminate(engine: subprocess.Popen[bytes], log: Log, grace: float, stop: list[str] | None) -> None:
    assert engine.stdout is not None
    if stop is not None:
        _run(stop)
    else:
        _signal_group(engine.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    output = engine.stdout.fileno()
    while engine.poll() is None and time.monotonic() < deadline:
        ready, _, _ = select.select([output], [], [], 0.05)
        if ready:
            data = os.read(output, 65536)
            if data:
                log.write(data)
            else:
                time.sleep(0.02)


def _drain(engine: subprocess.Popen[bytes], log: Log) -> None:
    assert engine.stdout is not None
    output = engine.stdout.fileno()
    while select.select([output], [], [], 0.2)[0]:
        data = os.read(output, 65536)
        if not data:
            return
        log.write(data)


def _sweep_group(group: int) -> None:
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _reap_strays() -> None:
    """End and reap whatever the engine left behind and the kernel gave to us."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        children = _children()
        if not children:
            return
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _children() -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]
    return []


if __name__ == "__main__":
    sys.exit(main())
