"""Committed files that a program writes are what it would write now."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is generated → the program that writes it; with --check it exits 1 when the file is out of date.
GENERATED = {"docs/architecture.md": ["tools/architecture.py"], "docs/lint.md": ["tools/lint_docs.py"]}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_file_is_up_to_date(name):
    done = subprocess.run([sys.executable, *GENERATED[name], "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{name} is out of date: run `make generated` and commit it\n{done.stderr}"


def test_an_outdated_picture_is_noticed(tmp_path):
    for name in ("tools/architecture.py", "tests/repo/layers.toml", "docs/architecture.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    layers = tmp_path / "tests/repo/layers.toml"
    layers.write_text(layers.read_text(encoding="utf-8").replace("pull requests", "requests to pull"), encoding="utf-8")

    def run(*arguments: str) -> int:
        return subprocess.run([sys.executable, tmp_path / "tools/architecture.py", *arguments]).returncode

    assert run("--check") == 1
    assert run() == 0
    assert run("--check") == 0
    assert "requests to pull" in (tmp_path / "docs/architecture.md").read_text(encoding="utf-8")
