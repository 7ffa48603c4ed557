"""What a sweep tells while it runs: plain events, which the command line draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from infx.schema.result import Death, PointResult, Start


@dataclass(frozen=True)
class SweepBegan:
    """A run folder exists; ``points`` are to be measured in ``blocks`` engine starts."""

    run: str
    folder: str
    points: int
    blocks: int


@dataclass(frozen=True)
class EngineStarting:
    """An engine is starting; repeated while it loads, with the seconds so far and the last line of its log."""

    block: str
    seconds: float
    last_line: str = ""


@dataclass(frozen=True)
class EngineReady:
    """The engine generated its first token."""

    start: Start


@dataclass(frozen=True)
class EngineDied:
    """The engine did not start, died or hung."""

    block: str
    death: Death


@dataclass(frozen=True)
class PointProgress:
    """A point is being measured: phase and share of what it needs (0–1)."""

    point: str
    phase: str
    share: float
    requests: int


@dataclass(frozen=True)
class PointDone:
    """A point's visit is stored."""

    point: str
    result: PointResult
    visit: int


@dataclass(frozen=True)
class PointSkipped:
    """A point was not measured in this sweep, and why."""

    point: str
    why: str


@dataclass(frozen=True)
class QueueSeen:
    """The scheduler's queue at one look: jobs of this sweep by what becomes of them, and why the first one waits."""

    queued: int
    running: int
    done: int
    lost: int
    why: str = ""


@dataclass(frozen=True)
class BlockLost:
    """A job ended without having run its block to the end, and why."""

    block: str
    job: str
    why: str


Event = (SweepBegan | EngineStarting | EngineReady | EngineDied | PointProgress | PointDone | PointSkipped | QueueSeen
         | BlockLost)
Sink = Callable[[Event], None]
