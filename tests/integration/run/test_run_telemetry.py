"""A vendor's tool beside a sweep: its samples become power and energy; its absence or silence stops nothing."""

from __future__ import annotations

import csv
import json
import os
import time
from pathlib import Path

import pytest

TOY = """image: pypi:toy==1.0
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {kind: fixed-seq-len, isl: 64, osl: 16}
ladder: [{tp: 1, concurrency: [2]}]
stop: {min-requests: 12, window-s: 1.5, cap-s: 4}
"""
RUNNER = """place: here
launch: process
serves: any
stands-in: true
exclusive: false
executable: infx-sim
gpus: 1
gpu-metrics: nvidia-smi
env: {INFX_SIM_HARDWARE: "{hardware}", INFX_SIM_IMAGE: "{image}"}
limits: {ready-s: 60, quiet-s: 30, request-s: 60, stop-s: 5}
"""
STEADY = """#!/usr/bin/env python3
import datetime, os, sys, time
print("timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz], temperature.gpu, "
      "memory.used [MiB], utilization.gpu [%]", flush=True)
while True:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    for gpu, watts in ((0, "640.00 W"), (1, "77.00 W")):
        print(f"{now}, {gpu}, {watts}, 1755 MHz, 3201 MHz, 61, 2048 MiB, 99 %", flush=True)
    time.sleep(0.2)
"""
SILENT = "#!/usr/bin/env python3\nimport signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"
BROKEN = "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n"


def sweep(repository, tool: str | None):
    repository.write("recipes/toy.yaml", TOY)
    repository.write("runners/telemetry.yaml", RUNNER)
    path = os.environ["PATH"]
    if tool is not None:
        repository.write("bin/nvidia-smi", tool).chmod(0o755)
        path = f"{repository.root / 'bin'}{os.pathsep}{path}"
    began = time.time()
    done = repository.infx("sweep", "toy", "--runner", "telemetry", PATH=path)
    assert done.returncode in (0, 1), done.stderr
    (run,) = repository.runs()
    (result,) = run.glob("points/*/*/*/result.json")
    return run, json.loads(result.read_text())["visits"][0], began


def pids_of(program: Path) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if str(program) in words:
                found.append(folder.name)
    return found


def test_power_and_energy_of_the_leased_gpu(repository):
    run, visit, began = sweep(repository, STEADY)
    engine, output = visit["engine"], visit["metrics"]["output-throughput"]["value"]
    assert engine["power-mean"]["value"] == pytest.approx(640.0, abs=0.01)  # of GPU 0 alone
    assert engine["energy-per-output-token"]["value"] == pytest.approx(640.0 / output, rel=0.02)
    assert (engine["gpu-clock-mean"]["value"], engine["gpu-temperature-max"]["value"],
            engine["gpu-memory-max"]["value"]) == (1755.0, 61.0, 2.0)
    (table,) = run.glob("starts/*/power.csv")
    rows = list(csv.DictReader(table.open()))
    assert {row["gpu"] for row in rows} == {"0", "1"}
    assert all(began - 1 < float(row["unix"]) < time.time() + 1 for row in rows)
    (raw,) = run.glob("starts/*/smi.txt")
    assert raw.read_text().startswith("timestamp, index, power.draw [W]")
    assert pids_of(repository.root / "bin/nvidia-smi") == []


@pytest.mark.parametrize(("tool", "reason"), [
    (SILENT, "nvidia-smi printed no sample and said nothing"),
    (BROKEN, "nvidia-smi ended: Failed to initialize NVML: Driver/library version mismatch"),
    (None, "nvidia-smi is not on PATH"),
])
def test_a_tool_that_fails_leaves_the_point_and_says_why(repository, tool, reason):
    run, visit, _ = sweep(repository, tool)
    assert visit["status"] in ("ok", "client-bound")
    assert visit["engine"]["power-mean"] == {"value": None, "unit": "W", "n": None, "low": None, "high": None,
                                             "reason": reason}
    assert len(list(run.glob("starts/*/power.csv"))) == 1
    assert pids_of(repository.root / "bin/nvidia-smi") == []
