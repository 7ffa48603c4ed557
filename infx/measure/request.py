"""What one request shows: its latencies and rates, as arrays over a table (NaN where undefined).

Formulas: docs/methodology.md, "Per request". Times in milliseconds, rates in tokens a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from infx.measure.columns import CountSource, Outcome
from infx.measure.flow import pieces
from infx.measure.table import RequestTable

NS_A_MS = 1e6


@dataclass(frozen=True)
class PerRequest:
    """One value a request (n,); ``censored``: cut or timed out, its latencies are only known to be long."""

    ttft_ms: np.ndarray
    e2el_ms: np.ndarray
    tpot_ms: np.ndarray
    tpot_common_ms: np.ndarray
    answer_ms: np.ndarray
    delay_ms: np.ndarray
    e2el_per_token_ms: np.ndarray
    censored: np.ndarray

    def take(self, places: np.ndarray) -> PerRequest:
        """The requests at ``places`` (indices), in their order."""
        return PerRequest(*(getattr(self, field.name)[places] for field in fields(self)))


def per_request(table: RequestTable, *, from_scheduled: bool = False) -> PerRequest:
    """Latencies of every request of ``table``; only good ones have any (a cut one may have a TTFT).

    ``from_scheduled``: count latencies from when the workload wanted the request sent (open loop), so that
    a client or a cap that holds requests back cannot hide it. TPOT = (last − first) ÷ (output tokens − tokens
    of the first token-carrying read) and needs two such reads; the common formula divides by (n − 1).
    """
    start = table["scheduled_ns"] if from_scheduled else table["sent_ns"]
    counts = np.diff(table.offsets)
    output = table["output_tokens"].astype(float)
    known = table.ok & (output > 0)
    span = (table["last_ns"] - table["first_ns"]) / NS_A_MS
    after_first = output - table["first_tokens"]
    e2el = _where(table.ok & (table["last_ns"] > 0), (table["last_ns"] - start) / NS_A_MS)
    return PerRequest(
        ttft_ms=_where((table.ok | table.cut) & (table["first_ns"] > 0), (table["first_ns"] - start) / NS_A_MS),
        e2el_ms=e2el,
        tpot_ms=_ratio(known & (counts >= 2) & (table["first_tokens"] > 0) & (after_first > 0), span, after_first),
        tpot_common_ms=_ratio(known & (output > 1), span, output - 1),
        answer_ms=_where(table.ok & (table["answer_ns"] > 0), (table["answer_ns"] - start) / NS_A_MS),
        delay_ms=_where(table["sent_ns"] > 0, (table["sent_ns"] - table["scheduled_ns"]) / NS_A_MS),
        e2el_per_token_ms=_ratio(known & ~np.isnan(e2el), e2el, output),
        censored=table.cut | (table["outcome"] == Outcome.TIMEOUT),
    )


@dataclass(frozen=True)
class Gaps:
    """Gaps between token-carrying reads of good requests: milliseconds and tokens of the later read (−1 unknown)."""

    gap_ms: np.ndarray
    tokens: np.ndarray
    spread_unknown: int  # good requests whose tokens per read nobody knows


def gaps(table: RequestTable, chosen: np.ndarray | None = None) -> Gaps:
    """Chunk gaps of the good requests (of those in the mask ``chosen``), pooled; ITL = gap ÷ tokens, by tokens."""
    wanted = table.ok if chosen is None else table.ok & chosen
    gap, tokens, n = np.empty(len(table.read_ns), np.float32), np.empty(len(table.read_ns), np.int32), 0
    for stretch, owner in pieces(table):
        later = wanted[owner]
        later[1:] &= owner[1:] == owner[:-1]
        later[:1] = False  # a stretch begins with the first read of a request
        place = np.flatnonzero(later)
        times = table.read_ns[stretch]
        gap[n : n + len(place)] = (times[place] - times[place - 1]) / NS_A_MS
        tokens[n : n + len(place)] = table.read_tokens[stretch][place]
        n += len(place)
    sources = table["count_source"][wanted]
    unknown = np.isin(sources, [CountSource.USAGE_PER_READ, CountSource.USAGE_FINAL_SPREAD], invert=True)
    return Gaps(gap[:n], tokens[:n], int(unknown.sum()))


def weighted_quantile(values: np.ndarray, weights: np.ndarray | None, q: float) -> float:
    """The least value that at least the share ``q`` of the weight does not exceed (None: all weigh the same)."""
    if weights is None or (weights == weights[0]).all():
        rank = min(max(math.ceil(q * len(values) * (1 - 1e-12)) - 1, 0), len(values) - 1)
        return float(np.partition(values, rank)[rank])
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    place = np.searchsorted(cumulated, q * cumulated[-1] * (1 - 1e-12), side="left")
    return float(values[order][min(place, len(values) - 1)])


def _where(condition: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(condition, values, np.nan)


def _ratio(condition: np.ndarray, top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.full(len(top), np.nan), where=condition)
