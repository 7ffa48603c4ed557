"""Who may ask for reuse, by which words, and which workflow runs can be meant."""

from __future__ import annotations

import pytest

from infx.ci.commands import SWEEP, against_run, asked_reuse, own_lines, read_comment
from infx.errors import InputError

HEAD = "a" * 40


def said(body, author="maintainer", association="MEMBER", *, edited=False, kind="User", number=1):
    return read_comment({"id": number, "body": body, "user": {"login": author, "type": kind},
                         "author_association": association, "created_at": "2026-12-01T10:00:00Z",
                         "updated_at": "2026-12-01T11:00:00Z" if edited else "2026-12-01T10:00:00Z",
                         "html_url": "https://example.org"})


def ask(*comments, permission="write"):
    return asked_reuse(comments, lambda user: permission)


@pytest.mark.parametrize(("body", "run"), [
    ("/reuse-sweep-run", None), ("/reuse-sweep-run 501", 501), ("/use 501", 501),
    ("Looks good.\r\n\r\n  /use 501  \r\n", 501)])
def test_the_commands(body, run):
    asked, refused = ask(said(body))
    assert asked is not None and asked.run == run and refused == []


@pytest.mark.parametrize("body", [
    "> /use 501", "```\n/use 501\n```", "~~~~\n```\n/use 501\n~~~~", "<!-- /use 501 -->", "<!--\n/use 501\n",
    "please /use 501", "/used 501", "/reuse-sweep-runs", ""])
def test_what_is_no_command(body):
    assert ask(said(body)) == (None, [])


def test_a_closed_fence_ends():
    assert own_lines("```\nin\n```\nout") == ["out"]
    assert own_lines("a <!-- b\nc --> d") == ["a  d"]


@pytest.mark.parametrize(("comment", "why"), [
    (said("/use 501", association="CONTRIBUTOR"), "an outsider (CONTRIBUTOR)"),
    (said("/use 501", association="NONE"), "an outsider (NONE)"),
    (said("/use 501", edited=True), "edited"), (said("/use 501", kind="Bot"), "a bot"),
    (said("/use"), "needs the number"), (said("/use latest"), "'latest' is no number"),
    (said("/use -1"), "no number"), (said("/use 501 502"), "no number"), (said("/use 501\n/use 502"), "several"),
])
def test_who_and_what_is_refused_and_why(comment, why):
    asked, [refusal] = ask(comment)
    assert asked is None and why in refusal.message and refusal.where == f"comment 1 by {comment.author}"


def test_a_member_without_write_access_is_refused_and_outsiders_are_not_looked_up():
    asked, [refusal] = ask(said("/use 501"), permission="read")
    assert asked is None and "may not write here (read)" in refusal.message
    asked_for = []
    asked_reuse([said("/use 501", "stranger", "NONE")], lambda user: asked_for.append(user) or "admin")
    assert asked_for == []


def test_the_newest_valid_command_counts():
    asked, refused = ask(said("/use 501", number=1), said("/use 502", number=2),
                         said("/use 503", "stranger", "NONE", number=3), said("thanks", number=4))
    assert asked is not None and asked.run == 502 and [item.where for item in refused] == ["comment 3 by stranger"]


def test_a_payload_that_is_none_is_named():
    with pytest.raises(InputError, match="not a comment as the code host sends it: KeyError"):
        read_comment({"id": 1, "user": {"login": "x"}})
    assert read_comment({"id": 1, "user": None, "body": None, "author_association": "NONE", "created_at": "1",
                         "updated_at": "1", "html_url": ""}).author == "ghost"


RUN = {"id": 501, "path": SWEEP, "event": "pull_request", "head_repository": {"full_name": "org/name"},
       "head_sha": HEAD, "status": "completed", "conclusion": "success"}
GOOD = {"name": "x base-tp2 / measure", "conclusion": "success"}
SKIPPED = {"name": "sweep", "conclusion": "skipped"}
BAD = {"name": "x base-tp4 / measure", "conclusion": "failure"}


def against(jobs=(GOOD,), pinned=False, commits=(HEAD,), **changes):
    return [item.code for item in against_run({**RUN, **changes}, jobs, commits, "org/name", pinned=pinned)]


def test_a_green_sweep_of_this_pull_request_that_measured():
    assert against() == [] and against(jobs=[GOOD, SKIPPED]) == []
    assert against(path=f"{SWEEP}@refs/pull/7/merge") == []


@pytest.mark.parametrize(("changes", "code"), [
    ({"path": ".github/workflows/validate.yml"}, "other-workflow"), ({"event": "push"}, "other-event"),
    ({"head_repository": {"full_name": "stranger/name"}}, "other-repository"),
    ({"head_repository": None}, "other-repository"), ({"commits": ["b" * 40]}, "other-commit"),
    ({"status": "in_progress", "conclusion": None, "pinned": True}, "not-finished"),
    ({"conclusion": "failure"}, "not-green"), ({"conclusion": "cancelled"}, "not-green"),
])
def test_what_speaks_against_a_run(changes, code):
    assert against(**changes) == [code]


def test_a_green_run_of_skipped_jobs_is_none():
    assert against(jobs=[SKIPPED, SKIPPED]) == ["nothing-measured"]
    assert against(jobs=[{**GOOD, "conclusion": "skipped"}], pinned=True) == ["nothing-measured"]
    assert against(jobs=[]) == ["nothing-measured"]


def test_a_pinned_run_may_have_failed_and_is_judged_by_its_points():
    assert against(jobs=[GOOD, BAD], conclusion="failure", pinned=True) == []
    assert against(jobs=[GOOD, BAD], conclusion="failure") == ["not-green", "not-green"]
