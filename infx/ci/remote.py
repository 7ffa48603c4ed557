"""Owns the questions that CI asks the code host about a pull request, and the answers as plain facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.ci.commands import SWEEP, Asked, against_run
from infx.ci.github import Artefact, Client
from infx.ci.reuse import Refusal
from infx.errors import RemoteError

RUN_ARTEFACT = "run-"
"""Begin of the names of artefacts that hold run folders."""


@dataclass(frozen=True)
class Pull:
    """A pull request as it is now: ``commits`` oldest first, ``files`` what it changes (old names of renames too)."""

    number: int
    repository: str
    head: str
    base: str
    author: str
    from_fork: bool
    labels: tuple[str, ...]
    commits: tuple[str, ...]
    files: tuple[str, ...]


def pull_of(client: Client, number: int) -> Pull:
    """The pull request with this number. Raises RemoteError where the host has none or says something else."""
    item = client.get(f"pulls/{number}")
    try:
        repository = item["base"]["repo"]["full_name"]
        return Pull(
            int(item["number"]), repository, item["head"]["sha"], item["base"]["ref"],
            (item.get("user") or {}).get("login", "ghost"),
            (item["head"].get("repo") or {}).get("full_name") != repository,
            tuple(label["name"] for label in item["labels"]),
            tuple(commit["sha"] for commit in client.pages(f"pulls/{number}/commits")),
            tuple(name for file in client.pages(f"pulls/{number}/files")
                  for name in (file["filename"], file.get("previous_filename")) if name))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RemoteError(f"not a pull request as the code host sends it: {error!r}",
                          where=f"pulls/{number}") from error


def merged_as(client: Client, commit: str) -> int | None:
    """The merged pull request that made a commit of the trunk; None for one that came without."""
    found = [item for item in client.pages(f"commits/{commit}/pulls")
             if item.get("merged_at") and item.get("merge_commit_sha") == commit]
    return int(found[0]["number"]) if found else None


def permission(client: Client) -> Callable[[str], str]:
    """Asks for a user's permission on the repository; ``none`` for somebody whom it does not know."""

    def ask(user: str) -> str:
        try:
            return str(client.get(f"collaborators/{user}/permission").get("permission", "none"))
        except RemoteError as error:
            if error.message.startswith("404"):
                return "none"
            raise

    return ask


def team_members(client: Client) -> Callable[[str, str], bool]:
    """Tells whether a user (second) is an active member of the team ``org/name`` (first)."""

    def ask(team: str, user: str) -> bool:
        org, _, name = team.partition("/")
        try:
            return client.get(f"/orgs/{org}/teams/{name}/memberships/{user}").get("state") == "active"
        except RemoteError as error:
            if error.message.startswith("404"):
                return False
            raise

    return ask


def sweep_of(client: Client, pull: Pull, asked: Asked | None) -> tuple[Mapping[str, Any] | None, list[Refusal]]:
    """The workflow run that is meant, and what speaks against it, or against every one where none can be meant.

    Without a pinned run it is the newest sweep of the pull request's commits that measured.
    """
    if asked is not None and asked.run is not None:
        try:
            run = client.get(f"actions/runs/{asked.run}")
        except RemoteError as error:
            return None, [Refusal("no-run", f"run {asked.run}", error.message)]
        return run, against_run(run, _jobs(client, run), pull.commits, pull.repository, pinned=True)
    found = {run["id"]: run for commit in reversed(pull.commits)
             for run in client.pages("actions/runs", "workflow_runs", head_sha=commit, event="pull_request")
             if str(run.get("path", "")).partition("@")[0] == SWEEP}
    refused: list[Refusal] = []
    for _, run in sorted(found.items(), reverse=True):
        against = against_run(run, _jobs(client, run), pull.commits, pull.repository, pinned=False)
        if not against:
            return run, []
        refused += against
    return None, refused or [Refusal("no-run", f"pull request {pull.number}", "no sweep of its commits is known")]


def run_artefacts(client: Client, run: Mapping[str, Any]) -> tuple[list[Artefact], list[Refusal]]:
    """The artefacts that hold run folders; a refusal where jobs measured and left none."""
    good = sum(str(job.get("name", "")).endswith("/ measure") and job.get("conclusion") == "success"
               for job in _jobs(client, run))
    found = [item for item in client.artefacts(int(run["id"])) if item.name.startswith(RUN_ARTEFACT)]
    missing = good - len(found)
    return found, [Refusal("artefact-missing", f"run {run['id']}", f"{good} jobs measured, {len(found)} left their run "
                                                                   "folders")] if missing > 0 else []


def _jobs(client: Client, run: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return list(client.pages(f"actions/runs/{run['id']}/jobs", "jobs", filter="latest"))
