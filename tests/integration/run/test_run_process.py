"""Engine processes under guard: none outlives its sweep, whatever either of them does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infx.errors import EngineError, RunnerError
from infx.run.launch.process import EngineProcess, find_executable

TREE = "import os,subprocess,sys,time; print(os.getpid(), flush=True)\n" \
       "child = subprocess.Popen(['sleep', '1000'], start_new_session=True); print(child.pid, flush=True)\n"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def eventually(fact, limit_s: float = 10) -> bool:
    deadline = time.monotonic() + limit_s
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pids(log: Path) -> list[int]:
    assert eventually(lambda: log.exists() and len(log.read_text().split()) >= 2)
    return [int(word) for word in log.read_text().split()[:2]]


def start(tmp_path: Path, code: str, grace: float = 1.0) -> EngineProcess:
    return EngineProcess([sys.executable, "-c", code], dict(os.environ), tmp_path / "log", tmp_path, grace)


def test_stop_ends_the_whole_family(tmp_path):
    engine = start(tmp_path, TREE + "time.sleep(1000)")
    family = pids(tmp_path / "log")
    ended = engine.stop()
    assert (ended.asked, ended.signal) == (True, signal.SIGTERM)
    assert not any(alive(pid) for pid in family)


def test_a_stubborn_engine_is_killed_after_the_grace(tmp_path):
    engine = start(tmp_path, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TREE
                   + "time.sleep(1000)", grace=0.2)
    family = pids(tmp_path / "log")
    assert engine.stop().signal == signal.SIGKILL
    assert not any(alive(pid) for pid in family)


def test_the_family_dies_with_a_killed_sweep(tmp_path):
    sweep = subprocess.Popen([sys.executable, "-c", f"""
import os, sys, time
from pathlib import Path
from infx.run.launch.process import EngineProcess
engine = EngineProcess([sys.executable, "-c", {TREE + "time.sleep(1000)"!r}], dict(os.environ),
                       Path({str(tmp_path / "log")!r}), Path("/"), 1.0)
time.sleep(1000)
"""])
    family = pids(tmp_path / "log")
    sweep.kill()
    sweep.wait()
    assert eventually(lambda: not any(alive(pid) for pid in family))


def test_children_die_with_an_engine_that_exits(tmp_path):
    engine = start(tmp_path, TREE + "print('last words'); sys.exit(3)")
    family = pids(tmp_path / "log")
    assert eventually(lambda: not engine.alive)
    assert (engine.ended.exit_code, engine.ended.asked) == (3, False)
    assert "last words" in (tmp_path / "log").read_text()
    assert not any(alive(pid) for pid in family)
    engine.stop()


def test_an_engine_killed_from_outside_says_so(tmp_path):
    with start(tmp_path, TREE + "time.sleep(1000)") as engine:
        os.kill(engine.pid, signal.SIGKILL)
        assert eventually(lambda: not engine.alive)
        assert engine.ended.signal == signal.SIGKILL and not engine.ended.asked


def test_a_program_that_cannot_start(tmp_path):
    with pytest.raises(EngineError, match="No such file"):
        EngineProcess(["/nowhere/engine"], dict(os.environ), tmp_path / "log", tmp_path, 1.0)
    with pytest.raises(RunnerError, match="not on PATH"):
        find_executable("no-such-engine-program", tmp_path)
    with pytest.raises(RunnerError, match="make engine-cpu"):
        find_executable(".venv-engine-cpu/bin/vllm", tmp_path)
