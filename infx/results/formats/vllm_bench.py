"""``vllm bench serve`` (and InferenceX's client of the same shape): JSON of one run, plain or detailed.

Its TPOT is the common formula ÷ (n − 1); its ITL is the time between chunks; its throughput is over the whole wall.
"""

from __future__ import annotations

from typing import Any

from infx.results.formats.imported import Found, Imported, Take, disagreement, settle

NAME = "vllm-bench-serve"
STATISTICS = {"mean": "mean", "median": "p50", "p90": "p90", "p99": "p99"}
QUANTITIES = {"ttft": "ttft", "tpot": "tpot-common-formula", "itl": "chunk-gap", "e2el": "e2el"}

TAKES = (
    *(Take(f"{theirs}_{key}_ms", f"{ours}-{statistic}")
      for key, ours in QUANTITIES.items() for theirs, statistic in STATISTICS.items()),
    *(Take(f"{theirs}_{key}_ms") for key in QUANTITIES for theirs in ("std", "p50", "p75", "p95", "p99.9")),
    Take("output_throughput", "output-throughput-whole-wall"),
    Take("total_token_throughput", "total-throughput-whole-wall"),
    Take("request_throughput", "request-throughput"),
    Take("request_goodput:"), Take("request_goodput"), Take("max_output_tokens_per_s"),
    Take("max_concurrent_requests"), Take("duration"), Take("total_input_tokens"), Take("total_output_tokens"),
)
PER_GPU = "the file does not say how many GPUs served it"
WINDOW = "the tool divides by the whole wall, ramp and drain in; see output-throughput-whole-wall"
LACKS = {
    **dict.fromkeys(("output-throughput-per-gpu", "total-throughput-per-gpu", "input-throughput-per-gpu",
                     "output-throughput-whole-wall-per-gpu", "total-throughput-whole-wall-per-gpu"), PER_GPU),
    **dict.fromkeys(("output-throughput", "total-throughput"), WINDOW),
    **dict.fromkeys(("tpot-p50", "tpot-p90"), "the tool divides by output tokens - 1: see tpot-common-formula"),
    **dict.fromkeys(("itl-mean", "itl-p50"), "the tool's ITL is the time between chunks: see chunk-gap"),
    **dict.fromkeys(("interactivity-median", "interactivity-at-p90-tpot", "e2e-interactivity-median"),
                    "the tool states no rate per user"),
}
FACTS = ("date", "backend", "endpoint_type", "tokenizer_id", "request_rate", "burstiness", "num_prompts",
         "benchmark_start_time_unix", "benchmark_end_time_unix")


def recognises(content: Any) -> bool:
    """True for one run of this shape."""
    return isinstance(content, dict) and {"model_id", "completed", "duration", "request_throughput"} <= content.keys()


def read(content: dict[str, Any], source: str) -> list[Imported]:
    """The one point of the file."""
    errors = [error for error in content.get("errors") or () if error]
    failed = content.get("failed")
    if failed is None and errors:
        failed = len(errors)
    facts = {key: content[key] for key in FACTS if key in content}
    facts["detailed"] = "itls" in content
    return [settle(Found(
        format=NAME, source=source, figures=content, takes=TAKES, lacks=LACKS,
        counts={"sent": content.get("num_prompts"), "ok": content.get("completed"), "failed": failed},
        reasons=_consistent(content),
        identity={"model": content.get("model_id"), "engine": content.get("backend"),
                  "concurrency": content.get("max_concurrency")},
        facts=facts,
    ))]


def _consistent(content: dict[str, Any]):
    reasons = ()
    rate, wall, done = content.get("request_throughput"), content.get("duration"), content.get("completed")
    if rate and wall and done:
        reasons += disagreement("completed requests, as stated and as rate × duration", done, rate * wall)
    for lengths, total in (("input_lens", "total_input_tokens"), ("output_lens", "total_output_tokens")):
        complete = content.get("completed") == content.get("num_prompts")
        if content.get(lengths) and content.get(total) and complete:
            reasons += disagreement(f"{total}, as stated and summed", content[total], sum(content[lengths]))
    return reasons
