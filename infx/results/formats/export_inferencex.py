"""Export of a run to InferenceX's fixed-sequence aggregates: one object a good point, in its keys and units.

Its throughput is over the whole wall, its TPOT the common formula, its ITL the time between chunks and its
``…_intvty`` 1 ÷ the statistic of its TPOT. A statistic that a run does not hold is null; its meaningless
``std_intvty`` is always null. Points that are not ok are not exported; ``skipped`` names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infx.results.formats.vllm_bench import QUANTITIES, STATISTICS
from infx.results.load import LoadedRun
from infx.schema.plan import FixedWorkload, Point
from infx.schema.result import Status, Visit


@dataclass(frozen=True)
class Exported:
    """Rows by point key, and the reasons why other points have none."""

    rows: dict[str, dict[str, Any]]
    skipped: dict[str, str]


def export_inferencex(loaded: LoadedRun) -> Exported:
    """The aggregates of a run's chosen results. Simulated, quick and unofficial runs say so in ``hw`` and a field."""
    rows: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    for point in loaded.plan.points:
        result = loaded.chosen(point.key)
        if result is None or result.status is not Status.OK:
            skipped[point.key] = "missing" if result is None else str(result.status)
        elif not isinstance(point.workload, FixedWorkload):
            skipped[point.key] = "the aggregate is of fixed sequence lengths; this point is agentic"
        else:
            rows[point.key] = _row(loaded, point, result.visits[0])
    return Exported(rows, skipped)


def _row(loaded: LoadedRun, point: Point, visit: Visit) -> dict[str, Any]:
    plan, parallel = loaded.plan, point.parallel
    work = point.workload
    assert isinstance(work, FixedWorkload)
    row: dict[str, Any] = {
        "hw": f"simulated-{plan.hardware}" if loaded.simulated else plan.hardware,
        "conc": point.concurrency, "image": plan.servers[point.server].image,
        "model": plan.servers[point.server].model_path, "infmax_model_prefix": plan.model, "framework": plan.engine,
        "precision": plan.precision,
        "spec_decoding": "none" if point.speculative is None else point.speculative.method,
        "disagg": False, "recipe_fingerprint": point.fingerprint, "isl": work.isl, "osl": work.osl,
        "is_multinode": False, "tp": parallel.tp, "pp": parallel.pp, "dcp_size": 1, "pcp_size": 1, "ep": parallel.ep,
        "dp_attention": "true" if parallel.dp > 1 else "false",
        "tput_per_gpu": _figure(visit, "total-throughput-whole-wall-per-gpu"),
        "output_tput_per_gpu": _figure(visit, "output-throughput-whole-wall-per-gpu"),
    }
    total, output = row["tput_per_gpu"], row["output_tput_per_gpu"]
    row["input_tput_per_gpu"] = None if total is None or output is None else total - output
    for key, ours in QUANTITIES.items():
        for theirs, statistic in (*STATISTICS.items(), ("std", None), ("p99.9", None)):
            value = None if statistic is None else _figure(visit, f"{ours}-{statistic}")
            row[f"{theirs}_{key}"] = None if value is None else value / 1000.0
            if key == "tpot":
                row[f"{theirs}_intvty"] = 1000.0 / value if value else None
    if loaded.simulated or loaded.quick or loaded.unofficial:
        row["not_publishable"] = True
    return row


def _figure(visit: Visit, name: str) -> float | None:
    value = visit.metrics.get(name)
    return None if value is None else value.value
