"""The virtual clock against real time: how far it should be now, and waiting until it is at a moment.

Event loops round timers to a millisecond; a step lasts a few, so Linux's timerfd is used where it exists.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time

CLOCK_MONOTONIC, NONBLOCK_CLOEXEC = 1, 0o2004000


class _Spec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "after_s", "after_ns")]


class VirtualClock:
    """Runs ``speed`` virtual seconds per real second from the moment it is made (inside a running loop)."""

    def __init__(self, speed: float = 1.0) -> None:
        """ValueError for a speed that is not positive."""
        if not speed > 0:
            raise ValueError(f"the speed must be positive, not {speed}")
        self.speed = speed
        self._start = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._spec = _Spec()
        self._fd = _timerfd()
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._fired)

    def now(self) -> float:
        """The virtual time that real time asks for."""
        return (time.monotonic() - self._start) * self.speed

    async def until(self, moment: float) -> float:
        """Wait until ``moment``; virtual seconds by which it was missed on return. Always lets others run."""
        left = (moment - self.now()) / self.speed
        if left <= 0:
            await asyncio.sleep(0)
        elif self._fd < 0:
            await asyncio.sleep(left)
        else:
            self._waiter = self._loop.create_future()
            self._arm(left)
            await self._waiter
        return max(0.0, self.now() - moment)

    def close(self) -> None:
        """Give the timer back."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _arm(self, seconds: float) -> None:
        nanoseconds = max(1, int(seconds * 1e9))
        self._spec.after_s, self._spec.after_ns = divmod(nanoseconds, 10**9)
        _LIBC.timerfd_settime(self._fd, 0, ctypes.byref(self._spec), None)

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


_LIBC = ctypes.CDLL(None, use_errno=True)


def _timerfd() -> int:
    create = getattr(_LIBC, "timerfd_create", None)
    return -1 if create is None else create(CLOCK_MONOTONIC, NONBLOCK_CLOEXEC)
