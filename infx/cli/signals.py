"""Ctrl-C and SIGTERM: the first asks to stop, the second stops at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Stop:
    """Whether somebody asked to stop (call it), and by which signal."""

    number: int | None = None

    def __call__(self) -> bool:
        return self.number is not None

    @property
    def exit_code(self) -> int:
        """128 + the signal, as shells report it."""
        return 128 + (self.number or signal.SIGINT)


@contextlib.contextmanager
def stop_signals() -> Iterator[Stop]:
    """While the block runs, SIGINT, SIGTERM and SIGHUP ask to stop; a second one raises KeyboardInterrupt."""
    stop = Stop()

    def handler(number: int, frame: FrameType | None) -> None:
        if stop():
            raise KeyboardInterrupt
        stop.number = number

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)
