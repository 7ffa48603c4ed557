"""infx sweeps a real vLLM: figures against the engine's own clock, and proof of what ran."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from tests.fakes.repository import ROOT, Repository

KEY = "tiny-bf16-cpu-vllm-256-64"
pytestmark = [pytest.mark.timeout(400), pytest.mark.leaves("vllm_dist_*", "torchinductor_*", "*-*-*-*-*")]


@pytest.fixture
def repository(tmp_path: Path, cpu_engine) -> Repository:
    made = Repository(tmp_path)
    (tmp_path / ".engines").symlink_to(ROOT / ".engines")
    profile = tmp_path / "runners/local.yaml"
    profile.write_text(profile.read_text().replace(".venv-engine-cpu/bin/vllm", str(cpu_engine.vllm)))
    return made


def results(run: Path) -> dict[str, dict]:
    return {data["point"].split("/", 1)[1]: data
            for data in (json.loads(path.read_text()) for path in run.glob("points/*/*/*/result.json"))}


def start_of(run: Path) -> dict:
    return json.loads(next(iter(run.glob("starts/*/start.json"))).read_text())


def test_a_sweep_of_the_real_engine(repository):
    done = repository.infx("sweep", KEY, "--runner", "local", timeout=280)
    (run,) = repository.runs()
    found = results(run)
    assert {value["status"] for value in found.values()} <= {"ok", "client-bound"}, done.stderr
    assert done.returncode == (0 if all(value["status"] == "ok" for value in found.values()) else 1)
    assert sorted(found) == ["tp1/c1", "tp1/c16", "tp1/c2", "tp1/c4", "tp1/c8"]
    assert len(found["tp1/c1"]["visits"]) == 2
    for value in found.values():
        visit = value["visits"][0]
        metrics, engine = visit["metrics"], visit["engine"]
        assert visit["failures"] == {} and visit["counts"]["measured"] >= 64
        assert metrics["input-length-mean"]["value"] == 256 and metrics["output-length-mean"]["value"] == 64
        assert engine["prefix-hit-share"]["value"] == 0
        assert metrics["streams-peak"]["value"] == value["concurrency"]
        # The engine's means are over what ended in the window, the client's over what began in it: on a machine
        # whose speed drifts the two differ, so this only catches figures of another order.
        for name in ("ttft-mean", "itl-mean", "e2el-mean"):
            assert 0.5 < metrics[name]["value"] / engine[f"engine-{name}"]["value"] < 20, (name, metrics[name])
    start = start_of(run)
    assert not start["simulated"] and start["version"]["version"].startswith("0.32.0")
    verdicts = {item["name"]: item["verdict"] for item in start["observed"]}
    assert "mismatch" not in verdicts.values()
    for name in ("max-num-seqs", "max-num-batched-tokens", "max-model-len", "tensor-parallel-size", "model",
                 "enforce-eager", "version", "env VLLM_CPU_KVCACHE_SPACE"):
        assert verdicts[name] == "verified", (name, verdicts)
    assert repository.infx("changelog", "append", str(run)).returncode in (0, 8)


WRAPPER = """#!{python}
# Changes silently what the recipe asked for, and then is the engine.
import os, sys
words = sys.argv[1:]
changes = {{"--max-num-batched-tokens": "256", "--max-num-seqs": "8", "--max-model-len": "1024"}}
for flag, value in changes.items():
    words[words.index(flag) + 1] = value
os.environ.pop("VLLM_NO_USAGE_STATS", None)
os.execv({vllm!r}, [{vllm!r}, *words])
"""


def test_an_engine_that_runs_something_else_is_caught(repository, cpu_engine):
    """P27: labels differ from what ran."""
    wrapper = repository.write("wrapper", WRAPPER.format(python=sys.executable, vllm=str(cpu_engine.vllm)))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    profile = repository.root / "runners/local.yaml"
    profile.write_text(profile.read_text().replace(str(cpu_engine.vllm), str(wrapper)))
    done = repository.infx("sweep", KEY, "--runner", "local", timeout=280)
    assert done.returncode == 1
    (run,) = repository.runs()
    assert {value["status"] for value in results(run).values()} == {"invalid"}
    found = {item["name"]: (item["wanted"], item["found"]) for item in start_of(run)["observed"]
             if item["verdict"] == "mismatch"}
    assert found == {"max-num-batched-tokens": (512, 256), "max-num-seqs": (16, 8), "max-model-len": (2048, 1024),
                     "env VLLM_NO_USAGE_STATS": ("1", None)}
    assert "asked 512, found 256" in done.stderr
