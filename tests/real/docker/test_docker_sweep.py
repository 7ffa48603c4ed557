"""Sweeps through real containers: the pinned image by digest, every death told apart, nothing left behind.

The image's engine is the simulator, so the profile says that it stands in.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.fakes.repository import ROOT, Repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
IMAGE = f"vllm/vllm-openai-rocm:nightly-rocm100-{COMMIT}"
RECIPE = f"""image: {IMAGE}
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {{kind: fixed-seq-len, isl: 64, osl: 16}}
ladder: [{{tp: 1, concurrency: [1, 2]}}]
overrides: [{{when: {{concurrency: 2}}, env: {{SECOND: "1"}}}}]
stop: {{min-requests: 8, window-s: 0.3, cap-s: 5}}
"""
LONG = RECIPE.replace("window-s: 0.3, cap-s: 5", "window-s: 20, cap-s: 30")


@pytest.fixture
def repository(tmp_path: Path, docker) -> Repository:
    made = Repository(tmp_path)
    made.write("recipes/toy.yaml", RECIPE)
    mounts = sorted({"/usr", sys.base_prefix, str(Path(sys.prefix).resolve()), str(ROOT)})
    listed = "\n".join(f"    - {{source: {mount}, target: {mount}}}" for mount in mounts)
    made.write("runners/boxed.yaml", f"""place: here
launch: docker
serves: any
stands-in: true
exclusive: false
gpus: 2
visible: ROCR_VISIBLE_DEVICES
env:
  INFX_SIM_HARDWARE: "{{hardware}}"
  INFX_SIM_IMAGE: "{{image}}"
  INFX_TEST_PYTHON: {sys.executable}
  PYTHONPATH: {ROOT}
pass-env: [SECRET_TOKEN]
container:
  mounts:
{listed}
limits: {{ready-s: 60, quiet-s: 10, request-s: 60, stop-s: 5}}
""")
    docker.push(IMAGE, "first")
    docker("rmi", "-f", IMAGE, check=False)
    return made


@pytest.fixture(autouse=True)
def nothing_left(docker):
    before = containers(docker)
    yield
    assert containers(docker) == before


def containers(docker) -> list[str]:
    return sorted(docker("ps", "-aq", "--no-trunc").stdout.split())


def ours(docker, state: str = "") -> list[str]:
    words = ["--filter", f"status={state}"] if state else []
    return docker("ps", "-q", "--filter", "label=org.infx.sweep", *words).stdout.split()


def start_of(repository: Repository) -> dict:
    return json.loads(next(iter(repository.root.glob("runs/*/starts/*/start.json"))).read_text())


def statuses(repository: Repository) -> set[str]:
    found = {json.loads(path.read_text())["status"] for path in repository.root.glob("runs/*/points/*/*/*/result.json")}
    return {status.replace("client-bound", "ok") for status in found}


def wait_for(fact, limit_s: float = 60):
    deadline = time.monotonic() + limit_s
    while not (found := fact()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return found


def test_the_pinned_image_runs_by_digest(repository, docker):
    done = repository.infx("sweep", "toy", "--runner", "boxed", SECRET_TOKEN="planted-secret-value")
    assert done.returncode in (0, 1), done.stderr
    assert statuses(repository) == {"ok"}, done.stderr
    start = start_of(repository)
    assert start["digest"] == docker.digest(IMAGE)
    assert f"vllm/vllm-openai-rocm@{start['digest']}" in start["argv"]
    assert start["image-env"]["VLLM_USAGE_SOURCE"] == "production-docker-image"
    assert start["env"]["ROCR_VISIBLE_DEVICES"] == "0" and start["devices"] == ["0"]
    assert start["passed-env"] == ["SECRET_TOKEN"]
    for path in repository.root.rglob("runs/**/*"):
        assert not path.is_file() or b"planted-secret-value" not in path.read_bytes(), path
    owner = os.getuid()
    assert {path.stat().st_uid for path in repository.root.rglob("runs/**/*")} == {owner}


def test_a_moved_tag_is_refused_with_both_digests(repository, docker):
    repository.write("recipes/toy.yaml", LONG)
    sweep = repository.start("sweep", "toy", "--runner", "boxed")
    wait_for(lambda: ours(docker, "running"))
    wait_for(lambda: "digest" in start_of(repository))
    before = docker.digest(IMAGE)
    sweep.send_signal(signal.SIGINT)
    sweep.communicate(timeout=60)
    docker.push(IMAGE, "second")
    docker("pull", IMAGE)
    run = repository.runs()[0]
    done = repository.infx("sweep", "--resume", str(run))
    assert done.returncode == 4, done.stderr
    assert before in done.stderr and docker.digest(IMAGE) in done.stderr


def test_a_missing_tag_and_a_wrong_digest(repository, docker):
    wrong = f"vllm/vllm-openai-rocm@sha256:{'0' * 64}"
    for image in (IMAGE.replace("0123", "4567"), wrong):
        repository.write("recipes/toy.yaml", RECIPE.replace(IMAGE, image))
        done = repository.infx("sweep", "toy", "--runner", "boxed")
        assert done.returncode == 12 and "cannot pull" in done.stderr, done.stderr


def test_missing_mounts_and_devices_are_named_before_anything_runs(repository, docker):
    path = repository.root / "runners/boxed.yaml"
    path.write_text(path.read_text().replace("  mounts:\n", "  devices: [/dev/nothing-here]\n  mounts:\n"
                                             "    - {source: /nowhere/models, target: /models}\n"))
    done = repository.infx("sweep", "toy", "--runner", "boxed")
    assert done.returncode == 4 and "/dev/nothing-here, /nowhere/models" in done.stderr
    assert not Path("/nowhere").exists()


@pytest.mark.parametrize("how", ["kill", "remove"])
def test_an_engine_killed_or_removed_under_us(repository, docker, how):
    repository.write("recipes/toy.yaml", LONG.replace("[1, 2]", "[1]").replace("concurrency: 2}", "concurrency: 1}"))
    sweep = repository.start("sweep", "toy", "--runner", "boxed")
    (container,) = wait_for(lambda: ours(docker, "running"))
    wait_for(lambda: "ready-s" in start_of(repository) and start_of(repository)["ready-s"])
    docker("rm", "-f", container) if how == "remove" else docker("kill", container)
    _, stderr = sweep.communicate(timeout=60)
    assert sweep.returncode == 1 and "Traceback" not in stderr
    assert statuses(repository) == {"failed"}
    death = start_of(repository)["death"]
    assert death["reason"] == "died"
    assert ("signal 9" if how == "kill" else "removed from outside") in death["message"], death


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_container_outlives_its_sweep(repository, docker, number):
    repository.write("recipes/toy.yaml", LONG)
    bystander = docker("run", "-d", "--network", "none", "--entrypoint", "sleep", IMAGE, "600", check=False)
    sweep = repository.start("sweep", "toy", "--runner", "boxed")
    try:
        wait_for(lambda: ours(docker, "running"))
        sweep.send_signal(number)
        sweep.communicate(timeout=60)
        wait_for(lambda: not ours(docker), 30)
        if bystander.returncode == 0:
            assert bystander.stdout.strip() in docker("ps", "-q", "--no-trunc").stdout
    finally:
        if bystander.returncode == 0:
            docker("rm", "-f", bystander.stdout.strip())


def test_two_sweeps_never_share_an_accelerator(repository, docker):
    repository.write("recipes/toy.yaml", LONG.replace("[1, 2]", "[1]").replace("concurrency: 2}", "concurrency: 1}"))
    first, second = (repository.start("sweep", "toy", "--runner", "boxed") for _ in range(2))
    wait_for(lambda: len(ours(docker, "running")) == 2)
    held = {json.loads(path.read_text())["devices"][0] for path in repository.root.glob("runs/*/starts/*/start.json")}
    assert held == {"0", "1"}
    third = repository.infx("sweep", "toy", "--runner", "boxed")
    assert third.returncode == 10 and "0 are free" in third.stderr
    for sweep in (first, second):
        sweep.send_signal(signal.SIGINT)
        sweep.communicate(timeout=60)


def test_no_daemon(repository):
    done = repository.infx("sweep", "toy", "--runner", "boxed", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 4 and "start its daemon" in done.stderr
