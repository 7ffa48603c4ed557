"""Slurm's words, pure: what a job's state means, what a submission asks for, what the job's script does."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.errors import RunnerError
from infx.run.place.jobs import (
    Fate,
    Seen,
    folder_name,
    judge,
    notice_s,
    parse_marker,
    parse_queue,
    script,
    submission,
)
from infx.run.place.node import expand, given, in_allocation, job_label, node_name, on_node
from infx.schema.runner import Runner

MARKER = {"job": "7", "node": "n2", "exit": 0, "restart": 0, "unix": 1}


def runner(**more: object) -> Runner:
    facts = {"name": "s", "place": "slurm", "launch": "process", "serves": "any", "executable": "infx-sim",
             "slurm": {"time-limit-min": 30, **more.pop("slurm", {})}, "limits": {"stop-s": 20.0}, **more}
    return Runner.model_validate(facts)


@pytest.mark.parametrize(
    ("state", "fate", "says"),
    [
        ("PENDING", Fate.QUEUED, "Resources"),
        ("REQUEUED", Fate.QUEUED, "Resources"),
        ("SUSPENDED", Fate.QUEUED, "Resources"),
        ("RUNNING", Fate.RUNNING, "n1"),
        ("COMPLETING", Fate.RUNNING, "n1"),
        ("COMPLETED", Fate.LOST, "without its completion marker"),
        ("FAILED", Fate.LOST, "without its completion marker"),
        ("NODE_FAIL", Fate.LOST, "node failed (n1)"),
        ("TIMEOUT", Fate.LOST, "time limit"),
        ("CANCELLED by 0", Fate.LOST, "cancelled"),
        ("PREEMPTED", Fate.LOST, "preempted"),
        ("OUT_OF_MEMORY", Fate.LOST, "out of memory"),
        ("A_STATE_OF_TOMORROW", Fate.LOST, "A_STATE_OF_TOMORROW"),
    ],
)
def test_a_state_without_a_marker(state, fate, says):
    verdict = judge(Seen("7", "j", state, "n1", "Resources"), None)
    assert verdict.fate is fate and says in verdict.why
    assert verdict.settled == (fate is not Fate.LOST), "files may show late: an end without a marker is not final"


@pytest.mark.parametrize("state", ["COMPLETED", "RUNNING", "NODE_FAIL", "FAILED"])
def test_the_marker_alone_proves_an_end(state):
    assert judge(Seen("7", "j", state, "n2"), MARKER).fate is Fate.DONE
    assert judge(None, MARKER).fate is Fate.DONE


def test_an_end_at_the_notice_is_the_time_limits():
    assert "time limit" in judge(Seen("7", "j", "FAILED", "n1"), None, noticed=True).why
    assert "time limit" not in judge(Seen("7", "j", "FAILED", "n1"), None).why
    assert "node failed" in judge(Seen("7", "j", "NODE_FAIL", "n1"), None, noticed=True).why


def test_a_job_that_nobody_knows():
    forgotten, never = judge(None, None), judge(None, None, submitted=False)
    assert (forgotten.fate, forgotten.settled) == (Fate.LOST, False)
    assert (never.fate, never.settled) == (Fate.LOST, True) and "never submitted" in never.why


def test_the_queue_is_read_and_the_newest_job_of_a_name_counts():
    text = "12|a|PENDING||Resources\n9|a|NODE_FAIL|n1|None\nslurm_load_jobs error: x\n13|b|RUNNING|n3|None\n\n"
    found = parse_queue(text)
    assert {name: (seen.id, seen.state, seen.node) for name, seen in found.items()} == {
        "a": ("12", "PENDING", ""), "b": ("13", "RUNNING", "n3")}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"job": "1"}', "null"])
def test_half_a_marker_is_none(text):
    assert parse_marker(text) is None


def test_a_submission_asks_for_what_the_profile_says():
    made = runner(slurm={"partition": "mi355x", "account": "perf", "gres": "gpu:mi355x:{gpus}", "cpus": 16,
                         "memory": "0", "requeue": False, "options": ["--constraint=x"]})
    words = submission(made, Path("/s/j"), "name", gpus=4)
    assert words[0] == "sbatch" and words[-1] == "/s/j/job.sh"
    for word in ("--partition=mi355x", "--account=perf", "--gres=gpu:mi355x:4", "--cpus-per-task=16", "--mem=0",
                 "--no-requeue", "--exclusive", "--nodes=1", "--time=30", "--signal=B:USR1@100", "--constraint=x"):
        assert word in words
    shared = submission(runner(exclusive=False, slurm={"gres": None}), Path("/s/j"), "name", gpus=4)
    assert "--exclusive" not in shared and not [word for word in shared if word.startswith("--gres")]
    assert "--requeue" in shared


def test_the_notice_leaves_a_short_job_half_of_its_time():
    assert notice_s(runner()) == 100
    assert notice_s(runner(slurm={"time-limit-min": 1})) == 30


def test_the_script_quotes_what_it_is_given():
    text = script(Path("/a b"), Path("/c d"), "/e f/python", ["sweep", "--plan", "/g h"])
    assert "cd '/a b' ||" in text and "folder='/c d'" in text and "'/e f/python' -m infx.cli" in text
    assert "run sweep --plan '/g h' --out" in text


def test_a_block_becomes_a_file_name():
    assert folder_name("no-mono/tp1 x", "1a") == "no-mono_tp1_x.1a"


def test_where_a_command_runs():
    batch = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n3", "SLURM_RESTART_COUNT": "2"}
    assert on_node(batch) and not in_allocation(batch) and node_name(batch) == "n3" and job_label(batch) == "7.2"
    login = {"SLURM_JOB_ID": "7"}
    assert in_allocation(login) and not on_node(login) and job_label(login) == ""
    assert not on_node({}) and not in_allocation({})


@pytest.mark.parametrize(("words", "found"), [("0-2,5", [0, 1, 2, 5]), ("3", [3]), ("", []), ("gpu:1", []), ("1-", [])])
def test_indices(words, found):
    assert expand(words) == found


def test_the_accelerators_of_a_job():
    job = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n3", "SLURM_JOB_GPUS": "4-7", "ROCR_VISIBLE_DEVICES": "0,1,2,3"}
    mine = given(job, 2, "ROCR_VISIBLE_DEVICES")
    assert (mine.named(by_daemon=True), mine.named(by_daemon=False)) == ([4, 5], [0, 1]), "a confined job counts from 0"
    assert given({**job, "SLURM_STEP_GPUS": "6"}, 1, None).indices == [6]
    with pytest.raises(RunnerError, match="5 accelerators are needed, job 7 has 4"):
        given(job, 5, None)
    with pytest.raises(RunnerError, match="inside a job"):
        given({}, 1, None)


@pytest.mark.parametrize("wrong", [{"slurm": None}, {"place": "here"}, {"launch": "endpoint", "executable": None,
                                                                       "url": "http://h:1"}])
def test_a_profile_that_contradicts_itself(wrong):
    facts = runner().model_dump(by_alias=True) | wrong
    with pytest.raises(ValueError, match="slurm|an endpoint runs already"):
        Runner.model_validate(facts)


@pytest.mark.parametrize(("repository", "found"), [
    ("vllm/vllm-openai-rocm", ("registry-1.docker.io", "vllm/vllm-openai-rocm")),
    ("busybox", ("registry-1.docker.io", "library/busybox")),
    ("registry.example:5000/a/b", ("registry.example:5000", "a/b")),
    ("localhost/a", ("localhost", "a")),
])  # fmt: skip
def test_the_registry_of_a_reference(repository, found):
    from infx.run.launch.registry import split_registry

    assert split_registry(repository) == found
