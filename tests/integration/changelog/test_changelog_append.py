"""Appending with real processes, a real kill and a really full disk: valid and complete, or unchanged."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infx.changelog.append import append, append_results, rewrite
from infx.changelog.gate import check
from infx.changelog.spans import split
from infx.errors import BusyError, ChangelogError, StorageError
from infx.schema.changelog import Change, Results, ResultsPoint, Retract

BASE = b"# odd base\n- config-keys: [never closed\n \n"

STOPPED = """
import os, signal, sys
from pathlib import Path
from infx.changelog import append as module
from infx.schema.changelog import Change
real = getattr(os, sys.argv[2])
def stop(*words, **named):
    if sys.argv[2] == "fsync":
        real(*words, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], stop) if sys.argv[2] != "replace" else setattr(Path, "replace", stop)
module.append(Path(sys.argv[1]), [Change(config_keys=["killed"], description=["d"], pr_link="XXX")])
"""


def append_two(file: Path, number: int) -> None:
    for turn in range(2):
        append(file, [change(f"p{number}-{turn}")])


def change(name: str) -> Change:
    return Change(config_keys=[name], description=["d"], pr_link="XXX")


def test_fifty_processes_lose_nothing(tmp_path: Path):
    file = tmp_path / "perf-changelog.yaml"
    file.write_bytes(BASE)
    fork = multiprocessing.get_context("fork")
    running = [fork.Process(target=append_two, args=(file, number)) for number in range(50)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0] * 50
    data = file.read_bytes()
    assert check(data, BASE) == []
    keys = [body.split(b"\n")[2].strip() for body in split(data).bodies[1:]]
    assert sorted(keys) == sorted(f"- p{number}-{turn}".encode() for number in range(50) for turn in range(2))
    assert all(keys.index(f"- p{n}-0".encode()) < keys.index(f"- p{n}-1".encode()) for n in range(50))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["perf-changelog.yaml", "perf-changelog.yaml.lock"]


@pytest.mark.parametrize("at", ["fdopen", "fsync", "replace"])
def test_a_kill_in_the_middle_leaves_the_file_and_the_next_append_works(tmp_path: Path, at: str):
    file = tmp_path / "perf-changelog.yaml"
    file.write_bytes(BASE)
    done = subprocess.run([sys.executable, "-c", STOPPED, str(file), at], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == BASE
    assert any(path.name.endswith(".tmp") for path in tmp_path.iterdir())
    append(file, [change("next")])
    assert check(file.read_bytes(), BASE) == [] and len(split(file.read_bytes()).spans) == 2
    assert not any(path.name.endswith(".tmp") for path in tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path):
    """A tmpfs of 64 KiB; skipped where mounting is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    made = subprocess.run(mount, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no tmpfs: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_the_file_unchanged(small_disk: Path):
    file = small_disk / "perf-changelog.yaml"
    append(file, [change("first")])
    before = file.read_bytes()
    room = small_disk / "filler"
    room.write_bytes(b"x" * 48_000)
    with pytest.raises(StorageError, match="unchanged"):
        append(file, [Change(config_keys=["big"], description=["y" * 30_000], pr_link="XXX")])
    assert file.read_bytes() == before
    assert not any(path.name.endswith(".tmp") for path in small_disk.iterdir())
    room.unlink()
    append(file, [change("second")])
    assert check(file.read_bytes(), before) == [] and len(split(file.read_bytes()).spans) == 2


def test_a_refused_entry_leaves_the_file_unchanged(tmp_path: Path):
    file = tmp_path / "perf-changelog.yaml"
    append(file, [change("first")])
    before, inode = file.read_bytes(), file.stat().st_ino
    with pytest.raises(ChangelogError, match="C-024"):
        append(file, [change("second"), Retract(kind="retract", entry="0" * 12 + "-1", reason="r")])
    with pytest.raises(ChangelogError, match="C-025"):
        append(file, [results("run", "quick")])
    assert (file.read_bytes(), file.stat().st_ino) == (before, inode)


def test_a_held_lock_is_named_after_the_wait(tmp_path: Path):
    file = tmp_path / "perf-changelog.yaml"

    def inner(data: bytes) -> bytes:
        with pytest.raises(BusyError, match="perf-changelog.yaml"):
            subprocess_free_append(file)
        return data + b"- x\n"

    assert rewrite(file, inner) == b"- x\n"


def subprocess_free_append(file: Path) -> None:
    append(file, [change("late")], timeout_s=0.05)


def test_mode_and_link_of_the_file_are_kept(tmp_path: Path):
    real, link = tmp_path / "real.yaml", tmp_path / "perf-changelog.yaml"
    real.write_bytes(b"")
    real.chmod(0o640)
    link.symlink_to(real)
    append(link, [change("a")])
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert len(split(real.read_bytes()).spans) == 1


def results(run: str, *provenance: str, status: str = "ok") -> Results:
    point = ResultsPoint(point="k/tp1/c1", fingerprint="f1-0", status=status, sha256="0" * 64)
    return Results(kind="results", run=run, recipe="k", runner="r", provenance=list(provenance), points=[point])


def test_a_run_is_recorded_once_and_anew_when_it_was_resumed(tmp_path: Path):
    file = tmp_path / "perf-changelog.yaml"
    (first,) = append_results(file, results("run", "measured", status="failed"))
    assert append_results(file, results("run", "measured", status="failed")) == []
    retraction, second = append_results(file, results("run", "measured"))
    assert len({first, retraction, second}) == 3
    assert check(file.read_bytes()) == []
    assert split(file.read_bytes()).bodies[1].split(b"\n")[1] == f'  entry: "{first}"'.encode()
