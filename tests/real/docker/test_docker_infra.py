"""The daemon and registry of tests/infra behave as production ones do in what infx relies on."""

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

IMAGE = "vllm/vllm-openai-rocm:nightly-0123abc"
NAME = IMAGE.split(":")[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def mark(docker, image: str) -> str:
    return docker("run", "--rm", "--network", "none", "--entrypoint", "cat", image, "/engine/mark").stdout.strip()


def test_an_image_is_pulled_by_its_production_name_and_run_by_digest(docker):
    docker.push(IMAGE, "first")
    docker("pull", IMAGE)
    digest = docker.digest(IMAGE)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)
    docker("rmi", "-f", IMAGE)
    assert mark(docker, f"{NAME}@{digest}") == "first"


def test_a_wrong_digest_is_refused(docker):
    docker.push(IMAGE, "first")
    wrong = f"{NAME}@sha256:{'0' * 64}"
    assert "manifest unknown" in docker("pull", f"{docker.registry}/{wrong}", check=False).stderr
    assert docker("pull", wrong, check=False).returncode == 1
    assert docker("run", "--rm", "--pull", "never", wrong, check=False).returncode == 125


def test_a_moved_tag_has_another_digest_and_the_old_one_still_runs(docker):
    docker.push(IMAGE, "before")
    docker("pull", IMAGE)
    before = docker.digest(IMAGE)
    docker.push(IMAGE, "after")
    docker("pull", IMAGE)
    assert docker.digest(IMAGE) != before
    assert mark(docker, IMAGE) == "after"
    assert mark(docker, f"{NAME}@{before}") == "before"


def test_the_image_has_the_entrypoint_and_environment_of_a_production_one(docker):
    docker.push(IMAGE, "first")
    docker("pull", IMAGE)
    shown = docker("image", "inspect", IMAGE, "--format", "{{json .Config.Entrypoint}} {{json .Config.Env}}").stdout
    assert shown.startswith('["vllm","serve"]')
    assert "VLLM_USAGE_SOURCE=production-docker-image" in shown


def test_a_container_dies_by_signal_and_is_found_by_label(docker):
    docker.push(IMAGE, "first")
    name = docker("run", "-d", "--label", "infx.test=1", "--network", "none", "--entrypoint", "cat", "-i", IMAGE)
    container = name.stdout.strip()
    try:
        assert docker("ps", "-q", "--no-trunc", "--filter", "label=infx.test").stdout.strip() == container
        docker("kill", "--signal", "KILL", container)
        docker("wait", container)
        state = docker("inspect", container, "--format", "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}")
        assert state.stdout.strip() == "exited 137 false"
    finally:
        docker("rm", "-f", container)


def test_the_simulator_is_the_engine_inside(docker):
    """The very argv of the headline recipe, in a container that has nothing of its own but the entry point."""
    root, prefix = Path(__file__).parents[3], Path(sys.base_prefix)
    key = "dsv41flash-fp4-mi355x-vllm-agentic-dspark"
    planned = subprocess.run(
        [sys.executable, "-m", "infx.cli", "plan", key, "--only", "tp2/c1", "--json"],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    [server] = json.loads(planned.stdout)[0]["servers"].values()
    docker.push(IMAGE, "first")
    docker("pull", IMAGE)
    port = free_port()
    mounts = {"/usr", str(prefix), str(Path(sys.prefix).resolve()), str(root)}
    words = ["run", "--detach", "--network", "host", "--env", f"INFX_TEST_PYTHON={sys.executable}"]
    words += [word for mount in sorted(mounts) for word in ("--volume", f"{mount}:{mount}:ro")]
    settings = {**server["env"], "INFX_SIM_HARDWARE": "mi355x", "INFX_SIM_IMAGE": server["image"]}
    words += [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
    argv = [*server["argv"][1:], "--host", "127.0.0.1", "--port", str(port)]
    container = docker(*words, "--workdir", str(root), IMAGE, *argv).stdout.strip()
    try:
        version = poll(docker, container, f"http://127.0.0.1:{port}/version")
        assert "sim" in version
        docker("stop", "--time", "20", container)
        assert docker("inspect", container, "--format", "{{.State.ExitCode}}").stdout.strip() == "0"
    finally:
        docker("rm", "-f", container)


def poll(docker, container: str, url: str) -> str:
    """The body of ``url`` as soon as it answers; fails with the log when the container has ended or never does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=5) as reply:
                return reply.read().decode()
        except OSError:
            if docker("inspect", container, "--format", "{{.State.Running}}").stdout.strip() != "true":
                break
            time.sleep(0.1)
    done = docker("logs", container)
    pytest.fail(f"no answer at {url}:\n{done.stdout}{done.stderr}")


def test_stopping_leaves_neither_process_nor_mount(docker, request, monkeypatch):
    script = Path(__file__).parents[2] / "infra" / "docker.sh"
    base = tempfile.mkdtemp(prefix="infx-docker-", dir="/tmp")
    request.addfinalizer(lambda: shutil.rmtree(base))
    request.addfinalizer(lambda: call("stop"))
    monkeypatch.setenv("REGISTRY_PORT", str(free_port()))

    def call(*words: str) -> str:
        return subprocess.run([script, base, *words], check=True, text=True, stdout=subprocess.PIPE, timeout=90).stdout

    assert call("start") == call("env") == call("start")
    assert call("status") == "up   registry\nup   docker\n"
    call("stop")
    assert call("status") == "down registry\ndown docker\n"
    call("stop")
    assert base not in Path("/proc/self/mountinfo").read_text()
