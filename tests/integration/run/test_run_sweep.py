"""Sweeps through the command line on the simulator and on engines that misbehave."""

from __future__ import annotations

import json
import os
import signal
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
ladder: [{tp: 1, concurrency: [1, 2, 4]}, {tp: 2, concurrency: [2]}]
stop: {min-requests: 12, window-s: 0.3, cap-s: 4}
"""


def results(run: Path) -> dict[str, dict]:
    """By the end of the point's key; an ok result of several starts wins."""
    read = [json.loads(path.read_text()) for path in run.glob("points/*/*/*/result.json")]
    read.sort(key=lambda data: data["status"] == "ok")
    return {data["point"].split("/", 1)[1]: data for data in read}


def statuses(run: Path) -> dict[str, str]:
    """A busy machine may make the client the limit: that is a measured point as well, and said so."""
    return {key: value["status"].replace("client-bound", "ok") for key, value in results(run).items()}


def measured(done) -> bool:
    """Exit code 0, or 1 because of client-bound points alone."""
    words = {line.split()[1] for line in done.stderr.splitlines() if line.startswith("tp")}
    return done.returncode == 0 or (done.returncode == 1 and "client-bound" in words <= {"ok", "client-bound"})


def starts(run: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(run.glob("starts/*/start.json"))]


def test_a_sweep_on_the_simulator(repository):
    repository.write("recipes/toy.yaml", TOY)
    done = repository.infx("sweep", "toy", "--runner", "simulator")
    assert measured(done), done.stderr
    (run,) = repository.runs()
    found = results(run)
    assert statuses(run) == dict.fromkeys(["tp1/c1", "tp1/c2", "tp1/c4", "tp2/c2"], "ok")
    assert [len(found[key]["visits"]) for key in ("tp1/c1", "tp1/c2", "tp2/c2")] == [2, 1, 1]  # revisit of the first
    visit = found["tp1/c4"]["visits"][0]
    assert visit["metrics"]["input-length-mean"]["value"] == 64
    assert visit["metrics"]["output-length-mean"]["value"] == 16
    assert visit["metrics"]["streams-peak"]["value"] == 4
    assert visit["counts"]["measured"] >= 12 and visit["failures"] == {}
    assert visit["engine"]["prefix-hit-share"]["value"] == 0.0
    gpus = found["tp2/c2"]["gpus"], found["tp1/c1"]["gpus"]
    assert gpus == (2, 1)
    per_gpu = found["tp2/c2"]["visits"][0]["metrics"]
    assert per_gpu["output-throughput-per-gpu"]["value"] == pytest.approx(per_gpu["output-throughput"]["value"] / 2)
    assert len(starts(run)) == 2 and all(start["simulated"] for start in starts(run))
    assert "SIMULATED" in done.stdout and "infx show" in done.stdout and (run / "pareto.svg").exists()
    assert [line.split()[0] for line in done.stderr.splitlines() if line.startswith("tp")] == [
        "tp1/c1", "tp1/c2", "tp1/c4", "tp1/c1", "tp2/c2"]


def test_a_plan_file_and_one_block(repository):
    repository.write("recipes/toy.yaml", TOY)
    plan = repository.infx("plan", "toy", "--json").stdout
    repository.write("plan.json", plan)
    assert measured(repository.infx("sweep", "--plan", "plan.json", "--block", "base-tp2", "--runner", "simulator"))
    (run,) = repository.runs()
    assert list(results(run)) == ["tp2/c2"]
    planned = {p["key"]: p["fingerprint"] for p in json.loads(plan)[0]["points"]}
    assert results(run)["tp2/c2"]["fingerprint"] == planned["toy/tp2/c2"]
    bad = repository.infx("sweep", "--plan", "plan.json", "--block", "base-tp9", "--runner", "simulator")
    assert bad.returncode == 2 and "base-tp1, base-tp2" in bad.stderr


@pytest.mark.parametrize(("mode", "code", "part"), [
    ("exit", "engine-exited", "no HIP GPUs are available"),
    ("errors", "engine-answers-errors", "EngineCore encountered an issue"),
    ("never", "engine-never-ready", "no token within the limit"),
    ("deaf", "engine-never-ready", "no token within the limit"),
])
def test_engines_that_never_serve(repository, mode, code, part):
    repository.engine(mode, ready_s=4 if mode in ("never", "deaf") else 60, quiet_s=1)
    done = repository.infx("sweep", "bad", "--runner", "bad")
    assert done.returncode == 1, done.stderr
    (run,) = repository.runs()
    found = results(run)
    assert {key: value["status"] for key, value in found.items()} == {"tp1/c1": "failed", "tp1/c2": "failed"}
    assert found["tp1/c1"]["reasons"][0]["code"] == code
    assert part in done.stderr and "Traceback" not in done.stderr
    assert len(starts(run)) == 2, "the other block went on"
    assert all(start["death"]["reason"] == code.removeprefix("engine-") for start in starts(run))


@pytest.mark.parametrize(("mode", "code"), [("dies", "engine-died"), ("mute", "engine-hung")])
def test_engines_that_fail_in_the_middle(repository, mode, code):
    repository.engine(mode, after=4, quiet_s=1)
    done = repository.infx("sweep", "bad", "--runner", "bad")
    assert done.returncode == 1
    (run,) = repository.runs()
    assert {value["reasons"][0]["code"] for value in results(run).values()} == {code}, results(run)
    if mode == "dies":
        assert "illegal memory access" in done.stderr


def test_a_stubborn_engine_is_ended(repository):
    repository.engine("stubborn")
    assert measured(repository.infx("sweep", "bad", "--runner", "bad", "--only", "tp1/c1"))
    (start,) = starts(repository.runs()[0])
    assert start["exit-code"] == -signal.SIGKILL


def waiting_for(path_of, limit_s: float = 30.0):
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found = path_of()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it never happened")


LONG = TOY.replace("window-s: 0.3, cap-s: 4", "window-s: 3, cap-s: 9").replace(", {tp: 2, concurrency: [2]}", "")


@pytest.mark.timeout(400)  # a crowded machine was seen to take 100 s to reap an engine that had exited
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle_and_resumed(repository, number):
    repository.write("recipes/toy.yaml", LONG)
    sweep = repository.start("sweep", "toy", "--runner", "simulator")
    waiting_for(lambda: list(repository.root.glob("runs/*/points/*/tp1-c1/*/result.json")))
    (log,) = repository.root.glob("runs/*/starts/*/engine.log")
    engine = int(log.read_text().split("APIServer pid=")[1].split(")")[0])
    sweep.send_signal(number)
    _, stderr = sweep.communicate(timeout=150)
    assert sweep.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in stderr
    waiting_for(lambda: not Path(f"/proc/{engine}").exists(), 15)
    (run,) = repository.runs()
    before = {path: path.read_bytes() for path in run.glob("points/*/tp1-c1/*/result.json")}
    done = repository.infx("sweep", "--resume", str(run))
    assert measured(done), done.stderr
    assert statuses(run) == dict.fromkeys(["tp1/c1", "tp1/c2", "tp1/c4"], "ok")
    assert all(path.read_bytes() == data for path, data in before.items()), "what was finished is not measured again"
    assert "tp1/c1" not in done.stderr
    again = repository.infx("sweep", "--resume", str(run))
    assert again.returncode == 3 and "lacks no point" in again.stderr


def test_two_sweeps_at_once(repository):
    repository.engine("stubborn")
    repository.write("recipes/bad.yaml", (repository.root / "recipes/bad.yaml").read_text().replace("0.2", "4"))
    first = repository.start("sweep", "bad", "--runner", "bad")
    waiting_for(lambda: list(repository.root.glob("runs/*/starts/*/start.json")))
    second = repository.infx("sweep", "bad", "--runner", "bad")
    assert second.returncode == 10 and "another sweep holds this machine" in second.stderr
    assert "recipe bad" in second.stderr and len(repository.runs()) == 1
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=150)


def test_disk_full(repository):
    """A small tmpfs: what was finished before it filled is kept, and the engine is gone."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a small tmpfs")
    import subprocess

    small = repository.root / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=220k", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        repository.write("recipes/toy.yaml", TOY)
        done = repository.infx("sweep", "toy", "--runner", "simulator", "--out", str(small))
        assert done.returncode == 9, (done.returncode, done.stderr)
        assert "No space left" in done.stderr and "Traceback" not in done.stderr
        (run,) = small.iterdir()
        assert not list(run.rglob("*.tmp"))
        for path in run.rglob("*.json"):
            json.loads(path.read_text())
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_prompts_of_a_file_go_through_the_chat_template(repository):
    lines = [json.dumps({"prompt": f"say {number} words " + "x " * 40}) for number in range(50)]
    repository.write("recipes/prompts.jsonl", "\n".join(lines))
    dataset = "osl: 16, dataset: {kind: jsonl, path: recipes/prompts.jsonl}}"
    repository.write("recipes/toy.yaml", TOY.replace("osl: 16}", dataset))
    done = repository.infx("sweep", "toy", "--runner", "simulator", "--only", "tp1/c2")
    assert measured(done), done.stderr
    (run,) = repository.runs()
    visit = results(run)["tp1/c2"]["visits"][0]
    assert visit["counts"]["prompts"] == 50 and visit["failures"] == {}
    assert visit["metrics"]["output-length-mean"]["value"] == 16


def test_a_corpus_that_is_not_at_hand_is_for_the_simulator_alone(repository):
    repository.write("runners/here.yaml", "place: here\nlaunch: endpoint\nserves: any\nurl: http://127.0.0.1:9\n")
    key = "dsv41flash-fp4-mi355x-vllm-agentic-dspark"
    done = repository.infx("sweep", key, "--runner", "here", "--only", "tp2/c1")
    assert done.returncode == 4 and "INFX_TRACES" in done.stderr and repository.runs() == []
