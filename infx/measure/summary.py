"""All metrics of one point from its request table and window: ``summarise``.

Names, units and titles: schema/metrics. Every value has its n, an interval where one is defined, and a
reason where there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from infx.measure.flow import Slots, input_tokens, output_tokens, requests_ended
from infx.measure.request import Gaps, PerRequest, gaps, per_request, weighted_quantile
from infx.measure.stats.dependent import batch_means
from infx.measure.stats.order import Interval, dependent_quantile_interval, least_n
from infx.measure.stop import cycles_in
from infx.measure.table import RequestTable
from infx.measure.window import Span, in_flight, measured, prompt_lengths, whole_wall
from infx.schema.metrics import METRICS, PERCENTILES
from infx.schema.result import Value

SUPPRESSED = ("p90", "p99")


@dataclass(frozen=True, slots=True)
class _Point:
    table: RequestTable  # the measured requests, in the order of sending, without their reads
    reads: np.ndarray  # token-carrying reads of each
    each: PerRequest
    gaps: Gaps

    @property
    def cycle_s(self) -> float:
        """Mean end-to-end latency in seconds: the period of a closed loop."""
        known = self.each.e2el_ms[~np.isnan(self.each.e2el_ms)]
        return float(known.mean()) / 1000 if len(known) else math.nan


def summarise(
    table: RequestTable, span: Span, *, gpus: int, concurrency: int, from_scheduled: bool = False
) -> dict[str, Value]:
    """Every client-side metric of ``schema.metrics`` for one window.

    ``table`` holds the requests of all phases; measured ones started in ``span``. ``gpus`` is the divisor of
    per-GPU rates, ``concurrency`` the number of lanes, ``from_scheduled`` makes latencies count from the
    scheduled time (open loop). Raises ValueError for an empty window or a divisor below 1.
    """
    if span.close_ns <= span.open_ns:
        raise ValueError("the window is empty")
    if gpus < 1:
        raise ValueError(f"a point uses at least one GPU, not {gpus}")
    mask = measured(table, span)
    places = np.flatnonzero(mask)
    places = places[np.argsort(table["sent_ns"][places], kind="stable")]
    each = per_request(table, from_scheduled=from_scheduled).take(places)
    point = _Point(table.heads(places), np.diff(table.offsets)[places], each, gaps(table, mask))
    made: dict[str, Value] = {}
    made.update(_throughput(table, span, gpus, point.cycle_s))
    made.update(_latencies(point))
    made.update(_interactivities(point))
    made.update(_counts(table, point, span))
    made.update(_streams(table, span, concurrency))
    return {name: made[name] for name in METRICS if name in made}


def _value(name: str, number: float, n: int, interval: Interval | None = None) -> Value:
    low = high = None
    if interval is not None:
        low, high = interval.low, interval.high
    if not math.isfinite(number):
        return Value.missing(METRICS[name].unit, "not a finite number", n)
    return Value(value=float(number), unit=METRICS[name].unit, n=n, low=low, high=high)


def _missing(name: str, reason: str, n: int | None = None) -> Value:
    return Value.missing(METRICS[name].unit, reason, n)


# -- throughput ----------------------------------------------------------------------------------------------


def _throughput(table: RequestTable, span: Span, gpus: int, cycle_s: float) -> dict[str, Value]:
    slots = max(1, cycles_in(span.seconds, cycle_s))
    output, inputs = output_tokens(table, span, slots), input_tokens(table, span, slots)
    cached = input_tokens(table, span, slots, cached=True)
    streams = {
        "output-throughput": (output, "no token count from the engine"),
        "input-throughput": (inputs, "no prompt token count"),
        "cached-input-throughput": (cached, "the engine reports no cached tokens"),
        "total-throughput": (output.plus(inputs), "no token count from the engine"),
        "request-throughput": (requests_ended(table, span, slots), ""),
    }
    made: dict[str, Value] = {}
    for name, (found, reason) in streams.items():
        made[name] = _rate(name, found, reason)
        per_gpu = f"{name}-per-gpu"
        if per_gpu in METRICS:
            made[per_gpu] = _scaled(per_gpu, made[name], 1 / gpus)
    wall = whole_wall(table, span)
    for key in ("output", "total"):
        name = f"{key}-throughput-whole-wall"
        number = getattr(wall, key) if wall is not None else math.nan
        made[name] = _missing(name, "no good request") if wall is None else _value(name, number, len(table))
        made[f"{name}-per-gpu"] = _scaled(f"{name}-per-gpu", made[name], 1 / gpus)
    return made


def _rate(name: str, slots: Slots, reason: str) -> Value:
    if slots.unknown:
        return _missing(name, f"{reason} for {slots.unknown} requests")
    found = slots.rate
    return _value(name, found.value, found.n, found)


def _scaled(name: str, value: Value, factor: float) -> Value:
    if value.value is None:
        return _missing(name, value.reason or "", value.n)
    low, high = ((end * factor if end is not None else None) for end in (value.low, value.high))
    return Value(value=value.value * factor, unit=METRICS[name].unit, n=value.n, low=low, high=high)


# -- latencies -----------------------------------------------------------------------------------------------


def _latencies(point: _Point) -> dict[str, Value]:
    each = point.each
    made: dict[str, Value] = {}
    for key, values, none in (
        ("ttft", each.ttft_ms, "no measured request has a first token"),
        ("tpot", each.tpot_ms, "no measured request has two token-carrying reads and known token counts"),
        ("tpot-common-formula", each.tpot_common_ms, "no measured request has two counted tokens"),
        ("e2el", each.e2el_ms, "no measured request ended well"),
        ("time-to-first-answer", each.answer_ms, "no measured request has an answer token"),
    ):
        made.update(_series(key, values, each.censored & np.isnan(values), none))
    made.update(_series("schedule-delay", each.delay_ms, np.zeros(len(each.delay_ms), bool), "no request was sent"))
    made.update(_pooled(point.gaps))
    return made


def _series(key: str, values: np.ndarray, hidden: np.ndarray, none: str) -> dict[str, Value]:
    """Mean and percentiles of one value a request; ``hidden`` requests are only known to be long."""
    known = values[~np.isnan(values)]
    lost = int(hidden.sum())
    made: dict[str, Value] = {}
    for statistic in ("mean", *PERCENTILES):
        name = f"{key}-{statistic}"
        if not len(known):
            made[name] = _missing(name, none, 0)
        elif statistic == "mean":
            made[name] = _mean(name, known, lost)
        else:
            made[name] = _percentile(name, known, lost, PERCENTILES[statistic], statistic in SUPPRESSED)
    return made


def _mean(name: str, known: np.ndarray, lost: int) -> Value:
    if lost:
        return _missing(name, f"{lost} requests were cut or timed out: the mean is not known", len(known))
    found = batch_means(known)
    return _value(name, found.value, found.n, found)


def _percentile(name: str, known: np.ndarray, lost: int, q: float, suppress: bool) -> Value:
    n = len(known) + lost
    if suppress and n < least_n(q):
        return _missing(name, f"n = {n} is below {least_n(q)}: the interval of this percentile has no upper end", n)
    if not lost:
        found = dependent_quantile_interval(known, q)
        return _value(name, found.value, n, found)
    if q * (n - 1) > len(known) - 1:
        return _missing(name, f"hides behind {lost} requests that were cut or timed out", n)
    ranked = np.sort(known)
    place = q * (n - 1)
    low, high = ranked[math.floor(place)], ranked[math.ceil(place)]
    return _value(name, float(low + (high - low) * (place % 1)), n)


def _pooled(found: Gaps) -> dict[str, Value]:
    made: dict[str, Value] = {}
    for key in ("chunk-gap", "itl"):
        names = {statistic: f"{key}-{statistic}" for statistic in ("mean", *PERCENTILES)}
        if not len(found.gap_ms):
            made |= {name: _missing(name, "no measured request has two token-carrying reads", 0)
                     for name in names.values()}  # fmt: skip
        elif key == "itl" and found.spread_unknown:
            reason = f"tokens per read unknown for {found.spread_unknown} requests"
            made |= {name: _missing(name, reason) for name in names.values()}
        else:
            made |= _pooled_values(names, found, by_token=key == "itl")
    return made


def _pooled_values(names: dict[str, str], found: Gaps, *, by_token: bool) -> dict[str, Value]:
    total = float(found.gap_ms.sum(dtype=float))
    n = int(found.tokens.sum(dtype=np.int64)) if by_token else len(found.gap_ms)
    values = np.divide(found.gap_ms, found.tokens, dtype=np.float32) if by_token else found.gap_ms
    made = {names["mean"]: _value(names["mean"], total / n, n)}
    for statistic, q in PERCENTILES.items():
        name = names[statistic]
        if statistic in SUPPRESSED and len(values) < least_n(q):
            made[name] = _missing(name, f"{len(values)} gaps are below {least_n(q)}", n)
        else:
            made[name] = _value(name, weighted_quantile(values, found.tokens if by_token else None, q), n)
    return made


def _interactivities(point: _Point) -> dict[str, Value]:
    each = point.each
    tpot = _series("tpot", each.tpot_ms, each.censored, "no measured request has a TPOT")
    slow = _series("e2el", each.e2el_per_token_ms, each.censored, "no measured request ended well")
    made = {
        "interactivity-median": _rate_of("interactivity-median", each.tpot_ms, "p50", each.censored),
        "interactivity-mean": _rate_of("interactivity-mean", each.tpot_ms, "mean", each.censored),
        "interactivity-at-mean-tpot": _inverse("interactivity-at-mean-tpot", tpot["tpot-mean"]),
        "interactivity-at-p90-tpot": _inverse("interactivity-at-p90-tpot", tpot["tpot-p90"]),
        "interactivity-at-p99-tpot": _inverse("interactivity-at-p99-tpot", tpot["tpot-p99"]),
        "e2e-interactivity-at-p90": _inverse("e2e-interactivity-at-p90", slow["e2el-p90"]),
    }
    name = "e2e-interactivity-median"
    made[name] = _rate_of(name, each.e2el_per_token_ms, "p50", each.censored)
    return made


def _rate_of(name: str, per_token_ms: np.ndarray, statistic: str, censored: np.ndarray) -> Value:
    """A statistic of 1 ÷ x per request; a censored request hides at the slow end, which is the low one here."""
    known = per_token_ms[~np.isnan(per_token_ms)]
    known = known[known > 0]
    lost = int((censored & np.isnan(per_token_ms)).sum())
    if not len(known):
        return _missing(name, "no measured request has a rate", 0)
    if statistic == "mean":
        return _mean(name, 1000.0 / known, lost)
    if lost:
        return _inverse(name, _percentile(name, known, lost, 0.5, False))
    found = dependent_quantile_interval(1000.0 / known, 0.5)
    return _value(name, found.value, found.n, found)


def _inverse(name: str, value: Value) -> Value:
    """1 ÷ a time per token: milliseconds → tokens a second, the ends of the interval changed over."""
    if value.value is None:
        return _missing(name, value.reason or "", value.n)
    if value.value <= 0:
        return _missing(name, "time per token is 0", value.n)
    low, high = ((1000.0 / end if end else None) for end in (value.high, value.low))
    return Value(value=1000.0 / value.value, unit=METRICS[name].unit, n=value.n, low=low, high=high)


# -- counts --------------------------------------------------------------------------------------------------


def _counts(table: RequestTable, point: _Point, span: Span) -> dict[str, Value]:
    chosen, n = point.table, len(point.table)
    numbers: dict[str, float] = {
        "requests-measured": n,
        "requests-ok": chosen.ok.sum(),
        "requests-failed": chosen.failed.sum(),
        "requests-cut": chosen.cut.sum(),
        "requests-all": len(table),
        "requests-failed-all": table.failed.sum(),
        "empty-first-events": chosen["empty_first"].sum(),
    }
    made = {name: _value(name, number, n) for name, number in numbers.items()}
    made["window"] = _value("window", span.seconds, n)
    for name, mask in (("failure-share", chosen.failed), ("success-share", chosen.ok)):
        made[name] = _value(name, mask.mean(), n) if n else _missing(name, "no measured request", 0)
    made.update(_lengths(point))
    return made


def _lengths(point: _Point) -> dict[str, Value]:
    ok = point.table.ok
    good = point.table.heads(np.flatnonzero(ok))
    prompts = prompt_lengths(good)
    outputs = good["output_tokens"]
    reads = int(point.reads[ok][outputs >= 0].sum())
    made = {}
    counted = np.where(outputs < 0, np.nan, outputs)
    for name, values in (("input-length-mean", prompts), ("output-length-mean", counted)):
        whole = len(values) and not np.isnan(values).any()
        made[name] = _value(name, values.mean(), len(values)) if whole else _missing(name, "token counts unknown")
    name = "tokens-per-chunk"
    counted = outputs[outputs >= 0].sum()
    made[name] = _value(name, counted / reads, reads) if reads else _missing(name, "no counted read")
    name, total = "theoretical-hit-share", float(np.nansum(prompts))
    made[name] = _value(name, good["cached_theory"].sum() / total, len(good)) if total else _missing(name, "no prompt")
    return made


def _streams(table: RequestTable, span: Span, concurrency: int) -> dict[str, Value]:
    found = in_flight(table, span, concurrency)
    return {
        "streams-mean": _value("streams-mean", found.mean, len(table)),
        "streams-peak": _value("streams-peak", found.peak, len(table)),
    }
