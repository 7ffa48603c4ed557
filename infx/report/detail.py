"""A visit from inside: distributions and time lines from its per-request columns, small enough to inline."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from infx.errors import ResultsError
from infx.measure.columns import PHASES, Outcome
from infx.measure.stored import StoredTable
from infx.results.load import LoadedRun
from infx.schema.result import PointResult, Visit
from infx.workload.session import Phase

BINS, STEPS = 40, 120


@dataclass(frozen=True)
class Detail:
    """``histograms``: name → (low edge, high edge, counts), ms, equal bins. ``lines``: name → values over ``seconds``.

    ``engine``: name → (seconds, values), the engine's gauges over the window where the run keeps them.
    """

    histograms: dict[str, tuple[float, float, list[int]]]
    seconds: float
    lines: dict[str, list[float]]
    missing: str | None = None
    engine: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)


def detail(loaded: LoadedRun, result: PointResult, visit: Visit) -> Detail:
    """The detail of a visit; without readable columns everything is empty and ``missing`` says why."""
    path = loaded.requests_file(result, visit)
    if path is None:
        return Detail({}, 0.0, {}, "the visit stored no per-request columns")
    engine = gauges(loaded.paths.timeline(result.point, result.start, visit.position))
    try:
        with StoredTable(path) as stored:
            found = summarise(stored.column, lambda: zip(stored.chunks("read_ns"), stored.chunks("read_tokens"),
                                                         strict=True))
    except FileNotFoundError:
        return Detail({}, 0.0, {}, f"{path.name} is missing", engine)
    except ResultsError as error:
        return Detail({}, 0.0, {}, error.message, engine)
    return Detail(*found, engine=engine)


def summarise(
    column: Callable[[str], np.ndarray], reads: Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]
) -> tuple[dict[str, tuple[float, float, list[int]]], float, dict[str, list[float]], str | None]:
    """Histograms, length in seconds, lines and what is missing, from columns by name and chunks of reads.

    Distributions are of measured good requests; TPOT is (last − first) ÷ (output − tokens of the first read), as
    everywhere. Requests in flight and output rate are over the whole load.
    """
    sent, end, first, last = (column(name) for name in ("sent_ns", "end_ns", "first_ns", "last_ns"))
    if not len(sent):
        return {}, 0.0, {}, "no request was stored"
    good = (column("phase") == PHASES.index(Phase.MAIN)) & (column("outcome") == Outcome.OK) & (first > 0)
    first_tokens = column("first_tokens")[good]
    later = column("output_tokens")[good] - first_tokens
    spread = (last - first)[good] / 1e6
    known = (later > 0) & (first_tokens > 0) & (spread > 0)
    ttft, e2el = ((moment - sent)[good] / 1e6 for moment in (first, last))
    series = {"ttft": ttft, "tpot": spread[known] / later[known], "e2el": e2el}
    histograms = {name: _histogram(values) for name, values in series.items() if len(values)}
    begun = sent > 0
    if not begun.any():
        return histograms, 0.0, {}, "no request was sent"
    start, stop = int(sent[begun].min()), int(max(end.max(), sent.max()))
    if stop <= start:
        return histograms, 0.0, {}, "the load took no time"
    lines = {"in-flight": _in_flight(sent[begun], end[begun & (end > 0)], start, stop)}
    rate = _rate(reads(), start, stop)
    if rate is not None:
        lines["output-rate"] = rate
    return histograms, round((stop - start) / 1e9, 3), lines, None


def gauges(path: Path) -> dict[str, tuple[list[float], list[float]]]:
    """The engine's gauges over a window: a CSV of ``seconds`` and named columns; empty cells are left out."""
    if not path.is_file():
        return {}
    found: dict[str, tuple[list[float], list[float]]] = {}
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    for row in rows:
        for name, cell in row.items():
            if name != "seconds" and cell:
                times, values = found.setdefault(name, ([], []))
                times.append(float(row["seconds"]))
                values.append(float(cell))
    thin = {name: max(1, len(times) // STEPS) for name, (times, _) in found.items()}
    return {name: (times[:: thin[name]], values[:: thin[name]]) for name, (times, values) in found.items()}


def _histogram(values: np.ndarray) -> tuple[float, float, list[int]]:
    counts, edges = np.histogram(values, bins=BINS)
    return round(float(edges[0]), 4), round(float(edges[-1]), 4), [int(count) for count in counts]


def _in_flight(sent: np.ndarray, end: np.ndarray, start: int, stop: int) -> list[float]:
    edges = np.linspace(start, stop, STEPS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    begun = np.searchsorted(np.sort(sent), middle, side="right")
    return [int(x) for x in begun - np.searchsorted(np.sort(end), middle, side="right")]


def _rate(reads: Iterable[tuple[np.ndarray, np.ndarray]], start: int, stop: int) -> list[float] | None:
    """Output tokens a second in each step; None when no read says how many tokens it carried."""
    total, known = np.zeros(STEPS), False
    for when, tokens in reads:
        carried = np.maximum(tokens, 0)
        known = known or bool(carried.any())
        step = ((when - start) * (STEPS / (stop - start))).astype(np.int64)
        total += np.bincount(np.clip(step, 0, STEPS - 1), weights=carried, minlength=STEPS)
    seconds = (stop - start) / 1e9 / STEPS
    return [float(f"{x / seconds:.4g}") for x in total] if known else None
