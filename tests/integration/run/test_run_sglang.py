"""A recipe for SGLang from its file to a stored run, against a server with SGLang's argv, log and metric names."""

from __future__ import annotations

import json

import pytest

from tests.fakes.repository import ROOT, Repository

FAKE = ROOT / "tests/fakes/sglang_engine.py"
RECIPE = """image: pypi:sglang==0.5.9
model: tiny-bf16
precision: bf16
hardware: cpu
engine: sglang
runner: local
scenario: {kind: fixed-seq-len, isl: 32, osl: 8}
serve: {context-length: 1024, max-running-requests: 32}
ladder: [{tp: 1, concurrency: [1, 2]}]
stop: {min-requests: 8, window-s: 0.2, cap-s: 5}
"""


@pytest.fixture
def with_sglang(repository: Repository) -> Repository:
    repository.write("recipes/sg.yaml", RECIPE)
    profile = f"""place: here
launch: process
serves: [local]
executable: {FAKE}
pass-env: [FAKE_SGLANG_CAP]
limits: {{ready-s: 30, quiet-s: 5, request-s: 20, stop-s: 1}}
"""
    repository.write("runners/sg.yaml", profile)
    return repository


def test_a_sweep_end_to_end(with_sglang: Repository):
    assert with_sglang.infx("validate", "recipes/sg.yaml", "runners/sg.yaml").returncode == 0
    assert "--max-running-requests 32" in with_sglang.infx("explain", "sg").stdout
    done = with_sglang.infx("sweep", "sg", "--runner", "sg")
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = with_sglang.runs()
    start = json.loads(next(folder.glob("starts/*/start.json")).read_text())
    seen = {item["name"]: item["verdict"] for item in start["observed"]}
    assert seen["max-running-requests"] == seen["context-length"] == seen["tp-size"] == "verified"
    assert start["version"] == {"version": "0.5.9"} and start["effective"]["max-prefill-tokens"] == 16384
    results = [json.loads(path.read_text()) for path in folder.glob("points/*/*/*/result.json")]
    assert sorted(item["concurrency"] for item in results) == [1, 2]
    for item in results:
        visit = item["visits"][0]
        assert visit["status"] == "ok", visit["reasons"]
        assert visit["engine"]["acceptance-length"]["value"] == 3.5  # a gauge, no counters
        assert visit["engine"]["prefix-hit-share"]["value"] == 0.0
        running = visit["engine"]["engine-running-mean"]["value"]  # a scrape may fall between two requests
        assert running is not None and 0 <= running <= item["concurrency"]
    rows = [line.split(",") for path in folder.rglob("*-timeline.csv") for line in path.read_text().splitlines()]
    assert {row[3] for row in rows} == {"kv-share", "0.25"} and {row[2] for row in rows} == {"waiting", "0"}
    stored = [path for path in folder.rglob("*") if path.is_file() and path.name != "engine.log"]
    assert not [path for path in stored if b"sk-planted" in path.read_bytes()]


def test_a_silent_change_is_caught(with_sglang: Repository):
    done = with_sglang.infx("sweep", "sg", "--runner", "sg", FAKE_SGLANG_CAP="7")
    assert done.returncode == 1
    assert "max-running-requests: asked 32, found 7" in done.stdout + done.stderr
