"""Nothing lost, nothing left: processes and files are counted before and after each fault of a sweep.

What the fault list also names stands elsewhere: silent engines and stops in test_run_sweep, containers in
tests/real/docker, a killed worker's number in tests/integration/load.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.repository import Repository

TOY = """image: pypi:toy==1.0
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {kind: fixed-seq-len, isl: 64, osl: 16}
ladder: [{tp: 1, concurrency: [1, 2]}]
stop: {min-requests: 12, window-s: 60, cap-s: 90}
"""
PROFILE = """place: here
launch: process
serves: any
stands-in: true
exclusive: false
executable: infx-sim
env: {INFX_SIM_HARDWARE: "{hardware}", INFX_SIM_IMAGE: "{image}"}
limits: {ready-s: 60, quiet-s: 30, request-s: 60, stop-s: 5}
"""


def processes(root: Path) -> list[int]:
    """Every process that works in this repository: sweeps, guards, engines, load workers."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and (folder / "cwd").readlink() == root:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def waiting_for(fact, limit_s: float = 60.0):
    deadline = time.monotonic() + limit_s
    while not (found := fact()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
    return found


@pytest.fixture(autouse=True)
def nothing_left(repository: Repository, request) -> Iterator[None]:
    """No process, no half-written file and no unreadable one is left; the counts are printed (pytest -s)."""
    root = repository.root
    before = len(processes(root))
    yield
    waiting_for(lambda: not processes(root), 30)
    files = [path for path in root.rglob("runs/**/*") if path.is_file()]
    for path in files:
        assert path.suffix != ".tmp", path
        if path.suffix == ".json":
            json.loads(path.read_text())
    print(f"\nFAULT {request.node.name}: processes {before} before, {len(processes(root))} after; "
          f"{len(repository.runs())} runs, {len(files)} whole files, 0 temporary ones")


@pytest.fixture
def sweep(repository: Repository) -> subprocess.Popen[str]:
    """A sweep in the middle of its first window."""
    repository.write("recipes/toy.yaml", TOY)
    repository.write("runners/toy.yaml", PROFILE)
    started = repository.start("sweep", "toy", "--runner", "toy")
    waiting_for(lambda: workers(repository))
    waiting_for(lambda: [start for start in starts(repository) if start.get("ready-s")])
    return started


def named(repository: Repository, word: str) -> list[int]:
    def line(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            return ""

    return [pid for pid in processes(repository.root) if word in line(pid)]


def workers(repository: Repository) -> list[int]:
    return named(repository, "infx.run.load.pool")


def starts(repository: Repository) -> list[dict]:
    return [json.loads(path.read_text()) for path in repository.root.glob("runs/*/starts/*/start.json")]


def results(repository: Repository) -> list[dict]:
    return [json.loads(path.read_text()) for path in repository.root.glob("runs/*/points/*/*/*/result.json")]


def engine_of(repository: Repository) -> int:
    (log,) = repository.root.glob("runs/*/starts/*/engine.log")
    return int(log.read_text().split("APIServer pid=")[1].split(")")[0])


def test_the_engine_is_killed(repository, sweep):
    os.kill(engine_of(repository), signal.SIGKILL)
    _, said = sweep.communicate(timeout=90)
    assert sweep.returncode == 1 and "Traceback" not in said
    assert {result["status"] for result in results(repository)} == {"failed"}
    assert starts(repository)[0]["death"]["cause"] == "killed-from-outside"


def test_a_load_worker_is_killed(repository, sweep):
    os.kill(workers(repository)[0], signal.SIGKILL)
    _, said = sweep.communicate(timeout=90)
    assert sweep.returncode == 6 and "load worker 0 died" in said and "Traceback" not in said
    assert starts(repository)[0]["ended-unix"] is not None
