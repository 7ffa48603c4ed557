"""`infx ab` with real engine processes on the simulator: cut in the middle, resumed, and swept block by block."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.fakes.repository import Repository

TOY = """image: placeholder:toy
model: qwen3.8-27b-mxfp4
precision: fp4
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {kind: fixed-seq-len, isl: 64, osl: 16}
ladder: [{tp: 1, concurrency: [1, 2]}]
stop: {min-requests: 8, window-s: 1, cap-s: 4}
arms:
  eager: {serve: {enforce-eager: true}}
"""
BLOCKS = ["eager-tp1-r1", "base-tp1-r1", "base-tp1-r2", "eager-tp1-r2"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.write("recipes/toy.yaml", TOY)
    return made


def starts(run: Path) -> list[dict]:
    found = [json.loads(path.read_text()) for path in run.glob("starts/*/start.json")]
    return sorted(found, key=lambda start: start["launched-unix"])


def measured(run: Path) -> dict[tuple[str, str], int]:
    """(block, end of the point's key) → results that were finished."""
    block = {start["id"]: start["block"] for start in starts(run)}
    counts: dict[tuple[str, str], int] = {}
    for path in run.glob("points/*/*/*/result.json"):
        data = json.loads(path.read_text())
        if data["status"] != "interrupted":
            place = block[path.parent.name], data["point"].rpartition("/")[2]
            counts[place] = counts.get(place, 0) + 1
    return counts


def statuses(run: Path, point: str) -> list[str]:
    """How the finished visits of a point ended, by start."""
    read = [json.loads(path.read_text()) for path in run.glob("points/*/*/*/result.json")]
    found = [data["status"] for data in read if data["point"].endswith(f"/{point}") and data["status"] != "interrupted"]
    assert len(found) == 4 and set(found) <= {"ok", "client-bound"}
    return found


def waiting_for(condition, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_cut_in_the_middle_and_resumed(repository, number):
    trial = repository.start("ab", "toy", "--arm", "eager", "-r", "simulator", "--repeats", "2")
    waiting_for(lambda: len(list(repository.root.glob("runs/*/points/base/tp1-c1/*/result.json"))) == 1)
    trial.send_signal(number)
    _, stderr = trial.communicate(timeout=280)
    assert trial.returncode == (-9 if number == signal.SIGKILL else 130), stderr
    (run,) = repository.runs()
    cut = measured(run)
    assert cut[BLOCKS[0], "c1"] == cut[BLOCKS[0], "c2"] == cut[BLOCKS[1], "c1"] == 1
    assert (BLOCKS[2], "c1") not in cut
    kept = {path: path.read_bytes() for path in run.glob("points/*/*/*/result.json")
            if json.loads(path.read_text())["status"] != "interrupted"}

    if number == signal.SIGKILL:
        wrong = repository.infx("sweep", "--resume", str(run))
        assert wrong.returncode == 3 and f"infx ab --resume {run}" in wrong.stderr
        other = repository.infx("ab", "--resume", str(run), "-r", "local")
        assert other.returncode == 2 and "made with the runner 'simulator'" in other.stderr
        planned = repository.infx("ab", "--resume", str(run), "--dry-run")
        assert "3 engine starts" in planned.stdout and "order BBA" in planned.stdout

    done = repository.infx("ab", "--resume", str(run), timeout=280)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert measured(run) == {(block, c): 1 for block in BLOCKS for c in ("c1", "c2")}, "nothing twice, nothing missing"
    assert all(path.read_bytes() == data for path, data in kept.items())
    order = [start["block"] for start in starts(run)]
    assert list(dict.fromkeys(order)) == BLOCKS and order.count(BLOCKS[1]) == 2 and len(order) == 5
    if set(statuses(run, "c1")) == {"ok"}:  # a start that a busy machine made client-bound tells no drift
        assert "drift tp1/c1 output-throughput-per-gpu: " in done.stdout and "over ABBA" in done.stdout
    again = repository.infx("ab", "--resume", str(run))
    assert again.returncode == 3 and "lacks nothing" in again.stderr


@pytest.mark.timeout(300)
def test_every_start_of_an_ab_plan_can_be_swept_by_its_block_and_compared(repository):
    trial = repository.start("ab", "toy", "--arm", "eager", "-r", "simulator", "--repeats", "2")
    waiting_for(lambda: list(repository.root.glob("runs/*/plan.json")))
    trial.send_signal(signal.SIGINT)
    trial.communicate(timeout=280)
    (plan,) = repository.root.glob("runs/*/plan.json")
    for block in BLOCKS:
        repository.infx("sweep", "--plan", str(plan), "--block", block, "-r", "simulator", "--out", f"parts/{block}")
    parts = [next(path.parent for path in repository.root.glob(f"parts/{block}/*/run.json")) for block in BLOCKS]
    for block, part in zip(BLOCKS, parts, strict=True):
        assert [start["block"] for start in starts(part)] == [block], "one block of an A/B is one start"
        assert measured(part) == {(block, "c1"): 1, (block, "c2"): 1}
    eager, base = ",".join(map(str, (parts[0], parts[3]))), ",".join(map(str, parts[1:3]))
    done = repository.infx("compare", f"{eager}@eager", base, "--json", "--metric", "tpot-p50")
    (curve,) = json.loads(done.stdout)["curves"]
    assert {(cell["point"], len(cell["first"]), len(cell["second"])) for cell in curve["cells"]} == {
        ("tp1/c1", 2, 2), ("tp1/c2", 2, 2)}
