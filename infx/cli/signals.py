"""Ctrl-C and SIGTERM: the first asks to stop, the second stops at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """While the block runs, SIGINT, SIGTERM and SIGHUP set a flag; yields the function that reads it."""
    asked: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, old in before.items():
            signal.signal(number, old)
