"""vLLM #61573's table and the run that it describes, for the calibration and its test."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from infx.simulator.argv import parse
from infx.simulator.deployment import resolve
from infx.simulator.offline import Run, closed_loop, steady

TABLE = tomllib.loads((Path(__file__).parent / "table_61573.toml").read_text())
QWEN = "amd/Qwen3.8-27B-Quark-AWQ-MXFP4"
# QuickReduce is part of that stack ("replay the stock CUDA graph, including FlyDSL QuickReduce"); its codec is not
# stated, and INT4 is assumed.
STACK = {
    "INFX_SIM_HARDWARE": "mi355x",
    "INFX_SIM_IMAGE": "placeholder:vllm-61573-dense-mono",
    "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": "INT4",
}
CAPS = {f"VLLM_ROCM_QWEN38_DENSE_MONO_{kernel}_MAX_ROWS": "8" for kernel in ("K1", "K2")}
WAVES = 10
SHORTEST = 0.8


class Point(NamedTuple):
    """A simulated cell: its run, output tok/s over the whole wall, medians in ms, share of mono decode steps."""

    run: Run
    output_s: float
    itl: float
    tpot: float
    mono_steps: float


def cells(arm: str) -> dict[tuple[int, int], tuple[float, float, float]]:
    """(TP, concurrency) → output tok/s, median ITL, median TPOT of the table."""
    found = {}
    for key, (output, _, itl, tpot) in TABLE[arm].items():
        tp, concurrency = key.split("/")
        found[int(tp), int(concurrency)] = (output, itl, tpot)
    return found


def fitted(arm: str) -> set[tuple[int, int]]:
    """The cells that constants may be fitted on."""
    return {tuple(cell) for cell in TABLE["fit"][arm]}


def figures(point: Point) -> tuple[float, float, float]:
    """In the order of ``cells``."""
    return point.output_s, point.itl, point.tpot


def serve(catalog, constants, arm: str, tp: int, concurrency: int, waves: int = WAVES) -> Point:
    """One cell as its benchmark ran it: 10 × concurrency prompts, lengths uniform in [0.8, 1] of 8192 and 1024, all of
    the wall counted. That throughput × (TTFT + TPOT) falls short by 2 to 8 % of concurrency in every cell of the table
    is what such lengths do (the drain), and equal ones do not; the table states no ratio."""
    env = {**STACK, **({"VLLM_ROCM_MONO_DECODE": "1", **(CAPS if tp == 1 else {})} if arm == "mono" else {})}
    server = resolve(parse(["serve", QWEN, "-tp", str(tp), "--max-model-len", "9472"]), env, catalog, constants)
    draw = random.Random(concurrency)
    lengths = [
        (draw.randint(int(SHORTEST * 8192), 8192), draw.randint(int(SHORTEST * 1024), 1024))
        for _ in range(waves * concurrency)
    ]
    run = closed_loop(server.scheduler(), concurrency, lengths)
    output = float(run.output.sum() / run.last.max())
    tpot = float(np.median((run.last - run.first) / (run.output - 1)))
    order = np.argsort(run.gap, kind="stable")
    reached = np.cumsum(run.gap_count[order])
    itl = float(run.gap[order][np.searchsorted(reached, reached[-1] / 2)])
    return Point(run, output, itl * 1e3, tpot * 1e3, steady(run).mono_steps)
