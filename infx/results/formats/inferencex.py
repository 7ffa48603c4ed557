"""InferenceX's aggregates: ``agg_*.json`` of a fixed sequence length, and the agentic aggregate without a prefix.

Fixed: seconds; TPOT by the common formula; ``…_intvty`` is 1 ÷ a statistic of TPOT (its std is meaningless), kept
under its own name. Agentic: ``tpot`` is an alias of ``itl``, a per-request average, kept under its own names;
throughput is over the span of successful records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from infx.results.formats.imported import Found, Imported, Take, settle
from infx.results.formats.vllm_bench import QUANTITIES, STATISTICS
from infx.schema.result import Reason

FIXED, AGENTIC = "inferencex-aggregate", "inferencex-agentic"
IDENTITY = {"model": "model", "hardware": "hw", "engine": "framework", "image": "image", "concurrency": "conc"}
FIXED_FACTS = ("infmax_model_prefix", "precision", "spec_decoding", "disagg", "isl", "osl", "is_multinode", "tp", "pp",
               "dcp_size", "pcp_size", "ep", "dp_attention", "recipe_fingerprint", "power_valid")
FIXED_TAKES = (
    *(Take(f"{theirs}_{key}", f"{ours}-{statistic}", 1000.0)
      for key, ours in QUANTITIES.items() for theirs, statistic in STATISTICS.items()),
    Take("tput_per_gpu", "total-throughput-whole-wall-per-gpu"),
    Take("output_tput_per_gpu", "output-throughput-whole-wall-per-gpu"),
    Take("input_tput_per_gpu"),
    Take("joules_per_output_token", "energy-per-output-token"),
    Take("avg_power_w"), Take("avg_total_gpu_power_w"), Take("total_gpu_energy_j"),
    *(Take(f"{statistic}_{key}") for key in QUANTITIES for statistic in ("std", "p99.9")),
    *(Take(f"{statistic}_intvty") for statistic in ("mean", "median", "p90", "p99", "p99.9")),
)
FIXED_LACKS = {
    "energy-per-output-token": "no valid power in the file",
    "interactivity-median": "its intvty is 1 ÷ a statistic of the common formula: see median_intvty in foreign",
    "interactivity-at-p90-tpot": "its intvty is 1 ÷ a statistic of the common formula: see p90_intvty in foreign",
    "output-throughput-per-gpu": "its throughput is over the whole wall: see output-throughput-whole-wall-per-gpu",
    "total-throughput-per-gpu": "its throughput is over the whole wall: see total-throughput-whole-wall-per-gpu",
}
AGENTIC_TAKES = (
    *(Take(f"latency.{key}.{theirs}", f"{key}-{ours}", 1000.0) for key in ("ttft", "e2el")
      for theirs, ours in {"mean": "mean", "p50": "p50", "p90": "p90"}.items()),
    *(Take(f"latency.{key}.{statistic}") for key in ("ttft", "e2el", "itl", "tpot", "intvty", "e2e_norm_intvty",
                                                     "full_response_itl", "full_response_intvty")
      for statistic in ("mean", "p50", "p75", "p90", "p95", "std")),
    Take("throughput.per_gpu.total_tput_tps", "total-throughput-whole-wall-per-gpu"),
    Take("throughput.per_gpu.output_tput_tps", "output-throughput-whole-wall-per-gpu"),
    Take("throughput.total.tokens_per_second", "total-throughput-whole-wall"),
    Take("throughput.output.tokens_per_second", "output-throughput-whole-wall"),
    Take("throughput.input.tokens_per_second"), Take("throughput.duration_seconds"), Take("qps.mean"),
    Take("cache.theoretical_cache_hit_rate", "theoretical-hit-share"),
    Take("server.cache.gpu_cache_hit_rate", "prefix-hit-share"),
    Take("server.kv_cache.gpu_usage_pct"), Take("server.cache.overall_cache_hit_rate"),
)
AGENTIC_LACKS = {
    **FIXED_LACKS,
    **dict.fromkeys(("tpot-p50", "tpot-p90", "itl-mean", "itl-p50", "tpot-common-formula-mean",
                     "tpot-common-formula-p50", "tpot-common-formula-p90", "tpot-common-formula-p99",
                     "interactivity-median", "interactivity-at-p90-tpot"),
                    "its itl and tpot are one per-request average: see latency.itl in foreign"),
    "e2e-interactivity-median": "its e2e_norm_intvty is 1 ÷ a statistic: see latency.e2e_norm_intvty in foreign",
}


def recognises_fixed(content: Any) -> bool:
    """True for one fixed-sequence aggregate."""
    return isinstance(content, dict) and {"hw", "conc", "tput_per_gpu"} <= content.keys()


def recognises_agentic(content: Any) -> bool:
    """True for one agentic aggregate."""
    return isinstance(content, dict) and {"hw", "conc", "request_metrics"} <= content.keys()


def read_fixed(content: dict[str, Any], source: str) -> list[Imported]:
    """The one point; ``power_valid`` 0 means that its power figures are none."""
    figures = {k: v for k, v in content.items() if content.get("power_valid") == 1 or not _is_power(k)}
    return [settle(Found(
        format=FIXED, source=source, figures=figures, takes=FIXED_TAKES, lacks=FIXED_LACKS, counts={},
        identity={**_identity(content), "gpus": _gpus(content)},
        facts={key: content[key] for key in FIXED_FACTS if key in content},
        reasons=_all_zero(content),
    ))]


def read_agentic(content: dict[str, Any], source: str) -> list[Imported]:
    """The one point; its request total counts warm-up, so success is judged by the profiled records."""
    accounting = content.get("request_accounting") or {}
    profiled = accounting.get("records_profiled", content.get("num_requests_successful"))
    failed = accounting.get("records_error_dropped")
    reasons = tuple(
        Reason(code="request-errors", message=f"{count} × {kind}", evidence="request_accounting.error_categories")
        for kind, count in (accounting.get("error_categories") or {}).items()
    )
    server = content.get("server_metrics") or {}
    figures = dict(flatten({**content["request_metrics"], "server": server}))
    sent = None if failed is None or profiled is None else profiled + failed
    return [settle(Found(
        format=AGENTIC, source=source, figures=figures, takes=AGENTIC_TAKES, lacks=AGENTIC_LACKS,
        counts={"sent": sent, "ok": profiled, "failed": failed, "warm-up": accounting.get("records_warmup_dropped")},
        reasons=reasons,
        identity={**_identity(content), "gpus": _gpus(content)},
        facts={key: content[key] for key in (*FIXED_FACTS, "kv_offloading", "kv_offload_backend", "dataset")
               if key in content},
    ))]


def flatten(tree: dict[str, Any], head: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, leaf) of nested mappings."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{head}{key}.")
        else:
            yield f"{head}{key}", value


def _identity(content: dict[str, Any]) -> dict[str, Any]:
    return {ours: content.get(theirs) for ours, theirs in IDENTITY.items()}


def _gpus(content: dict[str, Any]) -> int | None:
    if content.get("is_multinode"):
        parts = [content.get("num_prefill_gpu"), content.get("num_decode_gpu")]
        return sum(parts) if all(isinstance(part, int) for part in parts) else None
    tp = content.get("tp")
    return tp * content.get("pp", 1) * content.get("pcp_size", 1) if isinstance(tp, int) else None


def _is_power(key: str) -> bool:
    return key.startswith(("avg_power", "avg_total_gpu_power", "total_gpu_energy", "joules_"))


def _all_zero(content: dict[str, Any]) -> tuple[Reason, ...]:
    if content.get("tput_per_gpu") == 0:
        return (Reason(code="file-disagrees-with-itself", message="a throughput of 0 in a file that looks finished"),)
    return ()
