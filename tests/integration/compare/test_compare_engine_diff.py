"""`infx engine-diff` on runs of the simulator, as typed (P30)."""

from __future__ import annotations

import json
import shutil
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
ladder: [{tp: 1, concurrency: [1]}]
stop: {min-requests: 8, window-s: 1, cap-s: 4}
serve: {max-num-batched-tokens: 2048, max-num-seqs: 8}
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> tuple[Repository, Path, Path]:
    """Two runs: chunks of 2048 tokens, then of 4096; eight sequences in both."""
    made = Repository(tmp_path_factory.mktemp("engine-diff"))
    for chunk in ("2048", "4096"):
        made.write("recipes/toy.yaml", TOY.replace("2048", chunk))
        done = made.infx("sweep", "toy", "-r", "simulator")
        assert done.returncode == 0 or "client-bound" in done.stderr, done.stderr  # settings are read all the same
    first, second = sorted(made.runs(), key=lambda run: json.loads((run / "run.json").read_text())["created-unix"])
    return made, first, second


def start_file(run: Path) -> Path:
    (found,) = run.glob("starts/*/start.json")
    return found


def edited(run: Path, name: str, **changes) -> Path:
    """A copy of a run whose start says something else."""
    copy = run.with_name(name)
    shutil.copytree(run, copy)
    file = start_file(copy)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return copy


def test_the_changed_chunk_is_asked_and_the_rest_is_the_same(swept):
    repository, first, second = swept
    done = repository.infx("engine-diff", first.name, str(second), "--json")
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert data["settings"] == [
        {"name": "max-num-batched-tokens", "first": [2048], "second": [4096], "mark": "asked", "note": ""}]
    assert data["what-ran"] == data["env"] == data["asked"] == data["unreadable"] == []
    text = repository.infx("engine-diff", str(start_file(first)), f"{second.name}/base").stdout.splitlines()
    assert "image: placeholder:toy  same" in text
    assert "  max-num-batched-tokens: 2048 → 4096  asked" in text
    assert not any("max-num-seqs" in line for line in text)


def test_a_run_and_itself_are_the_same(swept):
    repository, first, _ = swept
    done = repository.infx("engine-diff", first.name, f"{first.name}/{start_file(first).parent.name}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("same: 0 differences")


def test_a_changed_default_is_silent_and_no_settings_are_unknown(swept):
    repository, first, _ = swept
    logged = json.loads(start_file(first).read_text())["effective"]
    edited(first, "changed-default", effective={**logged, "enable-prefix-caching": False})
    done = repository.infx("engine-diff", first.name, "changed-default")
    assert done.returncode == 1 and "  enable-prefix-caching: true → false  silent" in done.stdout
    edited(first, "mute", effective={})
    done = repository.infx("engine-diff", first.name, "mute")
    assert done.returncode == 1
    assert "unreadable: settings of mute: " in done.stdout and "\nunknown: 0 differences" in done.stdout


@pytest.mark.parametrize(("word", "said"), [
    ("nope", "no run folder 'nope'"),
    ("runs/nope", "no run folder 'runs/nope'"),
    ("{run}/nope", "no start 'nope' in this run"),
    ("bare", "no engine start to compare"),
    ("two", "are of 2 servers"),
])
def test_wrong_words(swept, word, said):
    repository, first, _ = swept
    bare, two = first.with_name("bare"), first.with_name("two")
    if not bare.exists():
        shutil.copytree(first, bare, ignore=shutil.ignore_patterns("starts", "points"))
        edited(first, "two")
        start = json.loads(start_file(two).read_text())
        other = two / "starts" / "other" / "start.json"
        other.parent.mkdir()
        other.write_text(json.dumps({**start, "id": "other", "server": "f1-0"}))
    done = repository.infx("engine-diff", first.name, word.format(run=first.name))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_start_of_no_planned_server_is_damage(swept):
    repository, first, _ = swept
    edited(first, "foreign", server="f1-0")
    done = repository.infx("engine-diff", "foreign", first.name)
    assert done.returncode == 7 and "the plan does not have" in done.stderr
