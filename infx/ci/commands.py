"""Owns what comments ask of CI: `/reuse-sweep-run [RUN]`, `/use RUN`; who may say it; which run is meant. Pure.

Comments and runs are read from the code host's own payloads. Edited comments never count: the host does not say who
edited them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.ci.reuse import Refusal
from infx.errors import InputError

INSIDERS = ("OWNER", "MEMBER", "COLLABORATOR")
"""Associations whose holders may be asked further; everybody else is an outsider."""

WRITERS = ("admin", "maintain", "write")
"""Permissions that may ask for reuse."""

SWEEP = ".github/workflows/sweep.yml"
MEASURE = "/ measure"
"""End of the names of jobs that measure."""

_COMMAND = re.compile(r"\s*(/reuse-sweep-run|/use)\b(.*)")


@dataclass(frozen=True)
class Comment:
    """One comment of a pull request."""

    id: int
    author: str
    association: str
    body: str
    edited: bool
    bot: bool
    url: str


@dataclass(frozen=True)
class Asked:
    """The command that counts: ``run`` is None where the newest qualifying one is meant."""

    run: int | None
    comment: Comment


def read_comment(item: Mapping[str, Any]) -> Comment:
    """A comment out of the host's payload. Raises InputError naming a field that is not there."""
    try:
        user = item["user"] or {"login": "ghost", "type": "User"}
        return Comment(int(item["id"]), str(user["login"]), str(item["author_association"]), str(item["body"] or ""),
                       item["created_at"] != item["updated_at"], user.get("type") == "Bot", str(item["html_url"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a comment as the code host sends it: {error!r}",
                         hint="give the whole payload of an issue_comment event") from error


def own_lines(body: str) -> list[str]:
    """The lines that a comment says itself: neither quoted nor in a fence nor in an HTML comment."""
    text = re.sub(r"<!--.*?(?:-->|\Z)", "", body.replace("\r", ""), flags=re.DOTALL)
    lines, fence = [], ""
    for line in text.split("\n"):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and not line.lstrip().startswith(">"):
            lines.append(line)
    return lines


def asked_reuse(comments: Iterable[Comment], may: Callable[[str], str]) -> tuple[Asked | None, list[Refusal]]:
    """The newest command by somebody who may say it, and why newer ones do not count.

    ``comments`` are oldest first. ``may`` gives a user's permission on the repository; it is asked of insiders only.
    """
    refused: list[Refusal] = []
    for comment in reversed(list(comments)):
        found = [match for line in own_lines(comment.body) if (match := _COMMAND.fullmatch(line))]
        if not found:
            continue
        asked, why = _read(found, comment, may)
        if asked is not None:
            return asked, refused
        refused.append(Refusal("not-accepted", f"comment {comment.id} by {comment.author}", why))
    return None, refused


def _read(found: Sequence[re.Match[str]], comment: Comment, may: Callable[[str], str]) -> tuple[Asked | None, str]:
    if len(found) > 1:
        return None, "it has several commands"
    word, argument = found[0][1], found[0][2].strip()
    if comment.bot:
        return None, "a bot may not ask for reuse"
    if comment.association not in INSIDERS:
        return None, f"its author is an outsider ({comment.association}): only {', '.join(INSIDERS)} with write access"
    if comment.edited:
        return None, "it was edited, and nobody can tell by whom: post a new one"
    if argument and not re.fullmatch(r"[1-9]\d{0,18}", argument):
        return None, f"{argument!r:.60} is no number of a workflow run"
    if word == "/use" and not argument:
        return None, "`/use` needs the number of a workflow run"
    permission = may(comment.author)
    if permission not in WRITERS:
        return None, f"its author may not write here ({permission})"
    return Asked(int(argument) if argument else None, comment), ""


def against_run(run: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], commits: Collection[str], repository: str, *,
                pinned: bool) -> list[Refusal]:
    """What speaks against a workflow run before its artefacts are looked at.

    It must be a finished sweep of a pull request's commit in this repository, with jobs that measured. Only a run
    that a command pins may have a conclusion other than success: its points are judged one by one.
    """
    where = f"run {run.get('id')}"
    facts = [
        ("other-workflow", str(run.get("path", "")).partition("@")[0] == SWEEP,
         f"it is of {run.get('path')}, not of {SWEEP}"),
        ("other-event", run.get("event") == "pull_request", f"it was started by {run.get('event')}"),
        ("other-repository", (run.get("head_repository") or {}).get("full_name") == repository,
         "its code is of another repository"),
        ("other-commit", run.get("head_sha") in commits,
         f"its commit {str(run.get('head_sha'))[:12]} is not in this pull request (a force-push drops commits)"),
        ("not-finished", run.get("status") == "completed", f"it is {run.get('status')}"),
        ("not-green", pinned or run.get("conclusion") == "success", f"it ended as {run.get('conclusion')}"),
    ]
    found = [Refusal(code, where, message) for code, holds, message in facts if not holds]
    measured = [job for job in jobs if str(job.get("name", "")).endswith(MEASURE)]
    good = [job for job in measured if job.get("conclusion") == "success"]
    if not good:
        skipped = sum(job.get("conclusion") == "skipped" for job in jobs)
        found.append(Refusal("nothing-measured", where, f"no job measured anything ({skipped} of {len(jobs)} jobs were "
                                                        "skipped); a green run of skipped jobs is none"))
    elif not pinned and len(good) < len(measured):
        bad = ", ".join(f"{job.get('name')} {job.get('conclusion')}" for job in measured if job not in good)
        found.append(Refusal("not-green", where, f"jobs did not succeed: {bad}"))
    return found
