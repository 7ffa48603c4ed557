"""Small synthetic run folders: plans, visits and starts with figures from a formula, written by the real store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from infx.measure.columns import COLUMNS, PHASES
from infx.measure.table import RequestTable
from infx.results.store import RunStore
from infx.schema.metrics import METRICS
from infx.schema.plan import Block, FixedWorkload, Plan, Point
from infx.schema.recipe import Dataset, Stop
from infx.schema.result import Observed, Reason, Run, Start, Status, Value, Visit, Window
from infx.schema.settings import Parallel, ServerConfig
from infx.workload.session import Phase

BORN = 1_796_115_600.0
"""2026-12-01T09:00:00Z, when every synthetic run is made."""

RECIPE = "demo-fp4-mi355x-vllm"


def plan(recipe: str = RECIPE, tps=(2, 4), concurrencies=(1, 8, 64), arms=(None,), quick: bool = False) -> Plan:
    """A plan of one server a layout and arm, one block a server."""
    servers, points, blocks = {}, [], []
    for arm in arms:
        for tp in tps:
            parallel = Parallel(tp=tp, gpus=tp)
            name = f"s-{arm or 'base'}-tp{tp}"
            servers[name] = ServerConfig(
                id=name, engine="vllm", image="example/engine@sha256:0", model="demo", model_path="demo",
                served_name="demo", parallel=parallel, argv=["serve", "demo"], env={},
            )
            head = f"{recipe}@{arm}" if arm else recipe
            mine = [
                Point(
                    key=f"{head}/{parallel.axes()}/c{c}", arm=arm, server=name, parallel=parallel, concurrency=c,
                    workload=FixedWorkload(kind="fixed-seq-len", isl=1024, osl=128, dataset=Dataset(kind="random")),
                    stop=Stop(), context_limit=8192, fingerprint=f"f1-{arm or 'base'}-{tp}-{c}",
                )
                for c in concurrencies
            ]
            points += mine
            blocks.append(Block(id=f"b-{name}", server=name, points=[p.key for p in mine]))
    return Plan(
        format_version=1, recipe=recipe, source="tree", label="any", hardware="mi355x", engine="vllm", model="demo",
        precision="fp4", quick=quick, token_ids=(1000, 2000), servers=servers, points=points,
        blocks=blocks,
    )


def run(name: str = "20261201T090000Z-demo-000001", recipe: str = RECIPE, **changes) -> Run:
    """A run; ``changes`` replace fields (stands_in, quick, unofficial, …)."""
    facts = {
        "format_version": 1, "id": name, "recipe": recipe, "runner": "simulator", "created_unix": BORN,
        "harness_version": "0.1.0", "harness_commit": "abc1234", "client_version": "c1", "client_host": "client",
        "command": ["infx", "sweep", recipe],
    }
    return Run(**{**facts, **changes})


def start(id_: str, block: str, server: str, at: float = 0.0, simulated: bool = False, **changes) -> Start:
    """A start that was launched ``at`` seconds after the run was made."""
    facts = {
        "format_version": 1, "id": id_, "block": block, "server": server, "argv": ["engine", "serve", "demo"],
        "env": {}, "image": "example/engine@sha256:0", "digest": "sha256:0", "node": "node-1", "driver": "6.4",
        "devices": ["0", "1"], "version": {"version": "0.32.0"}, "simulated": simulated,
        "launched_unix": BORN + at, "ready_s": 30.0,
        "observed": [Observed(name="max-num-seqs", wanted=64, found=64, verdict="verified", evidence="log line 3")],
    }
    return Start(**{**facts, **changes})


def curve(tp: int, concurrency: int, speed: float = 1.0) -> dict[str, float]:
    """A plausible point: TPOT grows with concurrency, total is nine times output."""
    tpot = (6.0 + 0.35 * concurrency) / (speed * (tp / 2) ** 0.6)
    output = 1000.0 / tpot * concurrency / tp
    ttft = (60.0 + 9.0 * concurrency) / speed
    return {
        "output-throughput-per-gpu": output,
        "input-throughput-per-gpu": 8 * output,
        "total-throughput-per-gpu": 9 * output,
        "output-throughput": output * tp,
        "output-throughput-whole-wall-per-gpu": 0.97 * output,
        "total-throughput-whole-wall-per-gpu": 0.97 * 9 * output,
        "tpot-common-formula-p50": 1.01 * tpot,
        "interactivity-median": 1000.0 / tpot,
        "interactivity-at-p90-tpot": 800.0 / tpot,
        "ttft-p50": ttft,
        "ttft-p90": 2 * ttft,
        "tpot-p50": tpot,
        "e2el-p50": ttft + 127 * tpot,
        "e2el-p90": 2 * ttft + 150 * tpot,
        "output-length-mean": 128.0,
    }


def values(figures: dict[str, float | None], n: int = 120) -> dict[str, Value]:
    """Figures as Values with the table's units, a 2 % interval, and a reason where there is none."""
    made = {}
    for name, figure in figures.items():
        unit = METRICS[name].unit
        made[name] = (
            Value.missing(unit, "not measured here") if figure is None
            else Value(value=figure, unit=unit, n=n, low=figure * 0.98, high=figure * 1.02)
        )
    return made


def visit(figures: dict[str, float | None], status: str = "ok", reason: str | None = None, **changes) -> Visit:
    """One visit with these figures; ``reason`` is its code."""
    facts = {
        "ordinal": 0, "position": 0, "status": Status(status),
        "reasons": [] if reason is None else [Reason(code=reason, message=f"what was found: {reason}")],
        "window": Window(opened_unix=BORN + 60, closed_unix=BORN + 120, seconds=60.0),
        "metrics": values(figures),
        "engine": values({"prefix-hit-share": 0.0}),
        "counts": {"sent": 140, "measured": 120, "ok": 120, "failed": 0, "cut": 0},
    }
    return Visit(**{**facts, **changes})


def requests(tpot_ms: float, ttft_ms: float, count: int = 60, tokens: int = 17, streams: int = 4) -> RequestTable:
    """A closed loop of ``count`` equal requests over ``streams``, one token a read, each measured and good."""
    rows = {name: np.zeros(count, dtype=code) for name, code in COLUMNS.items()}
    life = ttft_ms + (tokens - 1) * tpot_ms
    sent = 1e9 + (np.arange(count) // streams) * life * 1e6 + (np.arange(count) % streams) * 1e3
    rows["sent_ns"] = rows["scheduled_ns"] = sent.astype("q")
    rows["first_ns"] = (sent + ttft_ms * 1e6).astype("q")
    rows["last_ns"] = rows["end_ns"] = (sent + life * 1e6).astype("q")
    rows["output_tokens"][:], rows["output_asked"][:], rows["first_tokens"][:] = tokens, tokens, 1
    rows["phase"][:] = PHASES.index(Phase.MAIN)
    reads = rows["first_ns"][:, None] + (np.arange(tokens) * tpot_ms * 1e6).astype("q")[None, :]
    offsets = np.arange(count + 1, dtype=np.int64) * tokens
    return RequestTable(rows, offsets, reads.reshape(-1), np.ones(count * tokens, dtype="i"))


def write(
    parent: Path, name: str = "20261201T090000Z-demo-000001", *, failed=(), skipped=(), speed: float = 1.0,
    simulated: bool = True, columns: bool = False, run_changes: dict | None = None, **plan_changes,
) -> Path:
    """A whole run folder below ``parent``; ``failed`` and ``skipped`` hold ends of point keys."""
    made = plan(**plan_changes)
    changes = {"stands_in": simulated, "quick": made.quick, "recipe": made.recipe, **(run_changes or {})}
    with RunStore.create(parent, run(name, **changes), made) as store:
        for number, block in enumerate(made.blocks):
            id_ = f"{number + 1:03d}"
            store.start_folder(id_)
            store.write_start(start(id_, block.id, block.server, at=60.0 * number, simulated=simulated))
            for key in block.points:
                point = made.point(key)
                if key.endswith(tuple(skipped) or ("\0",)):
                    continue
                figures = curve(point.parallel.tp, point.concurrency, speed * (0.94 if point.arm else 1.0))
                if key.endswith(tuple(failed) or ("\0",)):
                    bad = visit({}, "failed", "engine-died", window=None, counts={"sent": 3, "failed": 3})
                    store.append_visit(point, id_, bad)
                else:
                    table = requests(figures["tpot-p50"], figures["ttft-p50"]).to_bytes() if columns else b"columns"
                    store.append_visit(point, id_, visit(figures), table)
        return store.paths.root
