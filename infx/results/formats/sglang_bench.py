"""``sglang.bench_serving``: JSON lines, one run a line, appended over runs; ``Infinity`` is not strict JSON."""

from __future__ import annotations

from typing import Any

from infx.results.formats.imported import Found, Imported, Take, disagreement, settle
from infx.results.formats.vllm_bench import LACKS as SHARED
from infx.results.formats.vllm_bench import STATISTICS

NAME = "sglang-bench-serving"
TAKES = (
    *(Take(f"{theirs}_{key}_ms", f"{ours}-{statistic}")
      for key, ours in {"ttft": "ttft", "tpot": "tpot-common-formula", "e2e_latency": "e2el"}.items()
      for theirs, statistic in STATISTICS.items()),
    *(Take(f"{theirs}_itl_ms") for theirs in ("mean", "median", "std", "p95", "p99", "max")),
    *(Take(f"std_{key}_ms") for key in ("ttft", "tpot", "e2e_latency")),
    Take("output_throughput", "output-throughput-whole-wall"),
    Take("total_throughput", "total-throughput-whole-wall"),
    Take("request_throughput", "request-throughput"),
    Take("accept_length", "acceptance-length"),
    Take("input_throughput"), Take("concurrency"), Take("duration"), Take("total_input_tokens"),
    Take("total_output_tokens"), Take("total_output_tokens_retokenized"), Take("output_throughput_retokenized"),
)
LACKS = {
    **SHARED,
    **dict.fromkeys(("itl-mean", "itl-p50", "chunk-gap-mean", "chunk-gap-p50", "chunk-gap-p90", "chunk-gap-p99"),
                    "versions of the tool define ITL by chunk or by token, and the file does not say which"),
}
FACTS = ("tag", "backend", "dataset_name", "request_rate", "max_concurrency", "num_prompts", "random_input_len",
         "random_output_len", "random_range_ratio", "sharegpt_output_len")


def recognises(content: Any) -> bool:
    """True for one line of this shape."""
    return isinstance(content, dict) and "completed" in content and (
        "mean_e2e_latency_ms" in content or "total_output_tokens_retokenized" in content
    )


def read(content: dict[str, Any], source: str) -> list[Imported]:
    """The one point of a line."""
    server = content.get("server_info")
    model = content.get("model_id") or (server.get("model_path") if isinstance(server, dict) else None)
    errors = [error for error in content.get("errors") or () if error]
    rate, wall, done = content.get("request_throughput"), content.get("duration"), content.get("completed")
    reasons = disagreement("completed requests, as stated and as rate × duration", done, rate * wall) if (
        rate and wall and done) else ()
    return [settle(Found(
        format=NAME, source=source, figures=content, takes=TAKES, lacks=LACKS,
        counts={"sent": content.get("num_prompts"), "ok": done, "failed": len(errors) if "errors" in content else None},
        reasons=reasons,
        identity={"model": model, "engine": content.get("backend"), "concurrency": content.get("max_concurrency")},
        facts={key: content[key] for key in FACTS if key in content},
    ))]
