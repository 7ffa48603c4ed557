"""The one table of metrics: name, unit, statistic, which way is better, title, format and margin.

Definitions are in docs/methodology.md. A metric's name is its key in ``result.json``, in exports, in
comparisons and on axes; nothing else spells one. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One published number of a point.

    ``quantity`` is what was observed and ``statistic`` what was made of it (``rate``, ``mean``, ``p50``,
    ``p90``, ``p99``, ``share``, ``count``, ``sum``). ``margin`` is the default relative equivalence margin
    of a comparison (None: never compared by default). ``format`` is a ``format()`` specification.
    """

    name: str
    unit: str
    quantity: str
    statistic: str
    better: Better
    title: str
    format: str = ".4g"
    margin: float | None = None


PERCENTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}

_TITLES = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}


def _rates() -> list[Metric]:
    words = {"output": "Output", "input": "Input", "cached-input": "Cached input", "total": "Total"}
    made = []
    for key, word in words.items():
        better: Better = "neither" if key == "cached-input" else "higher"
        margin = None if key == "cached-input" else 0.02
        made += [
            Metric(f"{key}-throughput", "tok/s", f"{key} tokens received in the window", "rate", better,
                   f"{word} throughput", ",.1f", margin),
            Metric(f"{key}-throughput-per-gpu", "tok/s/GPU", f"{key} tokens received in the window ÷ GPUs",
                   "rate", better, f"{word} throughput per GPU", ",.1f", margin),
        ]
    for key in ("output", "total"):
        made += [
            Metric(f"{key}-throughput-whole-wall", "tok/s", f"{key} tokens over the whole wall, ramp and drain in",
                   "rate", "higher", f"{words[key]} throughput, whole wall", ",.1f"),
            Metric(f"{key}-throughput-whole-wall-per-gpu", "tok/s/GPU",
                   f"{key} tokens over the whole wall, ramp and drain in ÷ GPUs", "rate", "higher",
                   f"{words[key]} throughput per GPU, whole wall", ",.1f"),
        ]
    made.append(Metric("request-throughput", "req/s", "measured requests ended in the window", "rate", "higher",
                       "Requests", ".3f", 0.02))
    return made


def _latencies() -> list[Metric]:
    made = []
    for key, title, margin in (
        ("ttft", "TTFT", 0.10),
        ("tpot", "TPOT", 0.02),
        ("tpot-common-formula", "TPOT by the common formula", None),
        ("itl", "ITL", 0.02),
        ("chunk-gap", "Chunk gap", None),
        ("e2el", "E2EL", 0.02),
        ("time-to-first-answer", "Time to first answer token", 0.10),
        ("schedule-delay", "Schedule delay", None),
    ):
        for statistic, word in _TITLES.items():
            better: Better = "neither" if key == "schedule-delay" else "lower"
            made.append(Metric(f"{key}-{statistic}", "ms", key, statistic, better, f"{title}, {word}", ".2f",
                               margin if statistic in ("mean", "p50") else margin and 2 * margin))
    return made


def _interactivities() -> list[Metric]:
    unit = "tok/s/user"
    return [
        Metric("interactivity-median", unit, "1 ÷ TPOT per request", "p50", "higher", "Interactivity, median",
               ".1f", 0.02),
        Metric("interactivity-mean", unit, "1 ÷ TPOT per request", "mean", "higher",
               "Interactivity, mean of rates", ".1f"),
        Metric("interactivity-at-mean-tpot", unit, "1 ÷ mean TPOT", "mean", "higher",
               "Interactivity at mean TPOT", ".1f"),
        Metric("interactivity-at-p90-tpot", unit, "1 ÷ p90 of TPOT (slow tail)", "p90", "higher",
               "Interactivity at p90 TPOT", ".1f", 0.04),
        Metric("interactivity-at-p99-tpot", unit, "1 ÷ p99 of TPOT (slow tail)", "p99", "higher",
               "Interactivity at p99 TPOT", ".1f", 0.04),
        Metric("e2e-interactivity-median", unit, "output tokens ÷ E2EL per request", "p50", "higher",
               "End-to-end-normalised interactivity, median", ".1f", 0.02),
        Metric("e2e-interactivity-at-p90", unit, "1 ÷ p90 of (E2EL ÷ output tokens) (slow tail)", "p90", "higher",
               "End-to-end-normalised interactivity at p90", ".1f", 0.04),
    ]


def _counts() -> list[Metric]:
    def count(name: str, title: str, quantity: str, better: Better = "neither") -> Metric:
        return Metric(name, "requests", quantity, "count", better, title, ",.0f")

    return [
        count("requests-measured", "Measured requests", "requests of phase main that started in the window"),
        count("requests-ok", "Successful requests", "measured requests that ended well", "higher"),
        count("requests-failed", "Failed requests", "measured requests that failed", "lower"),
        count("requests-cut", "Cut requests", "measured requests still running at the deadline", "lower"),
        count("requests-all", "All requests", "requests of every phase, ramp and drain in"),
        count("requests-failed-all", "Failed requests, all", "failures of every phase, ramp and drain in", "lower"),
        Metric("failure-share", "", "failed ÷ measured requests", "share", "lower", "Failure share", ".2%"),
        Metric("success-share", "", "successful ÷ measured requests", "share", "higher", "Success share", ".2%"),
        Metric("window", "s", "length of the window", "sum", "neither", "Window", ".1f"),
        Metric("input-length-mean", "tokens", "prompt tokens a request", "mean", "neither", "Mean ISL", ",.1f"),
        Metric("output-length-mean", "tokens", "output tokens a request", "mean", "neither", "Mean OSL", ",.1f"),
        Metric("tokens-per-chunk", "tokens", "output tokens a token-carrying read", "mean", "neither",
               "Tokens per chunk", ".2f"),
        Metric("empty-first-events", "events", "role-only or empty events before the first token", "sum", "neither",
               "Empty first events", ",.0f"),
        Metric("theoretical-hit-share", "", "cached ÷ prompt tokens of an unbounded prefix cache", "share",
               "neither", "Prefix hit rate, theoretical", ".2%"),
    ]


def _load() -> list[Metric]:
    return [
        Metric("streams-mean", "streams", "requests in flight over the window", "mean", "neither",
               "Requests in flight", ".2f"),
        Metric("streams-peak", "streams", "requests in flight over the window", "max", "neither",
               "Requests in flight, peak", ".0f"),
        Metric("lanes-live", "lanes", "live lanes over the window", "mean", "neither", "Live lanes", ".1f"),
        Metric("loop-lag-p99", "ms", "lateness of the client's event loop", "p99", "lower", "Client loop lag, p99",
               ".2f"),
        Metric("client-cpu-share", "", "CPU share of the busiest load worker", "max", "lower", "Client CPU share",
               ".1%"),
        Metric("client-reads-rate", "reads/s", "network reads of all workers", "rate", "neither", "Client reads",
               ",.0f"),
        Metric("client-gc-pause-max", "ms", "garbage-collection pauses of load workers", "max", "lower",
               "Client GC pause, longest", ".2f"),
    ]


def _agentic() -> list[Metric]:
    """Figures of sessions; hit classes are by the share of the prompt that an unbounded prefix cache would hold."""
    return [
        Metric("ttft-cold-p50", "ms", "ttft of prompts of which nothing can be cached", "p50", "lower",
               "TTFT, median, cold", ".2f", 0.10),
        Metric("ttft-part-p50", "ms", "ttft of prompts of which less than 90 % can be cached", "p50", "lower",
               "TTFT, median, part cached", ".2f", 0.10),
        Metric("ttft-warm-p50", "ms", "ttft of prompts of which at least 90 % can be cached", "p50", "lower",
               "TTFT, median, warm", ".2f", 0.10),
        Metric("hit-share-reported", "", "cached ÷ prompt tokens by the usage of each answer", "share", "neither",
               "Prefix hit rate, reported", ".2%"),
        Metric("new-input-length-mean", "tokens", "prompt tokens beyond an unbounded prefix cache", "mean", "neither",
               "Mean new prompt tokens", ",.1f"),
        Metric("sessions-measured", "sessions", "sessions with a measured request", "count", "neither", "Sessions",
               ",.0f"),
        Metric("session-turns-mean", "requests", "measured requests a session", "mean", "neither",
               "Turns a session, measured", ".1f"),
        Metric("session-interactivity-median", "tok/s/user", "tokens after the first ÷ decode time of a session",
               "p50", "higher", "Interactivity of a session, median", ".1f", 0.02),
        Metric("session-ttft-median", "ms", "mean TTFT of a session", "p50", "lower", "TTFT of a session, median",
               ".2f", 0.10),
        Metric("lanes-busy-mean", "lanes", "lanes with a request in flight over the window", "mean", "neither",
               "Busy lanes", ".1f"),
    ]


def _engine() -> list[Metric]:
    """Figures from the engine's own counters at both ends of the window."""
    return [
        Metric("prefix-hit-share", "", "prefix-cache hits ÷ queried prompt tokens", "share", "neither",
               "Prefix hit rate", ".2%"),
        Metric("preemptions", "", "preemptions in the window", "count", "lower", "Preemptions", ",.0f"),
        Metric("preemption-recompute-share", "", "prompt tokens computed again ÷ prompt tokens", "share", "lower",
               "Preemption recompute", ".2%"),
        Metric("acceptance-length", "tokens", "1 + accepted ÷ drafts", "mean", "higher", "Acceptance length", ".3f"),
        Metric("share-of-time-below-concurrency", "", "time with running requests < C ÷ window", "share", "lower",
               "Time with running < C", ".1%"),
        Metric("engine-running-mean", "requests", "running requests in the engine", "mean", "neither",
               "Engine running", ".1f"),
        Metric("engine-waiting-mean", "requests", "waiting requests in the engine", "mean", "lower",
               "Engine waiting", ".1f"),
        Metric("rows-per-step-mean", "rows", "rows in a decode step", "mean", "neither", "Rows in a step", ".1f"),
        Metric("mono-share", "", "steps that ran the mono decode kernels ÷ decode steps", "share", "higher",
               "Mono decode share", ".1%"),
        Metric("engine-ttft-mean", "ms", "the engine's own TTFT histogram", "mean", "lower", "Engine TTFT, mean",
               ".2f"),
        Metric("engine-itl-mean", "ms", "the engine's own inter-token histogram", "mean", "lower",
               "Engine ITL, mean", ".2f"),
        Metric("engine-tpot-mean", "ms", "the engine's own TPOT histogram", "mean", "lower", "Engine TPOT, mean",
               ".2f"),
        Metric("engine-e2el-mean", "ms", "the engine's own request latency histogram", "mean", "lower",
               "Engine E2EL, mean", ".2f"),
        Metric("engine-queue-mean", "ms", "the engine's own queue-time histogram", "mean", "lower",
               "Engine queue time, mean", ".2f"),
        Metric("power-mean", "W", "power of all GPUs of the engine", "mean", "lower", "Power", ",.0f", 0.03),
        Metric("energy-per-output-token", "J/tok", "energy of the window ÷ output tokens", "rate", "lower",
               "Energy per output token", ".3f", 0.03),
        Metric("gpu-clock-mean", "MHz", "core clock of the engine's GPUs", "mean", "neither",
               "GPU clock, mean", ",.0f"),
        Metric("gpu-temperature-max", "°C", "hottest sensor of the engine's GPUs", "max", "lower",
               "GPU temperature, highest", ".0f"),
        Metric("limit-share", "", "output throughput ÷ the most that memory, compute and links allow", "share",
               "higher", "Share of the roofline", ".1%"),
        Metric("prediction-ratio", "", "output throughput ÷ the simulator's prediction", "share", "neither",
               "Measured ÷ predicted", ".1%"),
        Metric("gpu-memory-max", "GiB", "memory in use on all GPUs of the engine, highest", "max", "lower",
               "GPU memory, highest", ".1f"),
    ]


def _costs() -> list[Metric]:
    """Figures of reports only: made from a point's own values, its power and the dated price book."""
    made = []
    for key, title in (("output", "Output"), ("total", "Total")):
        made += [
            Metric(f"usd-per-million-{key}-tokens", "$/M tok", f"price of a GPU-hour ÷ {key} tokens of a GPU-hour",
                   "rate", "lower", f"Cost per million {key} tokens", ".3f"),
            Metric(f"{key}-throughput-per-megawatt", "tok/s/MW", f"{key} throughput ÷ measured GPU power", "rate",
                   "higher", f"{title} throughput per MW of GPU power", ",.0f"),
        ]
    return made


METRICS: dict[str, Metric] = {
    metric.name: metric
    for group in (_rates(), _latencies(), _interactivities(), _counts(), _agentic(), _load(), _engine(), _costs())
    for metric in group
}
"""Every metric by its name, in the order in which tables list them."""


def metric(name: str) -> Metric:
    """The metric called ``name``; raises KeyError for a name that the table does not hold."""
    return METRICS[name]
