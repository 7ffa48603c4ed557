"""Paths of a run folder: the only place that knows them.

``<UTC>-<recipe key>-<token>/`` holds ``plan.json``, ``run.json``, ``starts/<id>/…`` and
``points/<arm or base>/<tp…-c…>/<start id>/…``. Pure: nothing here touches the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RUNS = "runs"
"""Default folder of run folders."""

PLAN, RUN, LOCK, CHANGELOG = "plan.json", "run.json", ".lock", "changelog.yaml"
START, ENGINE_LOG, METRICS, POWER, SMI = "start.json", "engine.log", "metrics", "power.csv", "smi.txt"
RESULT = "result.json"
JOBS = "jobs"
BASE = "base"

START_FILES = f"starts/*/{START}"
RESULT_FILES = f"points/*/*/*/{RESULT}"
"""Globs, relative to the run folder, that find every start and every result."""


def run_id(created_unix: float, recipe: str, token: str) -> str:
    """Name of a run folder: UTC second, recipe key and a short token (``20261201T093000Z-key-1f2e3d``)."""
    stamp = datetime.fromtimestamp(created_unix, UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{stamp}-{recipe}-{token}"


def temporary(name: str, token: str) -> str:
    """Name under which a file or folder is written before it appears whole; always hidden."""
    return f".{name}.{token}.tmp"


def is_temporary(name: str) -> bool:
    """True for what an interrupted writer may have left."""
    return name.startswith(".") and name.endswith(".tmp")


@dataclass(frozen=True, slots=True)
class PointKey:
    """The parts of a point key ``recipe[@arm]/axes/cN``."""

    recipe: str
    arm: str | None
    axes: str
    concurrency: int

    @classmethod
    def parse(cls, key: str) -> PointKey:
        """Split a key; ValueError when it is none."""
        parts = key.split("/")
        if len(parts) != 3 or not parts[2].startswith("c") or not parts[2][1:].isdigit():
            raise ValueError(f"not a point key: {key!r}")
        recipe, _, arm = parts[0].partition("@")
        return cls(recipe, arm or None, parts[1], int(parts[2][1:]))

    @property
    def arm_folder(self) -> str:
        """``base`` without an arm; an arm that is itself called base is set apart."""
        if self.arm is None:
            return BASE
        return f"@{BASE}" if self.arm == BASE else self.arm


@dataclass(frozen=True, slots=True)
class StartPaths:
    """Files of one engine start."""

    folder: Path

    @property
    def start(self) -> Path:
        return self.folder / START

    @property
    def engine_log(self) -> Path:
        return self.folder / ENGINE_LOG

    @property
    def metrics(self) -> Path:
        return self.folder / METRICS

    @property
    def power(self) -> Path:
        return self.folder / POWER

    @property
    def smi(self) -> Path:
        """What the vendor's tool printed, as it came."""
        return self.folder / SMI


@dataclass(frozen=True, slots=True)
class PointPaths:
    """Files of one point in one engine start."""

    folder: Path

    @property
    def result(self) -> Path:
        return self.folder / RESULT

    def requests(self, ordinal: int) -> Path:
        """Per-request columns of a visit: ``requests.npz``, then ``requests-1.npz`` for the first revisit."""
        return self.folder / ("requests.npz" if ordinal == 0 else f"requests-{ordinal}.npz")


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Files of one run folder."""

    root: Path

    @property
    def plan(self) -> Path:
        return self.root / PLAN

    @property
    def run(self) -> Path:
        return self.root / RUN

    @property
    def lock(self) -> Path:
        return self.root / LOCK

    @property
    def jobs(self) -> Path:
        """What a scheduler's jobs read and write: one folder a job, with a run folder of its own below."""
        return self.root / JOBS

    @property
    def changelog(self) -> Path:
        return self.root / CHANGELOG

    def picture(self, name: str) -> Path:
        """A picture of the run, e.g. ``pareto.svg``."""
        return self.root / name

    def start(self, start: str) -> StartPaths:
        """Files of the start with this id."""
        return StartPaths(self.root / "starts" / start)

    def timeline(self, key: str, start: str, position: int) -> Path:
        """The engine's gauges over the window of a visit: CSV of ``seconds`` since it opened and named columns."""
        parts = PointKey.parse(key)
        name = f"{parts.axes}-c{parts.concurrency}-{position}-timeline.csv"
        return self.start(start).metrics / name

    def point(self, key: str, start: str) -> PointPaths:
        """Files of the point with this key in this start; ValueError when ``key`` is no point key."""
        parts = PointKey.parse(key)
        return PointPaths(self.root / f"points/{parts.arm_folder}/{parts.axes}-c{parts.concurrency}/{start}")
