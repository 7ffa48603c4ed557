"""Tokens and requests by the time at which they count, in equal slots of a window: rates with their intervals.

Reads are walked in pieces: twenty million of them fit in memory once, not five times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from infx.measure.stats.order import Interval
from infx.measure.stop import cycle_interval
from infx.measure.table import RequestTable
from infx.measure.window import Span, prompt_lengths
from infx.workload.session import Phase

PIECE = 1 << 20


@dataclass(frozen=True)
class Slots:
    """Amounts in equal slots of ``span``; ``n`` entries; ``unknown`` requests could not be counted."""

    span: Span
    amounts: np.ndarray
    n: int
    unknown: int = 0

    @property
    def rate(self) -> Interval:
        """Amount a second, with the interval of the slots as batches (none without two of them)."""
        value = float(self.amounts.sum() / self.span.seconds)
        if len(self.amounts) < 2:
            return Interval(value, None, None, self.n)
        found = cycle_interval(np.linspace(0.0, self.span.seconds, len(self.amounts) + 1), self.amounts)
        return Interval(value, found.low, found.high, self.n)

    def plus(self, other: Slots) -> Slots:
        """Both amounts together, in the same slots."""
        return Slots(self.span, self.amounts + other.amounts, self.n + other.n, max(self.unknown, other.unknown))


def _slots(times_ns: np.ndarray, amounts: np.ndarray, span: Span, slots: int) -> tuple[np.ndarray, int]:
    inside = span.holds(times_ns)
    place = (times_ns[inside] - span.open_ns) * slots // (span.close_ns - span.open_ns)
    return np.bincount(place, weights=amounts[inside], minlength=slots), int(inside.sum())


def pieces(table: RequestTable) -> Iterator[tuple[slice, np.ndarray]]:
    """Stretches of reads of about a million with the request that each read belongs to."""
    first = 0
    while first < len(table):
        last = int(np.searchsorted(table.offsets, table.offsets[first] + PIECE, side="right")) - 1
        last = min(max(last, first + 1), len(table))
        counts = np.diff(table.offsets[first : last + 1])
        yield slice(int(table.offsets[first]), int(table.offsets[last])), np.repeat(np.arange(first, last), counts)
        first = last


def output_tokens(table: RequestTable, span: Span, slots: int = 1) -> Slots:
    """Generated tokens by receive time, of every request that did not fail.

    A request whose tokens per read are unknown has its total spread evenly over its token-carrying reads.
    ``unknown`` counts requests with reads in ``span`` whose total is unknown too.
    """
    failed, totals, counts = table.failed, table["output_tokens"], np.diff(table.offsets)
    spread = np.divide(totals, counts, out=np.zeros(len(table)), where=counts > 0)
    amounts, n, lost = np.zeros(slots), 0, set()
    for stretch, owner in pieces(table):
        times, tokens = table.read_ns[stretch], table.read_tokens[stretch].astype(float)
        vague = tokens < 0
        tokens[vague] = np.maximum(spread[owner[vague]], 0.0)
        good = ~failed[owner]
        lost.update(np.unique(owner[vague & good & (totals[owner] < 0) & span.holds(times)]).tolist())
        more, count = _slots(times[good], tokens[good], span, slots)
        amounts, n = amounts + more, n + count
    return Slots(span, amounts, n, len(lost))


def input_tokens(table: RequestTable, span: Span, slots: int = 1, *, cached: bool = False) -> Slots:
    """Prompt tokens (``cached``: only those served from the prefix cache) by the time of the first token."""
    kept = ~table.failed & (table["first_ns"] > 0)
    amounts = table["cached_usage"].astype(float) if cached else prompt_lengths(table)
    if cached:
        amounts[amounts < 0] = np.nan
    known = kept & ~np.isnan(amounts)
    unknown = int((kept & np.isnan(amounts) & span.holds(table["first_ns"])).sum())
    return Slots(span, *_slots(table["first_ns"][known], amounts[known], span, slots), unknown)


def requests_ended(table: RequestTable, span: Span, slots: int = 1) -> Slots:
    """Good requests of phase main by the time of their end."""
    good = table.ok & table.phase(Phase.MAIN)
    return Slots(span, *_slots(table["end_ns"][good], np.ones(int(good.sum())), span, slots))
