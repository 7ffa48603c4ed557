"""The guard of the unit tests holds: each of these would touch the world if it did not."""

import asyncio
import os
import socket
import subprocess
import time
import urllib.request

import pytest


def dial() -> None:
    try:
        socket.create_connection(("127.0.0.1", 9))
    except Exception:  # the guard must not be swallowed by code that tolerates failures
        return


def listen() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))


async def dial_async() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


TOUCHES = {
    "dial": dial,
    "listen": listen,
    "fetch": lambda: urllib.request.urlopen("http://127.0.0.1:9/"),
    "run": lambda: subprocess.run(["true"]),
    "system": lambda: os.system("true"),
    "fork": lambda: os.fork() or os._exit(0),
    "sleep": lambda: time.sleep(0.001),
    "async sleep": lambda: asyncio.run(asyncio.sleep(0.001)),
    "async dial": lambda: asyncio.run(dial_async()),
}


@pytest.mark.parametrize("name", TOUCHES)
def test_the_world_is_out_of_reach(name):
    with pytest.raises(pytest.fail.Exception, match="a unit test may not use"):
        TOUCHES[name]()


def test_giving_way_is_allowed():
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"
