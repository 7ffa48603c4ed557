"""`infx trace stats` as a user types it: tables, JSON, pictures, findings and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import infx.workload.traces

SMALL = Path(infx.workload.traces.__file__).with_name("small.jsonl")


def stats(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infx.cli", "trace", "stats", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def test_the_shipped_trace_in_numbers_and_a_picture(tmp_path):
    done = stats(SMALL, "--plot", tmp_path / "a.svg", "--lanes", 12)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["sessions", "12"] and lines[1].split() == ["requests", "137"]
    assert "8 joined, 1 in the background" in lines[2]
    assert lines[-1].split() == ["unbounded", "76.58%"]
    assert stats(SMALL, "--plot", tmp_path / "b.svg").returncode == 0
    first, second = (tmp_path / "a.svg").read_bytes(), (tmp_path / "b.svg").read_bytes()
    assert first == second and first.startswith(b"<?xml")


def test_json_for_scripts():
    told = json.loads(stats(SMALL, "--json").stdout)
    assert told["prompt-tokens"] == 93_773 and told["quantiles"]["turns-of-main-stream"]["n"] == 12
    assert told["hit-rate"]["unbounded"] == pytest.approx(0.7658, abs=1e-4)


def test_bad_lines_are_told_and_the_rest_is_counted(tmp_path):
    lines = SMALL.read_bytes().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2])
    done = stats(tmp_path)
    assert done.returncode == 3
    assert "cut.jsonl:2:51: T-001 not JSON" in done.stderr
    assert done.stdout.splitlines()[0].split() == ["sessions", "2"]


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["absent.json"], 3, "no such file"),
        ([SMALL, "--plot", "x.pdf"], 2, ".svg or .png"),
        ([SMALL, "--plot", "/absent/x.svg"], 9, "cannot write"),
        ([SMALL, SMALL], 3, "T-010"),
        ([SMALL, "--lanes", "64"], 0, "T-012 [warning] 64 lanes over 12 sessions"),
    ],
)
def test_what_is_wrong_has_its_exit_code(words, code, told):
    done = stats(*words)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_traces(tmp_path):
    done = stats(tmp_path)
    assert done.returncode == 3 and "no trace in this folder" in done.stderr
