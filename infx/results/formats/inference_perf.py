"""inference-perf's lifecycle metrics: one summary or stage a file, in seconds, with failures counted apart."""

from __future__ import annotations

from typing import Any

from infx.results.formats.imported import Found, Imported, Take, settle
from infx.results.formats.inferencex import flatten
from infx.results.formats.vllm_bench import LACKS as SHARED
from infx.results.formats.vllm_bench import STATISTICS

NAME = "inference-perf"
QUANTITIES = {
    "time_to_first_token": "ttft", "request_latency": "e2el", "time_per_output_token": "tpot-common-formula",
    "inter_token_latency": "chunk-gap",
}
TAKES = (
    *(Take(f"latency.{key}.{theirs}", f"{ours}-{statistic}", 1000.0)
      for key, ours in QUANTITIES.items() for theirs, statistic in STATISTICS.items()),
    *(Take(f"latency.normalized_time_per_output_token.{theirs}") for theirs in STATISTICS),
    Take("throughput.output_tokens_per_sec", "output-throughput-whole-wall"),
    Take("throughput.total_tokens_per_sec", "total-throughput-whole-wall"),
    Take("throughput.requests_per_sec", "request-throughput"),
    Take("throughput.input_tokens_per_sec"),
    Take("prompt_len.mean", "input-length-mean"), Take("output_len.mean", "output-length-mean"),
    Take("load.requested_rate"), Take("load.achieved_rate"), Take("load.schedule_delay.mean"),
    Take("load.schedule_delay.p99"),
)


def recognises(content: Any) -> bool:
    """True for one lifecycle file."""
    return isinstance(content, dict) and {"load_summary", "successes", "failures"} <= content.keys()


def read(content: dict[str, Any], source: str) -> list[Imported]:
    """The one point; the file names neither model nor concurrency."""
    good, bad, load = content["successes"] or {}, content["failures"] or {}, content["load_summary"] or {}
    figures = dict(flatten({**good, "load": load}))
    return [settle(Found(
        format=NAME, source=source, figures=figures, takes=TAKES, lacks=SHARED,
        counts={"sent": load.get("count"), "ok": good.get("count"), "failed": bad.get("count")},
        facts={"send-duration": load.get("send_duration")},
    ))]
