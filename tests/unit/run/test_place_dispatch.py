"""Following jobs, with a scheduler made of a table and a shared storage that is slow or half written."""

from __future__ import annotations

import json

from filelock import FileLock

from infx.run.place.dispatch import Job, job_name, jobs_of, look
from infx.run.place.jobs import Fate, Seen

DONE = {"job": "7", "restart": 0, "node": "n2", "exit": 0, "unix": 1}


class Table:
    """A scheduler that says what it is told to say; None: it does not answer."""

    outlives = True

    def __init__(self, *seen: Seen, answers: bool = True) -> None:
        self.seen = {each.name: each for each in seen}
        self.answers = answers

    def queue(self):
        return dict(self.seen) if self.answers else None


def job(folder, **more):
    folder.mkdir(exist_ok=True)
    return Job(folder, "j", "base", ["p"], **{"id": "7", **more})


def test_a_late_marker_still_counts(tmp_path):
    """The job has ended, its files are not there yet: it is lost only after the time that storage may take."""
    waiting = job(tmp_path / "a")
    table = Table(Seen("7", "j", "COMPLETED", "n2"))
    look([waiting], table, 10.0, now=100.0)
    assert waiting.verdict.fate is Fate.LOST and not waiting.over
    look([waiting], table, 10.0, now=109.0)
    assert not waiting.over
    (waiting.folder / "done.json").write_text(json.dumps(DONE))
    look([waiting], table, 10.0, now=109.5)
    assert waiting.over and waiting.verdict.fate is Fate.DONE


def test_without_a_marker_it_is_lost_when_storage_has_had_its_time(tmp_path):
    waiting = job(tmp_path / "a")
    table = Table(Seen("7", "j", "NODE_FAIL", "n2"))
    for now in (100.0, 109.9):
        look([waiting], table, 10.0, now=now)
        assert not waiting.over
    look([waiting], table, 10.0, now=110.0)
    assert waiting.over and waiting.verdict.fate is Fate.LOST and "node failed" in waiting.verdict.why


def test_a_job_that_is_queued_again_is_not_lost(tmp_path):
    waiting = job(tmp_path / "a")
    look([waiting], Table(Seen("7", "j", "PREEMPTED")), 10.0, now=100.0)
    look([waiting], Table(Seen("7", "j", "PENDING", "", "BeginTime")), 10.0, now=105.0)
    assert waiting.verdict.fate is Fate.QUEUED and waiting.lost_since is None
    look([waiting], Table(Seen("7", "j", "NODE_FAIL")), 10.0, now=112.0)
    assert not waiting.over, "the time counts from its last end"


def test_a_scheduler_that_does_not_answer_changes_nothing_but_markers_count(tmp_path):
    quiet, done = job(tmp_path / "a"), job(tmp_path / "b")
    (done.folder / "done.json").write_text(json.dumps(DONE))
    assert look([quiet, done], Table(answers=False), 10.0, now=1.0) is False
    assert quiet.verdict.fate is Fate.QUEUED and done.verdict.fate is Fate.DONE


def test_a_job_that_still_writes_is_not_lost(tmp_path):
    """The controller gave its node up (slurmd died), its processes live on: the lock of its run folder says so."""
    waiting = job(tmp_path / "a")
    nested = waiting.folder / "runs" / "20261201T000000Z-toy-abc123"
    nested.mkdir(parents=True)
    (nested / "run.json").write_text("{}")
    table = Table(Seen("7", "j", "NODE_FAIL", "n2"))
    with FileLock(nested / ".lock"):
        for now in (100.0, 150.0):
            look([waiting], table, 10.0, now=now)
        assert waiting.verdict.fate is Fate.RUNNING and not waiting.over
    look([waiting], table, 10.0, now=151.0)
    assert waiting.over and waiting.verdict.fate is Fate.LOST


def test_half_a_marker_is_no_end(tmp_path):
    waiting = job(tmp_path / "a")
    (waiting.folder / "done.json").write_text(json.dumps(DONE)[:20])
    look([waiting], Table(Seen("7", "j", "RUNNING", "n2")), 10.0, now=1.0)
    assert waiting.verdict.fate is Fate.RUNNING


def test_a_job_is_found_by_its_name_when_its_id_was_not_written(tmp_path):
    waiting = job(tmp_path / "a", id=None)
    look([waiting], Table(Seen("42", "j", "RUNNING", "n1")), 10.0, now=1.0)
    assert (waiting.id, waiting.verdict.fate) == ("42", Fate.RUNNING)


def test_an_end_with_an_error_says_where(tmp_path):
    waiting = job(tmp_path / "a")
    (waiting.folder / "done.json").write_text(json.dumps({**DONE, "exit": 12}))
    look([waiting], Table(), 10.0, now=1.0)
    assert waiting.verdict.fate is Fate.DONE and "exit code 12 on n2" in waiting.verdict.why


def test_the_jobs_of_a_run(tmp_path):
    run = tmp_path / "20261201T000000Z-toy-abc123"
    for name, facts in (("a.1", {"job": "7", "name": "x", "block": "base", "points": ["p"]}), ("b.2", "half"),
                        ("c.3", {"job": None, "name": "y", "block": "other", "points": []})):
        (run / "jobs" / name).mkdir(parents=True)
        (run / "jobs" / name / "job.json").write_text(json.dumps(facts) if isinstance(facts, dict) else '{"job"')
    (run / "jobs" / "c.3" / "taken.json").write_text("{}")
    (found,) = jobs_of(run)
    assert (found.id, found.name, found.block, found.points) == ("7", "x", "base", ["p"])
    assert job_name(run, run / "jobs" / "a.1") == "infx-abc123-a.1"
