"""The engine's ``/metrics``: fetched as bytes while the load runs, parsed afterwards.

Generic: it knows the Prometheus text format and no engine's names. Histograms and counters are compared
between two scrapes; a counter that fell was reset in between, and its difference is then unknown.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from infx.errors import EngineError


@dataclass(frozen=True, slots=True)
class Scrape:
    """The raw text of one scrape with the middle of its fetch on the monotonic clock, and the wall clock."""

    ns: int
    unix: float
    text: bytes


Labels = tuple[tuple[str, str], ...]


class Samples:
    """Parsed samples of one scrape: sums over all label sets unless labels are named."""

    def __init__(self, values: Mapping[tuple[str, Labels], float], kinds: Mapping[str, str]) -> None:
        self.values = dict(values)
        self.kinds = dict(kinds)

    def total(self, name: str, **labels: str) -> float | None:
        """Sum of the samples called ``name`` whose labels include ``labels``; None when there is none."""
        wanted = set(labels.items())
        found = [value for (key, own), value in self.values.items() if key == name and wanted <= set(own)]
        return sum(found) if found else None

    def mean(self, name: str) -> float | None:
        """Mean of the samples called ``name``: what a share is over several ranks; None when there is none."""
        found = [value for (key, _), value in self.values.items() if key == name]
        return sum(found) / len(found) if found else None

    def labels(self, name: str, label: str) -> list[str]:
        """Values of ``label`` among the samples called ``name``, sorted."""
        return sorted({dict(own)[label] for key, own in self.values if key == name and label in dict(own)})

    def names(self) -> list[str]:
        return sorted({name for name, _ in self.values})


def fetch(base_url: str, path: str = "/metrics", timeout_s: float = 10.0) -> Scrape:
    """GET ``path``; raises EngineError when the engine does not answer with 200."""
    address = urlsplit(base_url)
    began = perf_counter_ns()
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=timeout_s)
    try:
        connection.request("GET", address.path.rstrip("/") + path)
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise EngineError(f"no metrics: {error}", where=base_url + path) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise EngineError(f"no metrics: HTTP {answer.status}", where=base_url + path)
    return Scrape((began + perf_counter_ns()) // 2, time.time(), text)


def parse(text: bytes | str, names: Iterable[str] | None = None) -> Samples:
    """Parse the text format; with ``names`` only families whose samples are called so (a prefix is enough).

    Raises EngineError for text that is not in the format.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if names is not None:
        text = _only(text, tuple(names))
    values: dict[tuple[str, Labels], float] = {}
    kinds: dict[str, str] = {}
    try:
        for family in text_string_to_metric_families(text):
            kinds[family.name] = family.type
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                values[key] = values.get(key, 0.0) + sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise EngineError(f"not in the Prometheus text format: {error}") from error
    return Samples(values, kinds)


def _only(text: str, names: tuple[str, ...]) -> str:
    kept = []
    for line in text.splitlines():
        word = line.split(" ", 3)[2] if line.startswith(("# TYPE ", "# HELP ")) and line.count(" ") >= 2 else line
        if word.startswith(names) or any(name.startswith(word) for name in names if word is not line):
            kept.append(line)
    return "\n".join(kept) + "\n"


@dataclass(frozen=True, slots=True)
class Delta:
    """A difference between two scrapes, or the reason why there is none."""

    value: float | None
    reason: str | None = None


def delta(before: Samples, after: Samples, name: str, **labels: str) -> Delta:
    """How far the counter ``name`` rose. A series that fell means a reset: unknown, never negative.

    A series that appears only afterwards began at 0.
    """
    wanted = set(labels.items())
    total, seen = 0.0, False
    for (key, own), value in after.values.items():
        if key != name or not wanted <= set(own):
            continue
        seen = True
        earlier = before.values.get((key, own), 0.0)
        if value < earlier:
            return Delta(None, f"{name} fell from {earlier:g} to {value:g}: the engine restarted in between")
        total += value - earlier
    if not seen:
        gone = before.total(name, **labels) is not None
        return Delta(None, f"{name} disappeared between the scrapes" if gone else f"the engine has no {name}")
    return Delta(total)


def histogram_mean(before: Samples, after: Samples, name: str, **labels: str) -> Delta:
    """Mean of what the histogram (or summary) ``name`` observed between the scrapes, in its own unit."""
    amount, count = delta(before, after, f"{name}_sum", **labels), delta(before, after, f"{name}_count", **labels)
    if amount.value is None or count.value is None:
        return Delta(None, amount.reason or count.reason)
    if not count.value:
        return Delta(None, f"{name} observed nothing between the scrapes")
    return Delta(amount.value / count.value)


class Poller:
    """Scrapes in a thread of its own, every ``interval_s``, from ``start`` to ``stop``; failures are counted."""

    def __init__(self, base_url: str, interval_s: float = 1.0, path: str = "/metrics") -> None:
        self._base_url = base_url
        self._interval_s = interval_s
        self._path = path
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="infx-scrape", daemon=True)
        self.scrapes: list[Scrape] = []
        self.failures: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[Scrape]:
        """End the thread and return what it fetched."""
        self._halt.set()
        self._thread.join()
        return self.scrapes

    def _run(self) -> None:
        while not self._halt.is_set():
            try:
                self.scrapes.append(fetch(self._base_url, self._path, timeout_s=max(1.0, self._interval_s)))
            except EngineError as error:
                self.failures.append(str(error))
            self._halt.wait(self._interval_s)


@dataclass(frozen=True, slots=True)
class Gauge:
    """A gauge over a window: time-weighted mean, extremes, and the share of samples below a threshold."""

    mean: float
    low: float
    high: float
    share_below: float
    n: int


def gauge(series: Iterable[tuple[int, float]], open_ns: int, close_ns: int, threshold: float = 0.0) -> Gauge | None:
    """Summarise ``(ns, value)`` samples inside [open_ns, close_ns); each holds until the next. None without any."""
    inside = sorted((ns, value) for ns, value in series if open_ns <= ns < close_ns)
    if not inside:
        return None
    ends = [ns for ns, _ in inside[1:]] + [close_ns]
    begins = [open_ns] + [ns for ns, _ in inside[1:]]
    widths = [end - begin for begin, end in zip(begins, ends, strict=True)]
    values = [value for _, value in inside]
    whole = sum(widths) or 1
    mean = sum(width * value for width, value in zip(widths, values, strict=True)) / whole
    below = sum(width for width, value in zip(widths, values, strict=True) if value < threshold) / whole
    return Gauge(mean, min(values), max(values), below, len(values))
