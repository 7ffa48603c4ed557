"""A real full disk: a small tmpfs fills in the middle of a run, and what was finished stays readable."""

import subprocess

import pytest
import run_folder as fake

from infx.errors import StorageError
from infx.results.load import load_run
from infx.results.store import RunStore


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 400 kB; needs the right to mount."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", place], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no right to mount a tmpfs: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_fills_up_is_explained_and_loses_nothing_finished(small_disk):
    plan = fake.plan(tps=(2,), concurrencies=(1, 2, 4, 8, 16))
    written = 0
    with RunStore.create(small_disk, fake.run("r"), plan) as store:
        store.write_start(fake.start("001", plan.blocks[0].id, plan.blocks[0].server))
        with pytest.raises(StorageError) as caught:
            for point in plan.points:
                visit = fake.visit(fake.curve(2, point.concurrency))
                store.append_visit(point, "001", visit, bytes(100_000))
                written += 1
    assert "No space left on device" in str(caught.value)
    assert f"{written} finished point(s) are kept" in caught.value.hint and "--resume" in caught.value.hint
    loaded = load_run(small_disk / "r")
    assert 0 < written < 5 and len(loaded.results) == written
    assert loaded.missing == [point.key for point in plan.points[written:]]
    assert not list(small_disk.rglob("*.tmp"))


def test_a_disk_without_room_for_a_run_leaves_no_half_folder(small_disk):
    (small_disk / "filler").write_bytes(bytes(404_000))
    with pytest.raises(StorageError, match="No space left") as caught:
        RunStore.create(small_disk, fake.run("r"), fake.plan())
    assert "nothing was started" in caught.value.hint
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
