"""The commands over real recipes and run folders: coverage, draft, append, log, show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infx.changelog.gate import PATH, check
from infx.changelog.spans import split
from tests.fakes import run_folder

from .conftest import IDENTITY

ROOT = Path(__file__).parents[3]
RECIPE = "recipes/examples/tiny-bf16-cpu-vllm-256-64.yaml"
KEY = "tiny-bf16-cpu-vllm-256-64"
OTHER = "qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono"


def infx(top: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "infx.cli", "changelog", *words], cwd=top, capture_output=True,
                          encoding="utf-8", env={**os.environ, **IDENTITY}, timeout=100)


@pytest.fixture
def project(git):
    """A branch over a trunk that holds the project's own recipes."""
    world = git(b"# entries\n")
    for folder in ("recipes", "configs", "runners", "infx/golden_al_distribution"):
        shutil.copytree(ROOT / folder, world.top / folder)
    world.run("add", ".")
    world.run("commit", "-q", "-m", "recipes")
    world.run("checkout", "-q", "-b", "branch")
    return world


def edit(world, old: str, new: str, path: str = RECIPE) -> None:
    file = world.top / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_an_uncovered_recipe_is_named_and_a_draft_covers_it(project):  # P41
    assert infx(project.top, "check", "--base", "main").returncode == 0
    edit(project, "to: 16}", "to: 32}")
    done = infx(project.top, "check", "--base", "main")
    assert done.returncode == 8
    assert f"{PATH}:0:0: C-021 recipe {KEY} changed" in done.stdout
    made = infx(project.top, "draft", "--base", "main")
    assert made.returncode == 0, made.stderr
    data = (project.top / PATH).read_bytes()
    assert f"    - {KEY}\n".encode() in data and b"pr-link: XXX" in data and b"append-only: true" in data
    assert infx(project.top, "check", "--base", "main").returncode == 0
    assert infx(project.top, "check", "--base", "main", "--at", "merge").returncode == 8


def test_an_entry_for_another_recipe_does_not_cover(project):  # P41
    edit(project, "to: 16}", "to: 32}")
    (project.top / PATH).write_bytes(
        f"# entries\n\n- config-keys:\n    - {OTHER}\n    - nosuch\n  description:\n    - x\n  pr-link: XXX\n".encode())
    done = infx(project.top, "check", "--base", "main", "--json")
    found = json.loads(done.stdout)
    assert [(item["code"], item["line"]) for item in found] == [("C-021", 0), ("C-020", 3)]
    assert KEY in found[0]["message"] and "'nosuch'" in found[1]["message"]


def test_draft_has_nothing_to_say_without_a_change(project):
    done = infx(project.top, "draft")
    assert done.returncode == 0 and "nothing to draft" in done.stdout
    assert (project.top / PATH).read_bytes() == b"# entries\n"


@pytest.mark.parametrize("fact", ["measured", "simulated", "quick", "unofficial", "stands_in"])
def test_append_publishes_measured_runs_only(project, fact):
    folder = make_run(project.top / "runs", fact)
    done = infx(project.top, "append", str(folder))
    assert done.returncode == 0, done.stderr
    trunk, own = (project.top / PATH).read_bytes(), folder / "changelog.yaml"
    if fact == "measured":
        assert len(split(trunk).spans) == 1 and not own.exists()
        assert check(trunk, b"# entries\n") == []
        assert infx(project.top, "append", str(folder)).stdout.endswith("unchanged\n")
        assert (project.top / PATH).read_bytes() == trunk
    else:
        assert trunk == b"# entries\n"
        assert check(own.read_bytes(), trunk=False) == []
        assert fact.replace("_", "-") in done.stderr
        refused = infx(project.top, "append", str(folder), "--file", PATH)
        assert refused.returncode == 8 and "C-025" in refused.stderr
        assert (project.top / PATH).read_bytes() == b"# entries\n"


def test_log_and_show_tell_a_runs_story_and_hide_what_is_retracted(project):  # P40
    folder = make_run(project.top / "runs", "measured")
    assert infx(project.top, "append", str(folder)).returncode == 0
    (name,) = split((project.top / PATH).read_bytes()).ids
    told = infx(project.top, "log", folder.name)
    assert told.returncode == 0 and folder.name in told.stdout and "tp2/c1" in told.stdout and "sha256:" in told.stdout
    assert infx(project.top, "retract", name, "--reason", "wrong image").returncode == 0
    shown = infx(project.top, "show", "--key", "demo-*").stdout
    assert f"retracts {name}: wrong image" in shown and f"results of {folder.name}" not in shown
    everything = json.loads(infx(project.top, "show", "--all", "--json").stdout)
    assert [(item["kind"], item["retracted"]) for item in everything] == [("results", "wrong image"), ("retract", None)]
    assert "wrong image" in infx(project.top, "log", folder.name).stdout
    assert infx(project.top, "log", "nosuch").returncode == 2


def make_run(runs: Path, fact: str) -> Path:
    """A finished synthetic run with one thing that speaks against publishing it, or none."""
    runs.mkdir(exist_ok=True)
    changes = {"stands_in": fact == "stands_in", "unofficial": fact == "unofficial"}
    return run_folder.write(runs, simulated=fact == "simulated", quick=fact == "quick", run_changes=changes)
