"""A visit from inside: distributions and time lines from its per-request columns, small enough to inline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infx.errors import ResultsError
from infx.measure.table import RequestTable
from infx.results.load import LoadedRun
from infx.schema.result import PointResult, Visit
from infx.workload.session import Phase

BINS, STEPS = 40, 120


@dataclass(frozen=True)
class Detail:
    """``histograms``: name → (edges n + 1, counts n), ms. ``lines``: name → values over ``times`` (seconds)."""

    histograms: dict[str, tuple[list[float], list[int]]]
    times: list[float]
    lines: dict[str, list[float]]
    missing: str | None = None


def detail(loaded: LoadedRun, result: PointResult, visit: Visit) -> Detail:
    """The detail of a visit; without readable columns everything is empty and ``missing`` says why."""
    path = loaded.requests_file(result, visit)
    if path is None:
        return Detail({}, [], {}, "the visit stored no per-request columns")
    try:
        table = RequestTable.load(path)
    except FileNotFoundError:
        return Detail({}, [], {}, f"{path.name} is missing")
    except ResultsError as error:
        return Detail({}, [], {}, error.message)
    if not len(table):
        return Detail({}, [], {}, "no request was stored")
    return from_table(table)


def from_table(table: RequestTable) -> Detail:
    """Distributions of measured good requests; requests in flight and output rate over the whole load.

    TPOT here is (last − first) ÷ (output − tokens of the first read), as everywhere.
    """
    good = table.phase(Phase.MAIN) & table.ok & (table["first_ns"] > 0)
    first, last, sent = (table[name][good].astype(np.float64) for name in ("first_ns", "last_ns", "sent_ns"))
    later = table["output_tokens"][good] - table["first_tokens"][good]
    known = (later > 0) & (table["first_tokens"][good] > 0) & (last > first)
    series = {
        "ttft": (first - sent) / 1e6,
        "tpot": (last - first)[known] / later[known] / 1e6,
        "e2el": (last - sent) / 1e6,
    }
    histograms = {name: _histogram(values) for name, values in series.items() if len(values)}
    times, lines = _lines(table)
    return Detail(histograms, times, lines)


def _histogram(values: np.ndarray) -> tuple[list[float], list[int]]:
    counts, edges = np.histogram(values, bins=BINS)
    return [round(float(edge), 4) for edge in edges], [int(count) for count in counts]


def _lines(table: RequestTable) -> tuple[list[float], dict[str, list[float]]]:
    sent, end = table["sent_ns"], table["end_ns"]
    begun = sent > 0
    if not begun.any():
        return [], {}
    start, stop = int(sent[begun].min()), int(max(end.max(), sent.max()))
    if stop <= start:
        return [], {}
    edges = np.linspace(start, stop, STEPS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    flying = np.searchsorted(np.sort(sent[begun]), middle, side="right") - np.searchsorted(
        np.sort(end[begun & (end > 0)]), middle, side="right")
    tokens = np.maximum(table.read_tokens, 0)
    rate, _ = np.histogram(table.read_ns, bins=edges, weights=tokens)
    seconds = (edges[1] - edges[0]) / 1e9
    times = [round(float(t - start) / 1e9, 3) for t in middle]
    lines = {"in-flight": [int(x) for x in flying]}
    if len(table.read_ns) and (table.read_tokens > 0).any():
        lines["output-rate"] = [float(f"{float(x) / seconds:.4g}") for x in rate]
    return times, lines
