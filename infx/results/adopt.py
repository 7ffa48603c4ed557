"""Taking over what a job measured: from the run folder that it wrote on its own into the sweep's run folder."""

from __future__ import annotations

import os
from pathlib import Path

from infx.errors import ResultsError, StorageError
from infx.results.layout import RunPaths
from infx.results.load import load_run
from infx.results.store import RunStore
from infx.schema.result import PointResult


def adopt(store: RunStore, nested: Path) -> list[PointResult]:
    """Move the starts and results of the run folder ``nested`` into ``store``'s; returns the results that moved.

    Each folder moves whole, starts first, so that a process killed in between leaves two runs that can be read, and
    a second call moves the rest. Raises BusyError while a job still writes there, ResultsError when it is damaged
    or another recipe's, StorageError when the disk refuses.
    """
    with RunStore.open(nested):
        loaded = load_run(nested)
        known = {point.key: point.fingerprint for point in load_run(store.paths.root).plan.points}
        for result in loaded.results:
            if known.get(result.point) != result.fingerprint:
                raise ResultsError(f"{result.point} is not what this run planned", where=str(nested))
        for start in loaded.starts:
            _move(RunPaths(nested).start(start).folder, store.paths.start(start).folder)
        for result in loaded.results:
            _move(RunPaths(nested).point(result.point, result.start).folder,
                  store.paths.point(result.point, result.start).folder)
    return list(loaded.results)


def _move(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            source.rename(target)
    except OSError as error:
        raise StorageError(f"cannot take it over: {os.strerror(error.errno or 0)}", where=str(source),
                           hint=f"look after the file system, then `infx runs attach {target.parts[-3]}`") from error
