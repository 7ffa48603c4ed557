"""An engine that runs already: nothing is started and nothing stopped; only its answers are ours."""

from __future__ import annotations

import threading

from infx.run.launch.process import Ended


class EndpointEngine:
    """The same face as EngineProcess: alive until we let go of it."""

    pid: int | None = None

    def __init__(self) -> None:
        self._over = threading.Event()

    @property
    def alive(self) -> bool:
        return not self._over.is_set()

    @property
    def ended(self) -> Ended | None:
        return Ended(0, None, asked=True) if self._over.is_set() else None

    def stop(self) -> Ended:
        """Let go; the engine itself goes on."""
        self._over.set()
        return Ended(0, None, asked=True)
