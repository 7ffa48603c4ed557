"""The guard of tests/unit: no network, no process, no waiting. A unit test that needs one belongs elsewhere."""

from __future__ import annotations

import asyncio
import multiprocessing.process
import os
import socket
import subprocess
import time

import pytest

BANNED = [
    (socket.socket, ("connect", "connect_ex", "bind", "listen", "sendto")),
    (socket, ("create_connection", "create_server", "getaddrinfo")),
    (subprocess.Popen, ("__init__",)),
    (multiprocessing.process.BaseProcess, ("start",)),
    (os, ("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve")),
]


@pytest.fixture(autouse=True)
def pure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes sockets, processes and sleeping fail the test, past any `except Exception`."""
    for owner, names in BANNED:
        for name in names:
            monkeypatch.setattr(owner, name, refusal(f"{getattr(owner, '__name__', owner)}.{name}"))
    real_sleep = asyncio.sleep

    async def sleep(delay: float, result: object = None) -> object:
        # Giving way to other tasks takes no time and is allowed.
        return await real_sleep(0, result) if delay <= 0 else refusal("asyncio.sleep")()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(time, "sleep", refusal("time.sleep"))


def refusal(name: str):
    def refuse(*_: object, **__: object) -> None:
        pytest.fail(f"a unit test may not use {name}: give the time or the data as a parameter", pytrace=True)

    return refuse
