"""Ctrl-C and SIGTERM: the first asks to stop, the second stops at once. SIGUSR1 only ever asks."""

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
    """While the block runs, SIGINT, SIGTERM and SIGHUP ask to stop; a second one raises KeyboardInterrupt.

    SIGUSR1 is a scheduler's notice, which often comes beside its SIGTERM: it asks too, and is never the second.
    """
    stop = Stop()

    def handler(number: int, frame: FrameType | None) -> None:
        if stop() and signal.SIGUSR1 not in (number, stop.number):
            raise KeyboardInterrupt
        if number != signal.SIGUSR1 or not stop():
            stop.number = number

    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    before = {number: signal.signal(number, handler) for number in asking}
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)
