import errno
import json
import os

import pytest
import run_folder as fake

from infx.errors import BusyError, ResultsError, StorageError, UsageError
from infx.results.index import find_run, list_runs
from infx.results.layout import PointKey, RunPaths, run_id
from infx.results.load import RunState, load_run, missing_points
from infx.results.migrate import migrate
from infx.results.store import RunStore, new_run_id, write_whole
from infx.schema.result import Status

C8 = f"{fake.RECIPE}/tp2/c8"


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    folder = fake.write(tmp_path)
    loaded = load_run(folder)
    assert loaded.plan == fake.plan()
    assert loaded.run == fake.run(stands_in=True)
    assert [r.point for r in loaded.results] == [p.key for p in loaded.plan.points]
    assert loaded.state is RunState.COMPLETE
    assert loaded.missing == []
    found = loaded.chosen(C8)
    assert found.visits[0].metrics["output-throughput-per-gpu"].value == fake.curve(2, 8)["output-throughput-per-gpu"]
    assert (found.gpus, found.concurrency, found.fingerprint) == (2, 8, "f1-base-2-8")
    assert loaded.requests_file(found, found.visits[0]).read_bytes() == b"columns"
    assert loaded.simulated


def test_paths_are_those_of_the_design(tmp_path):
    paths = RunPaths(tmp_path)
    assert paths.point("k@no-mono/tp2-ep2/c64", "s1").result == tmp_path / "points/no-mono/tp2-ep2-c64/s1/result.json"
    assert paths.point("k/tp2/c64", "s1").requests(1) == tmp_path / "points/base/tp2-c64/s1/requests-1.npz"
    assert paths.point("k@base/tp2/c64", "s1").folder == tmp_path / "points/@base/tp2-c64/s1"
    assert paths.start("s1").engine_log == tmp_path / "starts/s1/engine.log"
    assert run_id(fake.BORN, "demo", "0a0b0c") == "20261201T090000Z-demo-0a0b0c"
    assert new_run_id(fake.BORN, "demo") != new_run_id(fake.BORN, "demo")
    assert PointKey.parse("k@a.b-c/tp1/c1") == PointKey("k", "a.b-c", "tp1", 1)
    for bad in ("k/tp1", "k/tp1/x1", "k/tp1/c", "k/tp1/c1/d"):
        with pytest.raises(ValueError):
            PointKey.parse(bad)


def test_a_revisit_is_a_further_entry_of_its_point(tmp_path):
    folder = fake.write(tmp_path, tps=(2,))
    point = load_run(folder).plan.point(C8)
    with RunStore.open(folder) as store:
        store.append_visit(point, "001", fake.visit({"ttft-p50": 9.0}, "invalid", "drift"), lambda f: f.write(b"two"))
    found = load_run(folder).chosen(C8)
    assert [v.ordinal for v in found.visits] == [0, 1]
    assert found.status is Status.OK and found.reasons == []
    assert found.visits[1].requests_file == "requests-1.npz"
    assert load_run(folder).requests_file(found, found.visits[1]).read_bytes() == b"two"


def test_several_starts_of_a_point_are_kept_and_the_newest_ok_one_chosen(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), concurrencies=(8,), failed=("c8",))
    loaded = load_run(folder)
    assert loaded.state is RunState.FAILED
    assert loaded.chosen(C8).status is Status.FAILED
    with RunStore.open(folder) as store:
        for number, (status, reason) in enumerate((("ok", None), ("failed", "engine-died")), 2):
            store.write_start(fake.start(f"{number:03d}", "b-s-base-tp2", "s-base-tp2", at=100.0 * number))
            store.append_visit(loaded.plan.point(C8), f"{number:03d}", fake.visit({}, status, reason))
    loaded = load_run(folder)
    assert [r.start for r in loaded.of(C8)] == ["001", "002", "003"]
    assert loaded.chosen(C8).start == "002"
    assert loaded.state is RunState.COMPLETE


def test_missing_points_are_those_that_no_start_finished(tmp_path):
    # P25: points that are not there are named, never passed over
    folder = fake.write(tmp_path, tps=(2,), skipped=("c64",), failed=("c1",))
    loaded = load_run(folder)
    with RunStore.open(folder) as store:
        store.write_start(fake.start("009", "b-s-base-tp2", "s-base-tp2", at=500.0))
        store.append_visit(loaded.plan.point(C8), "009", fake.visit({}, "interrupted", "stopped"))
    loaded = load_run(folder)
    assert loaded.state is RunState.PARTIAL
    assert missing_points(loaded) == [f"{fake.RECIPE}/tp2/c64"]  # c8 is ok in its first start
    retry = frozenset({Status.INTERRUPTED, Status.FAILED})
    assert missing_points(loaded, retry) == [f"{fake.RECIPE}/tp2/c1", f"{fake.RECIPE}/tp2/c64"]


def test_an_interrupted_point_is_missing(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c8",))
    with RunStore.open(folder) as store:
        store.append_visit(load_run(folder).plan.point(C8), "001", fake.visit({}, "interrupted", "stopped"))
    assert load_run(folder).missing == [C8]


def test_two_writers_of_one_run_are_refused(tmp_path):
    plan = fake.plan()
    with RunStore.create(tmp_path, fake.run("r1"), plan) as store:
        with pytest.raises(BusyError, match="another sweep"):
            RunStore.open(store.paths.root)
        with pytest.raises(BusyError, match="exists already"):
            RunStore.create(tmp_path, fake.run("r1"), plan)
    RunStore.open(tmp_path / "r1").close()
    assert [p.name for p in tmp_path.iterdir()] == ["r1"]


def test_a_folder_taken_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    real = os.rename

    def racing(source, target):
        fake_target = tmp_path / "r1"
        fake_target.mkdir()
        (fake_target / "run.json").write_text("theirs")
        real(source, target)

    monkeypatch.setattr(os, "rename", racing)
    with pytest.raises(BusyError, match="exists already"):
        RunStore.create(tmp_path, fake.run("r1"), fake.plan())
    assert (tmp_path / "r1" / "run.json").read_text() == "theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["r1"]


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "No space left"), (errno.EROFS, "Read-only"), (errno.EACCES, "Permission")]
)
def test_a_refusing_disk_is_explained_and_leaves_no_temporary_file(tmp_path, monkeypatch, code, words):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c64",))
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    store = RunStore.open(folder)

    def full(_descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError) as caught:
        store.append_visit(store_point(folder, "c64"), "001", fake.visit({}), b"columns")
    assert words in str(caught.value)
    assert "2 finished point(s) are kept" in caught.value.hint and str(folder) in caught.value.hint
    assert "tp2-c64/001" in caught.value.where
    monkeypatch.undo()
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert load_run(folder).missing == [f"{fake.RECIPE}/tp2/c64"]
    store.close()


def store_point(folder, end):
    return next(p for p in load_run(folder).plan.points if p.key.endswith(end))


def test_columns_without_their_result_are_removed_when_the_disk_fills(tmp_path, monkeypatch):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c64",))
    real = os.replace

    def full(source, target):
        if str(target).endswith("result.json"):
            raise OSError(errno.ENOSPC, "full")
        real(source, target)

    point = store_point(folder, "c64")
    with RunStore.open(folder) as store:
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(StorageError):
            store.append_visit(point, "001", fake.visit({}), b"columns")
    assert not any(p.is_file() for p in (folder / "points/base/tp2-c64").rglob("*"))


def test_an_error_of_the_column_writer_is_passed_on_and_leaves_nothing(tmp_path):
    def bad(stream):
        stream.write(b"half")
        raise RuntimeError("encoder")

    with pytest.raises(RuntimeError, match="encoder"):
        write_whole(tmp_path / "f", bad)
    assert list(tmp_path.iterdir()) == []


def damaged(tmp_path, file, change):
    folder = fake.write(tmp_path, tps=(2,))
    path = folder / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ResultsError) as caught:
        load_run(folder)
    assert caught.value.where == str(path)
    assert caught.value.exit_code == 7
    return str(caught.value)


def edited(**changes):
    def change(raw):
        return json.dumps({**json.loads(raw), **{k.replace("_", "-"): v for k, v in changes.items()}}).encode()

    return change


RESULT = "points/base/tp2-c8/001/result.json"


@pytest.mark.parametrize("file", ["run.json", "plan.json", "starts/001/start.json", RESULT])
def test_a_newer_format_is_refused_with_advice(tmp_path, file):
    assert "format 2 is newer" in damaged(tmp_path, file, edited(format_version=2))


@pytest.mark.parametrize("file", ["run.json", "plan.json", "starts/001/start.json", RESULT])
@pytest.mark.parametrize(
    "change", [lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"\0" * 40, lambda raw: b"[]"]
)
def test_a_damaged_file_is_named(tmp_path, file, change):
    assert "damaged" in damaged(tmp_path, file, change)


def test_what_does_not_fit_the_run_is_named(tmp_path):
    assert "plan does not have" in damaged(tmp_path / "1", RESULT, edited(point=f"{fake.RECIPE}/tp2/c9"))
    assert "lies elsewhere" in damaged(tmp_path / "2", RESULT, edited(start="002"))
    assert "surplus" in damaged(tmp_path / "3", RESULT, edited(surplus=1))
    assert "without a visit" in damaged(tmp_path / "4", RESULT, edited(visits=[]))
    assert "in a run of" in damaged(tmp_path / "5", "plan.json", edited(recipe="other"))


def test_a_lost_start_is_named(tmp_path):
    folder = fake.write(tmp_path, tps=(2,))
    (folder / "starts/001/start.json").unlink()
    with pytest.raises(ResultsError, match="engine start is missing"):
        load_run(folder)


def test_leftovers_of_an_interrupted_writer_are_ignored(tmp_path):
    folder = fake.write(tmp_path, tps=(2,))
    (folder / "points/base/tp2-c8/001/.result.json.1-ab.tmp").write_bytes(b"{")
    (folder / "starts/.9.tmp").mkdir()
    (folder / "starts/.9.tmp/start.json").write_bytes(b"{")
    (folder / "starts/002").mkdir()
    assert len(load_run(folder).results) == 3


def test_older_formats_climb_step_by_step():
    steps = {1: lambda kind, c: {**c, "a": kind}, 2: lambda kind, c: {**c, "b": c["a"]}}
    lifted = migrate("run", {"format-version": 1}, 1, 3, steps)
    assert lifted == {"format-version": 3, "a": "run", "b": "run"}


def test_runs_are_found_by_path_id_part_and_latest(tmp_path):
    first = fake.write(tmp_path, "20261201T090000Z-demo-aaaaaa")
    second = fake.write(tmp_path, "20261201T090001Z-demo-bbbbbb")
    (tmp_path / ".x.tmp").mkdir()
    (tmp_path / "notes").mkdir()
    assert list_runs(tmp_path) == [first, second]
    assert find_run(str(first), tmp_path) == first
    assert find_run(str(first / "run.json"), tmp_path) == first
    assert find_run("latest", tmp_path) == second
    assert find_run("aaaa", tmp_path) == first
    with pytest.raises(UsageError, match="2 runs match"):
        find_run("demo", tmp_path)
    with pytest.raises(UsageError, match="no run folder"):
        find_run("nothing", tmp_path)
    assert list_runs(tmp_path / "absent") == []
