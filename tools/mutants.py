"""Breaks the product in small ways and sees the named tests fail: proof that they can. `make mutants`.

Reads tests/mutants/*.toml: `[[mutant]]` with `file`, `find` (once in that file), `replace` and `tests` (pytest
arguments). The sources are copied to a scratch folder and broken there; the repository is never touched. Before any
mutant counts, the same tests must pass on an unbroken copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "tests" / "mutants"
COPIED = ("infx", "tools", "tests", "docs")
LINKED = ("bench", "configs", "recipes", "runners", "pyproject.toml", "README.md", "CONTRIBUTING.md")


def main(words: list[str]) -> int:
    """Runs every mutant whose file or tests contain one of ``words`` (none: all); 1 when one survives."""
    mutants = [
        mutant
        for table in sorted(TABLES.glob("*.toml"))
        for mutant in tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]
        if not words or any(word in f"{mutant['file']} {mutant['tests']}" for word in words)
    ]
    with tempfile.TemporaryDirectory(prefix="infx-mutants-") as scratch:
        copy = make_copy(Path(scratch))
        bad = [complaint for mutant in mutants if (complaint := judge(copy, mutant))]
    print(f"{len(mutants) - len(bad)} of {len(mutants)} mutants were caught")
    return int(bool(bad))


def make_copy(folder: Path) -> Path:
    """The sources in ``folder``, what is only read as links."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return folder


def judge(copy: Path, mutant: dict[str, str]) -> str:
    """Breaks the copy, runs the tests, mends it. Returns what is wrong with the mutant, or nothing."""
    path = copy / mutant["file"]
    whole = path.read_text(encoding="utf-8")
    label = f"{mutant['file']}: {mutant['find'].strip()!r} → {mutant['replace'].strip()!r}"
    if whole.count(mutant["find"]) != 1:
        return say("STALE   ", label, f"found {whole.count(mutant['find'])} times, not once")
    if (code := run(copy, mutant["tests"])) != 0:
        return say("BROKEN  ", label, f"{mutant['tests']} ends with {code} without the change")
    path.write_text(whole.replace(mutant["find"], mutant["replace"]), encoding="utf-8")
    try:
        code = run(copy, mutant["tests"])
    finally:
        path.write_text(whole, encoding="utf-8")
    if code != 1:
        return say("SURVIVED" if code == 0 else "BROKEN  ", label, f"{mutant['tests']} ends with {code}")
    print(f"caught    {label}", flush=True)
    return ""


def say(verdict: str, label: str, reason: str) -> str:
    """Prints one line and returns it."""
    line = f"{verdict}  {label}: {reason}"
    print(line, flush=True)
    return line


def run(copy: Path, tests: str) -> int:
    """The exit code of pytest over ``tests`` in the copy (1: tests failed)."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    # Bytecode is not written: two changes within a second and of one length would share it.
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
    return subprocess.run(command, cwd=copy, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
