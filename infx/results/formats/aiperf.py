"""AIPerf's export folder: the summary JSON, beside the per-request lines and logs that say how the run ended.

Its inter-token latency is a per-request average and stays under its own name; a p90 of its rates per user is their
fast end and is never taken for a slow tail.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from infx.results.formats.imported import Found, Imported, Take, settle
from infx.results.formats.vllm_bench import LACKS as SHARED
from infx.schema.result import Reason, Status

NAME = "aiperf"
SUMMARY, RECORDS = "profile_export_aiperf.json", "profile_export.jsonl"
ALIASES = {"ttft": "time_to_first_token", "ttst": "time_to_second_token"}
STATISTICS = {"avg": "mean", "p50": "p50", "p90": "p90", "p99": "p99"}
TAKES = (
    *(Take(f"{key}.{theirs}", f"{ours}-{statistic}")
      for key, ours in {"time_to_first_token": "ttft", "request_latency": "e2el", "inter_chunk_latency": "chunk-gap",
                        "time_to_first_output_token": "time-to-first-answer"}.items()
      for theirs, statistic in STATISTICS.items()),
    Take("e2e_output_token_throughput.p50", "e2e-interactivity-median"),
    *(Take(f"{key}.{statistic}") for key in ("inter_token_latency", "output_token_throughput_per_user",
                                             "e2e_output_token_throughput", "time_to_second_token")
      for statistic in (*STATISTICS, "p10", "p1")),
    Take("output_token_throughput.avg", "output-throughput-whole-wall"),
    Take("total_token_throughput.avg", "total-throughput-whole-wall"),
    Take("request_throughput.avg", "request-throughput"),
    Take("input_token_throughput.avg"), Take("benchmark_duration.avg"), Take("effective_concurrency.avg"),
    Take("input_sequence_length.avg", "input-length-mean"), Take("output_sequence_length.avg", "output-length-mean"),
    Take("osl_mismatch_count.avg"),
)
LACKS = {
    **SHARED,
    **dict.fromkeys(("tpot-p50", "tpot-p90", "tpot-common-formula-mean", "tpot-common-formula-p50",
                     "tpot-common-formula-p90", "tpot-common-formula-p99", "itl-mean", "itl-p50"),
                    "its inter-token latency is a per-request average: see inter_token_latency in foreign"),
}
EXIT = re.compile(rb"\bexit(?:[ _-]?(?:code|status))?\s*[=:]\s*(\d+)", re.IGNORECASE)


def recognises(content: Any) -> bool:
    """True for the summary, old (``records``) or new."""
    if not isinstance(content, dict) or "input_config" not in content:
        return False
    return "records" in content or "request_latency" in content


def is_folder(path: Path) -> bool:
    """True for an export folder, finished or not."""
    return (path / SUMMARY).is_file() or (path / RECORDS).is_file()


def read_folder(path: Path) -> list[Imported]:
    """The one point of a folder; a folder without the summary is a run that did not finish."""
    if not (path / SUMMARY).is_file():
        lines = sum(1 for line in (path / RECORDS).read_bytes().splitlines() if line.strip())
        message = f"{lines} requests were recorded, but there is no {SUMMARY}: the run did not finish"
        return [settle(Found(
            format=NAME, source=str(path), figures={}, takes=(), lacks={}, counts={}, stopped=Status.FAILED,
            reasons=(Reason(code="no-summary", message=message, evidence=RECORDS), *_ending(path)),
        ))]
    return read(json.loads((path / SUMMARY).read_bytes()), str(path / SUMMARY), _ending(path))


def read(content: dict[str, Any], source: str, ending: tuple[Reason, ...] = ()) -> list[Imported]:
    """The one point of a summary; ``ending`` says what the logs know of how the run ended."""
    figures: dict[str, Any] = {}
    for name, statistics in (content.get("records") or content).items():
        if isinstance(statistics, dict) and "unit" in statistics:
            name = ALIASES.get(name, name)
            figures.update({f"{name}.{key}": value for key, value in statistics.items()})
    config = content["input_config"]
    load, endpoint = config.get("loadgen") or {}, config.get("endpoint") or {}
    ok, failed = _count(figures, "request_count.avg"), _count(figures, "error_request_count.avg")
    kinds = content.get("error_summary") or []
    if failed is None:
        failed = sum(kind.get("count", 0) for kind in kinds)
    reasons = tuple(
        Reason(code="request-errors", message=f"{kind.get('count')} × {(kind.get('error_details') or {}).get('type')}")
        for kind in kinds
    )
    cancelled = bool(content.get("was_cancelled"))
    if cancelled:
        reasons += (Reason(code="cancelled", message="the run was cancelled before its end"),)
    return [settle(Found(
        format=NAME, source=source, figures=figures, takes=TAKES, lacks=LACKS,
        counts={"sent": None if ok is None else ok + failed, "ok": ok, "failed": failed},
        reasons=(*reasons, *ending),
        identity={"model": next(iter(endpoint.get("model_names") or ()), None), "concurrency": load.get("concurrency")},
        facts={key: content[key] for key in ("aiperf_version", "schema_version", "start_time", "end_time")
               if key in content},
        stopped=Status.INTERRUPTED if cancelled else None,
    ))]


def _ending(path: Path) -> tuple[Reason, ...]:
    """What the logs in the folder and above it say about the end: the last exit status, or that none is told."""
    for log in sorted([*path.glob("*.log"), *path.parent.glob("*.log")]):
        found = EXIT.findall(log.read_bytes()[-8192:])
        if found and int(found[-1]):
            status = int(found[-1])
            return (Reason(code="unclean-exit", message=f"the run ended with exit status {status}", evidence=log.name),)
        if found:
            return ()
    return (Reason(code="exit-unknown", message="no log beside the export says how the run ended"),)


def _count(figures: dict[str, Any], key: str) -> int | None:
    value = figures.get(key)
    return int(value) if isinstance(value, int | float) else None
