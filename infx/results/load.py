"""Reading of run folders: what a run is, derived from its files alone, so that it is true after kill −9."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
from pydantic import ValidationError

from infx.errors import ResultsError
from infx.results.layout import RESULT_FILES, START_FILES, RunPaths, is_temporary
from infx.results.migrate import migrate
from infx.schema.plan import Plan, Point
from infx.schema.result import PointResult, Run, Start, Status, Visit
from infx.schema.strict import Strict
from infx.schema.version import RUN_FORMAT

Noun = TypeVar("Noun", bound=Strict)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


class RunState(StrEnum):
    """What the files of a run say about it."""

    COMPLETE = "complete"
    """Every point of the plan has a finished visit and at least one is ok."""
    PARTIAL = "partial"
    """Some points of the plan have no finished visit."""
    FAILED = "failed"
    """Every point ended and none is ok."""


@dataclass(frozen=True)
class LoadedRun:
    """One run folder as read: ``results`` in plan order, several starts of a point by launch time."""

    path: Path
    run: Run
    plan: Plan
    starts: dict[str, Start]
    results: tuple[PointResult, ...]

    @property
    def paths(self) -> RunPaths:
        return RunPaths(self.path)

    @property
    def missing(self) -> list[str]:
        """Keys of points that no start has finished (see ``missing_points``)."""
        return missing_points(self)

    @property
    def state(self) -> RunState:
        if self.missing:
            return RunState.PARTIAL
        return RunState.COMPLETE if any(r.status is Status.OK for r in self.results) else RunState.FAILED

    @property
    def simulated(self) -> bool:
        """True when an engine of this run says that it simulates, or the profile stands in for the engine."""
        return self.run.stands_in or any(start.simulated for start in self.starts.values())

    @property
    def quick(self) -> bool:
        return self.run.quick or self.plan.quick

    @property
    def unofficial(self) -> bool:
        return self.run.unofficial or self.plan.unofficial

    @cached_property
    def _by_point(self) -> dict[str, list[PointResult]]:
        found: dict[str, list[PointResult]] = {}
        for result in self.results:
            found.setdefault(result.point, []).append(result)
        return found

    def of(self, key: str) -> list[PointResult]:
        """Every start's result of a point, oldest first."""
        return self._by_point.get(key, [])

    def chosen(self, key: str) -> PointResult | None:
        """The result that stands for a point: the newest ok one, else the newest; None when there is none."""
        results = self.of(key)
        good = [result for result in results if result.status is Status.OK]
        return (good or results or [None])[-1]

    def requests_file(self, result: PointResult, visit: Visit) -> Path | None:
        """Path of a visit's per-request columns; None when it stored none."""
        if visit.requests_file is None:
            return None
        return self.paths.point(result.point, result.start).folder / visit.requests_file


def load_run(path: Path, metrics: Collection[str] | None = None) -> LoadedRun:
    """Read a run folder; of each visit only ``metrics`` (None: all), which takes a third of the time.

    Raises ResultsError naming the file that is damaged, foreign or of a newer format. What an interrupted
    writer left under hidden names is ignored.
    """
    paths = RunPaths(path)
    if not path.is_dir():
        raise ResultsError("no such run folder", where=str(path), hint="give the path of a folder that holds run.json")
    if not paths.run.is_file():
        raise ResultsError("not a run folder: it has no run.json", where=str(path))
    run = _read(paths.run, "run", Run)
    plan = _read(paths.plan, "plan", Plan)
    if plan.recipe != run.recipe:
        raise ResultsError(f"plan of {plan.recipe!r} in a run of {run.recipe!r}", where=str(paths.plan))
    starts = {}
    for file in _files(path, START_FILES):
        start = _read(file, "start", Start)
        if start.id != file.parent.name:
            raise ResultsError(f"start {start.id!r} lies in another start's folder", where=str(file))
        starts[start.id] = start
    order = {point.key: index for index, point in enumerate(plan.points)}
    results = [_placed(read_result(file, metrics), file, paths, order, starts) for file in _files(path, RESULT_FILES)]
    results.sort(key=lambda r: (order[r.point], starts[r.start].launched_unix, r.start))
    return LoadedRun(path, run, plan, starts, tuple(results))


def read_result(path: Path, metrics: Collection[str] | None = None) -> PointResult:
    """Read one result.json, with ``metrics`` (None: all) of each visit; ResultsError when it is damaged or newer."""
    return _read(path, "result", PointResult, metrics)


def read_plan(path: Path) -> Plan:
    """Read a plan.json wherever it lies; ResultsError when it is damaged or newer."""
    return _read(path, "plan", Plan)


def missing_points(loaded: LoadedRun, retry: frozenset[Status] = frozenset({Status.INTERRUPTED})) -> list[str]:
    """Keys of the plan's points that a resume must measure, in plan order.

    A point is missing when no start has a result of it, or only results whose status is in ``retry``
    (add FAILED to try failed points again).
    """
    done = {result.point for result in loaded.results if result.status not in retry}
    return [point.key for point in loaded.plan.points if point.key not in done]


def planned(loaded: LoadedRun, result: PointResult) -> Point:
    """The plan's point of a result."""
    return loaded.plan.point(result.point)


def _files(root: Path, pattern: str) -> list[Path]:
    return sorted(
        file
        for file in root.glob(pattern)
        if not any(is_temporary(part) for part in file.relative_to(root).parts)
    )


def _placed(
    result: PointResult, file: Path, paths: RunPaths, order: dict[str, int], starts: dict[str, Start]
) -> PointResult:
    """``result``, after a look at whether it lies where the plan and its own words say."""
    if result.point not in order:
        raise ResultsError(f"result of {result.point!r}, which the plan does not have", where=str(file))
    if paths.point(result.point, result.start).result != file:
        raise ResultsError(f"result of {result.point!r} in start {result.start!r} lies elsewhere", where=str(file))
    if result.start not in starts:
        raise ResultsError(
            f"its engine start is missing: {paths.start(result.start).start} does not exist", where=str(file)
        )
    if not result.visits:
        raise ResultsError("a result without a visit", where=str(file))
    return result


def _thinned(raw: bytes, metrics: Collection[str]) -> bytes:
    """A result's text without the values that nobody asked for; what is no result stays as it is.

    Values are passed over as text: making objects of them is what takes the time.
    """
    try:
        content = _OBJECT.decode(raw)
        visits = _OBJECTS.decode(content["visits"])
        for visit in visits:
            for part in ("metrics", "engine"):
                values = _OBJECT.decode(visit[part])
                visit[part] = {name: value for name, value in values.items() if name in metrics}
        return msgspec.json.encode({**content, "visits": visits})
    except (msgspec.MsgspecError, KeyError, RecursionError):
        return raw


def _read(path: Path, kind: str, model: type[Noun], metrics: Collection[str] | None = None) -> Noun:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ResultsError("the file is missing", where=str(path)) from error
    except OSError as error:
        raise ResultsError(f"cannot read: {error.strerror}", where=str(path)) from error
    try:
        noun = model.model_validate_json(raw if metrics is None else _thinned(raw, metrics))
        if noun.format_version == RUN_FORMAT:  # type: ignore[attr-defined]
            return noun
    except ValidationError:
        pass  # the slow way below says what is wrong
    return _explained(path, raw, kind, model)


def _explained(path: Path, raw: bytes, kind: str, model: type[Noun]) -> Noun:
    """Read what is not plainly of the present format: an older one is lifted, everything else raises."""
    try:
        content = json.loads(raw)
    except ValueError as error:
        raise ResultsError(f"damaged: not JSON ({error})", where=str(path), hint="restore it from a copy") from error
    version = content.get("format-version") if isinstance(content, dict) else None
    if type(version) is not int or version < 1:
        raise ResultsError("damaged: no format-version", where=str(path), allowed=f"an integer up to {RUN_FORMAT}")
    if version > RUN_FORMAT:
        raise ResultsError(
            f"format {version} is newer than this infx reads ({RUN_FORMAT})",
            where=str(path),
            hint="read it with the infx that wrote it, or upgrade: pip install --upgrade infx",
        )
    if version < RUN_FORMAT:
        raw = json.dumps(migrate(kind, content, version, RUN_FORMAT)).encode()
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "(whole file)"
        raise ResultsError(
            f"damaged: {place}: {first['msg']}", where=str(path), hint="restore it from a copy"
        ) from error


def known_digests(root: Path) -> dict[str, str]:
    """Image reference → digest, as the starts of a run folder ran them; empty for a new run."""
    starts = [_read(file, "start", Start) for file in _files(root, START_FILES)]
    return {start.image: start.digest for start in starts if start.digest is not None}
