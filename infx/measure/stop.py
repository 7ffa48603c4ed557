"""When a window has seen enough: few looks, and intervals whose coverage holds with the looking in, until the cap.

A closed loop is periodic: what one slice of a window lacks the next one has, so slices shorter than a request tell
nothing about the error of the whole. The batches of throughput are therefore whole cycles (a cycle is the mean
end-to-end latency). Looks come at 4, 5, 7, 9, 12, … cycles, each at 97 %, which pays for the others:
bench/stop calibrates the shipped rule over 500 seeds, looks in; the interval at the stop covers the long-run value
in at least 93 %. No interval is narrower than ±0.5 %: streams of one
length keep their phases for ever, and what those phases make of the rate cannot be seen within a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from infx.measure.columns import COLUMNS, PHASES, Outcome
from infx.measure.stats.distributions import t_quantile
from infx.measure.stats.order import Interval, dependent_quantile_interval
from infx.workload.session import Phase

FIRST_CYCLES = 4
GROWTH = 1.25
LOOK_CONFIDENCE = 0.97
FLOOR = 0.005
MOST_BATCHES = 40


def cycle_interval(edges: Sequence[float], amounts: Sequence[float], confidence: float = 0.95) -> Interval:
    """Rate of ``amounts`` (one a batch) over batches between ``edges`` (one more), with Student's t over batches.

    All batches are equally long. Fewer than two batches have no interval; none is narrower than ``FLOOR``.
    """
    widths = np.diff(np.asarray(edges, dtype=float))
    rates = np.asarray(amounts, dtype=float) / widths
    value, n = float(np.sum(amounts) / widths.sum()), len(rates)
    if n < 2:
        return Interval(value, None, None, n)
    half = t_quantile(1 - (1 - confidence) / 2, n - 1) * float(rates.std(ddof=1)) / math.sqrt(n)
    half = max(half, FLOOR * abs(value))
    return Interval(value, value - half, value + half, n)


def cycles_in(seconds: float, cycle_s: float) -> int:
    """Whole cycles in a window, at most 40 (then a batch holds several); 0 when the cycle is not known."""
    if not cycle_s > 0 or not math.isfinite(cycle_s):
        return 0
    return min(MOST_BATCHES, int(seconds / cycle_s))


def median_interval(values: np.ndarray, confidence: float = 0.95) -> Interval:
    """Median of ``values`` in order of their sending, never narrower than ``FLOOR``."""
    found = dependent_quantile_interval(values, 0.5, confidence=confidence)
    if found.low is None or found.high is None:
        return found
    room = FLOOR * abs(found.value)
    return Interval(found.value, min(found.low, found.value - room), max(found.high, found.value + room), found.n)


@dataclass
class Ended:
    """Measured requests that ended well so far: what a look needs of them, fed by batches of load workers."""

    sent_ns: np.ndarray
    e2el_s: np.ndarray
    tpot_ms: np.ndarray

    @classmethod
    def none(cls) -> Ended:
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0))

    def add(self, batch: Mapping[str, bytes], open_ns: int) -> None:
        """Take in one batch (measure/columns as bytes); only requests sent from ``open_ns`` on are kept."""
        column = {name: np.frombuffer(batch[name], dtype=COLUMNS[name]) for name in _NEEDED}
        kept = (column["outcome"] == Outcome.OK) & (column["phase"] == PHASES.index(Phase.MAIN))
        kept &= column["sent_ns"] >= open_ns
        sent, after = column["sent_ns"][kept], (column["output_tokens"] - column["first_tokens"])[kept]
        span = (column["last_ns"] - column["first_ns"])[kept] / 1e6
        usable = (column["first_tokens"][kept] > 0) & (after > 0) & (span > 0)
        tpot = np.divide(span, after, out=np.full(len(span), np.nan), where=usable)
        self.sent_ns = np.concatenate([self.sent_ns, sent])
        self.e2el_s = np.concatenate([self.e2el_s, (column["last_ns"][kept] - sent) / 1e9])
        self.tpot_ms = np.concatenate([self.tpot_ms, tpot])

    @property
    def cycle_s(self) -> float:
        return float(self.e2el_s.mean()) if len(self.e2el_s) else math.nan

    def tpots(self) -> np.ndarray:
        """Known TPOTs in the order of sending."""
        ordered = self.tpot_ms[np.argsort(self.sent_ns, kind="stable")]
        return ordered[~np.isnan(ordered)]


_NEEDED = ("outcome", "phase", "sent_ns", "first_ns", "last_ns", "output_tokens", "first_tokens")


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one look: window length, both intervals and whether they meet the target."""

    seconds: float
    cycles: int
    throughput: Interval
    tpot: Interval | None
    enough: bool


class SequentialStop:
    """Looks at a window now and then; ``target`` is the relative half-width of throughput and of median TPOT."""

    def __init__(self, target: float) -> None:
        if not 0 < target < 1:
            raise ValueError(f"a relative half-width between 0 and 1, not {target}")
        self.target = target
        self.looks: list[Look] = []
        self._next_cycles = float(FIRST_CYCLES)

    def due(self, seconds: float, cycle_s: float) -> bool:
        """Whether a window of ``seconds`` has reached the next look."""
        return cycle_s > 0 and seconds >= self._next_cycles * cycle_s

    def look(self, edges_at: Sequence[float], received: Sequence[float], ended: Ended, seconds: float) -> bool:
        """Judge a window; True when it may close.

        ``received`` tokens were received in all by ``edges_at`` seconds after the opening (a rising series that
        covers the window; linear between its points).
        """
        cycles = max(FIRST_CYCLES, cycles_in(seconds, ended.cycle_s))
        edges = np.linspace(0.0, seconds, cycles + 1)
        amounts = np.diff(np.interp(edges, edges_at, received))
        throughput = cycle_interval(edges, amounts, LOOK_CONFIDENCE)
        tpots = ended.tpots()
        tpot = median_interval(tpots, LOOK_CONFIDENCE) if len(tpots) else None
        enough = _within(throughput, self.target) and (tpot is None or _within(tpot, self.target))
        self.looks.append(Look(seconds, cycles, throughput, tpot, enough))
        passed = seconds / ended.cycle_s if ended.cycle_s > 0 else self._next_cycles
        self._next_cycles = max(math.ceil(self._next_cycles * GROWTH), math.floor(passed) + 1)
        return enough


def _within(found: Interval, target: float) -> bool:
    half = found.half_width()
    return half is not None and half <= target
