"""What only sessions show: TTFT by how much of the prompt was cached, figures by session, lanes over time.

Definitions: docs/traces.md, "Metrics". Names, units and titles: schema/metrics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infx.measure.request import PerRequest, per_request
from infx.measure.stats.order import dependent_quantile_interval
from infx.measure.table import RequestTable
from infx.measure.window import Span, measured, prompt_lengths
from infx.schema.metrics import METRICS
from infx.schema.result import Value

WARM_SHARE = 0.9
"""From this share of a prompt that an unbounded cache would hold, a request counts as warm."""


def agentic(table: RequestTable, span: Span, cache_block: int | None = None) -> dict[str, Value]:
    """Session-level metrics of one window, in the order of ``schema.metrics``; requests as ``summarise`` takes them.

    ``cache_block``: tokens in a block of the engine's prefix cache. Theory then counts whole blocks of that size
    (the source's must divide it), which makes ``theoretical-hit-share`` comparable with the engine's counters.
    """
    chosen = table.select(measured(table, span))
    chosen = chosen.select_order(np.argsort(chosen["sent_ns"], kind="stable"))
    each = per_request(chosen)
    made = {**_by_hit_class(chosen, each), **_cache(chosen), **_by_session(chosen, each)}
    made["lanes-busy-mean"] = _lanes_busy(table, span)
    if cache_block:
        made["theoretical-hit-share"] = _theory(chosen, cache_block)
    return {name: made[name] for name in METRICS if name in made}


def _by_hit_class(chosen: RequestTable, each: PerRequest) -> dict[str, Value]:
    share = np.nan_to_num(chosen["cached_theory"] / prompt_lengths(chosen))
    classes = {"cold": share == 0, "part": (share > 0) & (share < WARM_SHARE), "warm": share >= WARM_SHARE}
    made = {}
    for name, mask in classes.items():
        hidden = int((mask & each.censored & np.isnan(each.ttft_ms)).sum())
        made[f"ttft-{name}-p50"] = _median(f"ttft-{name}-p50", each.ttft_ms[mask], hidden, f"no {name} request")
    return made


def _cache(chosen: RequestTable) -> dict[str, Value]:
    good = chosen.select(chosen.ok)
    prompts, reported = prompt_lengths(good), good["cached_usage"]
    made = {}
    name = "hit-share-reported"
    told = (reported >= 0) & ~np.isnan(prompts)
    if told.all() and len(good):
        made[name] = _value(name, reported.sum() / prompts.sum(), len(good))
    else:
        why = f"the engine reports no cached tokens for {len(good) - int(told.sum())} of {len(good)} requests"
        made[name] = Value.missing(METRICS[name].unit, why, len(good))
    name = "new-input-length-mean"
    fresh = prompts - good["cached_theory"]
    known = len(fresh) and not np.isnan(fresh).any()
    missing = Value.missing(METRICS[name].unit, "prompt token counts unknown", len(good))
    made[name] = _value(name, fresh.mean(), len(fresh)) if known else missing
    return made


def _theory(chosen: RequestTable, cache_block: int) -> Value:
    good = chosen.select(chosen.ok)
    total = float(np.nansum(prompt_lengths(good)))
    name = "theoretical-hit-share"
    if not total:
        return Value.missing(METRICS[name].unit, "no prompt", 0)
    return _value(name, (good["cached_theory"] // cache_block * cache_block).sum() / total, len(good))


def _by_session(chosen: RequestTable, each: PerRequest) -> dict[str, Value]:
    sessions, owner, turns = np.unique(chosen["session"], return_inverse=True, return_counts=True)
    n = len(sessions)
    made = {"sessions-measured": _value("sessions-measured", n, n)}
    name = "session-turns-mean"
    made[name] = _value(name, turns.mean(), n) if n else Value.missing(METRICS[name].unit, "no measured session", 0)
    decoded = ~np.isnan(each.tpot_ms)
    tokens = np.where(decoded, chosen["output_tokens"] - chosen["first_tokens"], 0)
    time_ms = np.where(decoded, each.tpot_ms * tokens, 0.0)
    produced, spent = np.bincount(owner, tokens, n), np.bincount(owner, time_ms, n)
    rates = 1000.0 * produced[spent > 0] / spent[spent > 0]
    name = "session-interactivity-median"
    made[name] = _median(name, rates, 0, "no measured session has a decode time")
    begun = ~np.isnan(each.ttft_ms)
    waits, count = np.bincount(owner[begun], each.ttft_ms[begun], n), np.bincount(owner[begun], minlength=n)
    name = "session-ttft-median"
    made[name] = _median(name, waits[count > 0] / count[count > 0], 0, "no measured session has a first token")
    return made


def _lanes_busy(table: RequestTable, span: Span) -> Value:
    step = max(1, (span.close_ns - span.open_ns) // 1000)
    found = timeline(table, span, step)
    return _value("lanes-busy-mean", float(found.lanes_busy.mean()), len(table))


@dataclass(frozen=True, slots=True)
class Timeline:
    """Samples at equal steps: seconds after the window's opening, lanes with a request in flight, requests in flight.

    Live lanes are the point's concurrency throughout (a lane never ends); rows in a step are the engine's to tell.
    """

    seconds: np.ndarray
    lanes_busy: np.ndarray
    in_flight: np.ndarray


def timeline(table: RequestTable, span: Span, step_ns: int) -> Timeline:
    """Lanes and requests of every phase in flight at ``open``, ``open + step``, … before ``close``."""
    if step_ns < 1:
        raise ValueError("a timeline needs a step of at least 1 ns")
    at = np.arange(span.open_ns, span.close_ns, step_ns, dtype=np.int64)
    sent = table["sent_ns"] > 0
    begins, ends, lanes = table["sent_ns"][sent], table["end_ns"][sent], table["lane"][sent]
    first, last = np.searchsorted(at, begins), np.searchsorted(at, ends)
    busy = np.zeros(len(at), dtype=np.int64)
    for lane in np.unique(lanes):
        mine = lanes == lane
        busy += _covered(first[mine], last[mine], len(at)) > 0
    return Timeline((at - span.open_ns) / 1e9, busy, _covered(first, last, len(at)))


def _covered(first: np.ndarray, last: np.ndarray, length: int) -> np.ndarray:
    change = np.bincount(first, minlength=length + 1) - np.bincount(last, minlength=length + 1)
    return np.cumsum(change)[:length]


def _median(name: str, values: np.ndarray, hidden: int, none: str) -> Value:
    known = values[~np.isnan(values)]
    if not len(known):
        return Value.missing(METRICS[name].unit, none, 0)
    if hidden:
        return Value.missing(METRICS[name].unit, f"{hidden} requests were cut or timed out before their first token",
                             len(known))
    found = dependent_quantile_interval(known, 0.5)
    return Value(value=float(found.value), unit=METRICS[name].unit, n=len(known), low=found.low, high=found.high)


def _value(name: str, number: float, n: int) -> Value:
    return Value(value=float(number), unit=METRICS[name].unit, n=n)
