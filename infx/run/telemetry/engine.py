"""What an engine's counters say of a window: values of the metric table and the facts that validity asks for."""

from __future__ import annotations

from collections.abc import Sequence

from infx.engines.protocol import Counters
from infx.measure.validity import EngineFacts
from infx.run.telemetry.scrape import Delta, Gauge, Samples, delta, gauge, histogram_mean
from infx.schema.metrics import METRICS
from infx.schema.result import Value

Timeline = Sequence[tuple[int, Samples]]
"""(ns on the monotonic clock, samples), in order; the first and the last are the ends of the window."""


def engine_values(timeline: Timeline, counters: Counters, concurrency: int) -> dict[str, Value]:
    """Metrics from counters at both ends of the window and gauges within it; null with a reason where it says none."""
    if len(timeline) < 2:
        names = ("prefix-hit-share", "preemptions", "engine-running-mean", "engine-ttft-mean", "engine-itl-mean")
        return {name: _missing(name, "the engine's /metrics could not be read at both ends") for name in names}
    before, after = timeline[0][1], timeline[-1][1]
    made = {**_caches(before, after, counters), **_speculation(timeline, counters),
            **_steps(before, after, counters), **_gauges(timeline, counters, concurrency)}
    for name, histogram in (("engine-ttft-mean", counters.ttft), ("engine-itl-mean", counters.itl),
                            ("engine-tpot-mean", counters.tpot), ("engine-e2el-mean", counters.e2el),
                            ("engine-queue-mean", counters.queue)):
        made[name] = _of(name, histogram_mean(before, after, histogram), 1000.0,
                         delta(before, after, f"{histogram}_count"))
    return made


def engine_facts(timeline: Timeline, counters: Counters, values: dict[str, Value]) -> EngineFacts:
    """The facts that decide whether the window is valid."""
    drafts = delta(timeline[0][1], timeline[-1][1], counters.drafts).value if len(timeline) > 1 else None
    waiting = [found for _, samples in timeline if (found := samples.total(counters.waiting)) is not None]
    running = [found for _, samples in timeline if (found := samples.total(counters.running)) is not None]

    def number(name: str) -> float | None:
        return values[name].value if name in values else None

    return EngineFacts(hit_share=number("prefix-hit-share"), recompute_share=number("preemption-recompute-share"),
                       drafts=drafts, acceptance_length=number("acceptance-length"),
                       running_peak=max(running, default=None), waiting_peak=max(waiting, default=None))


def cache_block(timeline: Timeline) -> int | None:
    """Tokens in a block of the engine's prefix cache, where one of its info metrics says so (label ``block_size``)."""
    for _, samples in timeline[-1:]:
        for _, labels in samples.values:
            said = dict(labels).get("block_size", "")
            if said.isdecimal() and int(said) > 0:
                return int(said)
    return None


def _caches(before: Samples, after: Samples, counters: Counters) -> dict[str, Value]:
    made = {
        "prefix-hit-share": _share("prefix-hit-share", delta(before, after, counters.prefix_hits),
                                   delta(before, after, counters.prefix_queries)),
        "preemptions": _of("preemptions", delta(before, after, counters.preemptions)),
    }
    name = "preemption-recompute-share"
    prompt = delta(before, after, counters.prompt_tokens)
    if counters.recomputed_tokens is not None and after.total(counters.recomputed_tokens) is not None:
        made[name] = _share(name, delta(before, after, counters.recomputed_tokens), prompt)
    elif made["preemptions"].value == 0:
        made[name] = Value(value=0.0, unit=METRICS[name].unit)
    else:
        made[name] = _missing(name, "the engine does not count recomputed tokens")
    return made


def _speculation(timeline: Timeline, counters: Counters) -> dict[str, Value]:
    """From the counters of drafts, else from the gauge: its mean over the window and over the ranks that draft."""
    name = "acceptance-length"
    before, after = timeline[0][1], timeline[-1][1]
    if counters.acceptance is not None and after.total(counters.drafts) is None:
        series = [(ns, found) for ns, samples in timeline if (found := samples.mean(counters.acceptance)) is not None]
        drafting = [(ns, found) for ns, found in series if found > 0]
        seen = gauge(drafting, timeline[0][0], timeline[-1][0])
        return {} if seen is None else {name: Value(value=seen.mean, unit=METRICS[name].unit, n=seen.n)}
    if after.total(counters.drafts) is None:
        return {}
    drafts, accepted = delta(before, after, counters.drafts), delta(before, after, counters.accepted_tokens)
    if not drafts.value or accepted.value is None:
        return {name: _missing(name, drafts.reason or accepted.reason or "no drafts in the window")}
    return {name: Value(value=1 + accepted.value / drafts.value, unit=METRICS[name].unit, n=int(drafts.value))}


def _steps(before: Samples, after: Samples, counters: Counters) -> dict[str, Value]:
    """Decode steps and how many ran the claimed kernels, where the engine counts them (the simulator does)."""
    if counters.steps is None or after.total(counters.steps) is None:
        return {}
    decode = delta(before, after, counters.steps, kind="decode")
    name = "mono-share"
    engaged = [delta(before, after, counters.steps, kind="decode", engaged=word)
               for word in _labels(after, counters.steps, "engaged") if counters.mono in word]
    made = {}
    if not decode.value:
        made[name] = _missing(name, decode.reason or "no pure decode step in the window")
    else:
        share = sum(found.value or 0.0 for found in engaged) / decode.value
        made[name] = Value(value=share, unit=METRICS[name].unit, n=int(decode.value))
    if counters.rows is not None:
        made["rows-per-step-mean"] = _of("rows-per-step-mean", histogram_mean(before, after, counters.rows))
    return made


def _labels(samples: Samples, name: str, label: str) -> list[str]:
    return samples.labels(name, label)


def _gauges(timeline: Timeline, counters: Counters, concurrency: int) -> dict[str, Value]:
    opened, closed = timeline[0][0], timeline[-1][0]
    made = {}
    for name, counter in (("engine-running-mean", counters.running), ("engine-waiting-mean", counters.waiting)):
        found = _gauge(timeline, counter, opened, closed, 0.0)
        made[name] = _missing(name, f"the engine has no {counter}") if found is None else Value(
            value=found.mean, unit=METRICS[name].unit, n=found.n)
    name = "share-of-time-below-concurrency"
    found = _gauge(timeline, counters.running, opened, closed, float(concurrency))
    if found is not None:
        made[name] = Value(value=found.share_below, unit=METRICS[name].unit, n=found.n)
    return made


def _gauge(timeline: Timeline, counter: str, opened: int, closed: int, threshold: float) -> Gauge | None:
    series = [(ns, found) for ns, samples in timeline if (found := samples.total(counter)) is not None]
    return gauge(series, opened, closed, threshold)


def _share(name: str, part: Delta, whole: Delta) -> Value:
    if part.value is None or whole.value is None:
        return _missing(name, part.reason or whole.reason or "unknown")
    if not whole.value:
        return _missing(name, "nothing was counted in the window")
    return Value(value=part.value / whole.value, unit=METRICS[name].unit, n=int(whole.value))


def _of(name: str, found: Delta, factor: float = 1.0, count: Delta | None = None) -> Value:
    if found.value is None:
        return _missing(name, found.reason or "unknown")
    n = int(count.value) if count is not None and count.value is not None else None
    return Value(value=found.value * factor, unit=METRICS[name].unit, n=n)


def _missing(name: str, reason: str) -> Value:
    return Value.missing(METRICS[name].unit, reason)


def timeline_csv(timeline: Timeline, counters: Counters) -> bytes:
    """Gauges over the window as CSV: seconds since it opened, running, waiting, share of the KV cache in use.

    Over several data-parallel ranks requests are summed and the share is the mean; ``running[0]`` and so on are
    those of one rank. Where the engine has no such gauge its cell is empty.
    """
    ranks = sorted({rank for _, samples in timeline for rank in samples.labels(counters.running, counters.rank)})
    ranks = ranks if len(ranks) > 1 else []
    own = [f"{name}[{rank}]" for rank in ranks for name in ("running", "waiting", "kv-share")]
    lines = [",".join(["seconds,running,waiting,kv-share", *own])]
    for ns, samples in timeline:
        found = [samples.total(counters.running), samples.total(counters.waiting), samples.mean(counters.kv_usage)]
        for rank in ranks:
            found += [samples.total(name, **{counters.rank: rank})
                      for name in (counters.running, counters.waiting, counters.kv_usage)]
        cells = ["" if value is None else f"{value:.6g}" for value in found]
        lines.append(",".join([f"{(ns - timeline[0][0]) / 1e9:.3f}", *cells]))
    return ("\n".join(lines) + "\n").encode()
