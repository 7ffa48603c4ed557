"""GuideLLM reports (v1 and v2): one benchmark a rate or concurrency, each its own point.

Its inter-token latency weights per-request averages by tokens and its time per output token includes the first
token; both stay under their own names.
"""

from __future__ import annotations

from typing import Any

from infx.results.formats.imported import Found, Imported, Take, settle
from infx.results.formats.vllm_bench import PER_GPU

NAME = "guidellm"
STATISTICS = {"mean": "mean", "median": "p50", "percentiles.p90": "p90", "percentiles.p99": "p99"}
TAKES = (
    *(Take(f"time_to_first_token_ms.{theirs}", f"ttft-{ours}") for theirs, ours in STATISTICS.items()),
    *(Take(f"request_latency.{theirs}", f"e2el-{ours}", 1000.0) for theirs, ours in STATISTICS.items()),
    *(Take(f"{key}.{theirs}")
      for key in ("inter_token_latency_ms", "time_per_output_token_ms") for theirs in STATISTICS),
    Take("requests_per_second.mean"), Take("output_tokens_per_second.mean"), Take("tokens_per_second.mean"),
    Take("request_concurrency.mean", "streams-mean"),
    Take("prompt_token_count.mean", "input-length-mean"), Take("output_token_count.mean", "output-length-mean"),
)
LACKS = {
    **dict.fromkeys(("output-throughput-per-gpu", "total-throughput-per-gpu", "input-throughput-per-gpu",
                     "output-throughput-whole-wall-per-gpu", "total-throughput-whole-wall-per-gpu"), PER_GPU),
    **dict.fromkeys(("output-throughput", "total-throughput", "output-throughput-whole-wall",
                     "total-throughput-whole-wall", "request-throughput"),
                    "the tool states the mean of a rate over time: see …_per_second.mean in foreign"),
    **dict.fromkeys(("tpot-p50", "tpot-p90", "tpot-common-formula-mean", "tpot-common-formula-p50", "itl-mean",
                     "itl-p50"), "the tool weights per-request averages: see inter_token_latency_ms in foreign"),
}


def recognises(content: Any) -> bool:
    """True for a report with its benchmarks."""
    benchmarks = content.get("benchmarks") if isinstance(content, dict) else None
    return isinstance(benchmarks, list) and all(
        isinstance(b, dict) and str(b.get("type_", "")).startswith("generative") for b in benchmarks
    )


def read(content: dict[str, Any], source: str) -> list[Imported]:
    """One point a benchmark; statistics are those of successful requests."""
    return [_point(benchmark, source) for benchmark in content["benchmarks"]]


def _point(benchmark: dict[str, Any], source: str) -> Imported:
    metrics = benchmark["metrics"]
    figures: dict[str, Any] = {}
    for name, by_outcome in metrics.items():
        good = by_outcome.get("successful") if isinstance(by_outcome, dict) else None
        if isinstance(good, dict):
            figures.update({f"{name}.{key}": value for key, value in good.items()})
            figures.update({f"{name}.percentiles.{k}": v for k, v in (good.get("percentiles") or {}).items()})
    totals = metrics.get("request_totals") or benchmark.get("request_totals") or {}
    config, args = benchmark.get("config") or {}, benchmark.get("args") or {}
    strategy = config.get("strategy") or args.get("strategy") or {}
    backend = config.get("backend") or {}
    backend = backend if isinstance(backend, dict) else {}
    streams = strategy.get("streams") or strategy.get("max_concurrency")
    concurrency = 1 if strategy.get("type_") == "synchronous" else streams
    return settle(Found(
        format=NAME, source=source, figures=figures, takes=TAKES, lacks=LACKS,
        counts={"ok": totals.get("successful"), "failed": totals.get("errored"), "cut": totals.get("incomplete"),
                "sent": None if "total" not in totals else totals["total"] - (totals.get("incomplete") or 0)},
        identity={"model": backend.get("model") or (benchmark.get("worker") or {}).get("backend_model"),
                  "concurrency": concurrency if strategy.get("type_") != "constant" else None},
        facts={"strategy": strategy.get("type_"), "rate": strategy.get("rate"), "duration": benchmark.get("duration")},
    ))
