"""Owns what the changelog records of a run: its summary, from the run folder as it was read."""

from __future__ import annotations

import hashlib

from infx.changelog.entries import MeasuredPoint, ResultsSummary
from infx.results.load import LoadedRun
from infx.schema.changelog import Provenance
from infx.schema.result import PointResult

HEADLINE = ("total-throughput-per-gpu", "output-throughput-per-gpu", "interactivity-median", "ttft-p50", "tpot-p50",
            "itl-p50", "e2el-p50")
"""The metrics of a results entry; all others stay in the run folder, whose files the entry names by hash."""

DIGITS = 6
"""Significant digits of a recorded figure."""


def summary(loaded: LoadedRun) -> ResultsSummary:
    """Every finished point of a run, in plan order, with the hash of its file and what speaks against publishing."""
    run = loaded.run
    return ResultsSummary(run=run.id, recipe=run.recipe, runner=run.runner, harness=run.harness_commit,
                          provenance=against(loaded), points=[_point(loaded, result) for result in loaded.results])


def against(loaded: LoadedRun) -> list[Provenance]:
    """What speaks against publishing a run; empty for an official measurement."""
    said: list[tuple[Provenance, bool]] = [
        ("simulated", any(start.simulated for start in loaded.starts.values())),
        ("stands-in", loaded.run.stands_in),
        ("quick", loaded.quick),
        ("unofficial", loaded.unofficial),
    ]
    return [name for name, holds in said if holds]


def _point(loaded: LoadedRun, result: PointResult) -> MeasuredPoint:
    values = result.visits[0].metrics
    metrics = {name: float(f"{values[name].value:.{DIGITS}g}") for name in HEADLINE
               if name in values and values[name].value is not None}
    content = loaded.paths.point(result.point, result.start).result.read_bytes()
    return MeasuredPoint(point=result.point, fingerprint=result.fingerprint, start=result.start,
                         status=result.status.value, metrics=metrics, sha256=hashlib.sha256(content).hexdigest())
