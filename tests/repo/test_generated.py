"""Committed files that a program writes are what it would write now."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is generated → the program that writes it; with --check it exits 1 when the file is out of date.
GENERATED = {"docs/*.md": ["tools/generate.py"], "docs/lint.md": ["tools/lint_docs.py"],
             "schemas/*.json, MODELS.md": ["tools/schemas.py"]}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_file_is_up_to_date(name):
    done = subprocess.run([sys.executable, *GENERATED[name], "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"run `make generated` and commit it\n{done.stdout}{done.stderr}"


def test_an_outdated_page_is_noticed(tmp_path):
    for folder in ("tools", "docs", "runners"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "tests/repo").mkdir(parents=True)
    layers = (ROOT / "tests/repo/layers.toml").read_text(encoding="utf-8")
    changed = layers.replace("pull requests", "requests to pull")
    (tmp_path / "tests/repo/layers.toml").write_text(changed, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, tmp_path / "tools/generate.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        return done.returncode, done.stdout

    code, said = run("--check")
    assert (code, "docs/architecture.md is out of date" in said) == (1, True)
    assert run()[0] == 0
    assert run("--check") == (0, "")
    assert "requests to pull" in (tmp_path / "docs/architecture.md").read_text(encoding="utf-8")
