"""``infx ci head``, ``fetch`` and ``record``: what workflows ask the code host for, and what they give it at merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.changelog.driver import Repository
    from infx.ci.github import Client
    from infx.ci.reuse import Refusal
    from infx.cli.ci_branch import Branch
    from infx.results.load import LoadedRun
    from infx.schema.changelog import Results
    from infx.schema.plan import Plan

Pull = Annotated[int, typer.Option("--pull", metavar="NUMBER", min=1, help="The pull request.")]
Repo = Annotated[str | None, typer.Option("--repository", metavar="OWNER/NAME", show_default=False,
                                          help="This repository; default: GITHUB_REPOSITORY, else the remote origin.")]
OutDir = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for its artefacts.")]


@dataclass
class Fetched:
    """Run folders of a workflow run, verified; or why there are none."""

    run: int | None = None
    runs: list[LoadedRun] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fetch_of_pull(client: Client, number: int, out: Path) -> Fetched:
    """The run folders of the sweep that comments of a pull request name, else of its newest one that measured."""
    from infx.ci.commands import asked_reuse, read_comment
    from infx.ci.remote import permission, pull_of, sweep_of

    comments = [read_comment(item) for item in client.pages(f"issues/{number}/comments")]
    asked, unheard = asked_reuse(comments, permission(client))
    notes = [f"not counted: {item}" for item in unheard]
    run, refusals = sweep_of(client, pull_of(client, number), asked)
    if run is None or refusals:
        return Fetched(refusals=list(refusals), notes=notes)
    said = f", named by {asked.comment.author}" if asked and asked.run else ", the newest"
    found = fetch_run(client, run, out)
    found.notes = [f"run {run['id']} of commit {run['head_sha'][:12]}{said}", *notes]
    return found


def fetch_run(client: Client, run: Mapping[str, Any], out: Path) -> Fetched:
    """The run folders of a workflow run, each artefact verified by its hash before it is unpacked below ``out``."""
    from infx.ci.remote import run_artefacts
    from infx.ci.reuse import Refusal
    from infx.cli.ci_inputs import runs, unpack
    from infx.errors import InputError, UsageError

    found = Fetched(int(run["id"]))
    artefacts, found.refusals = run_artefacts(client, run)
    for artefact in artefacts:
        try:
            unpack(client.download(artefact), out / artefact.name, artefact.name)
        except InputError as error:
            found.refusals.append(Refusal("artefact-altered", error.where, error.message))
    if not found.refusals:
        try:
            found.runs = runs([str(out / artefact.name) for artefact in artefacts], out)
        except UsageError:
            found.runs = []
        if not found.runs:
            found.refusals = [Refusal("artefact-missing", f"run {run['id']}", "it left no run folder")]
    return found


def head(pull: Pull, repository: Repo = None) -> None:
    """Print the head commit of a pull request as the code host says now."""
    from infx.ci.remote import pull_of
    from infx.cli.ci_inputs import client_for

    typer.echo(pull_of(client_for(repository), pull).head)


def fetch(workflow_run: Annotated[int, typer.Option("--workflow-run", metavar="NUMBER", min=1,
                                                    help="Any workflow run that kept run folders.")],
          out: OutDir = Path("runs/fetched"), repository: Repo = None) -> None:
    """Fetch the run folders of any workflow run, verified; whether they may be reused is not asked."""
    from infx.cli.ci_inputs import client_for
    from infx.errors import RefusedError

    client = client_for(repository)
    found = fetch_run(client, client.get(f"actions/runs/{workflow_run}"), out)
    for loaded in found.runs:
        typer.echo(str(loaded.path))
    if found.refusals:
        raise RefusedError("the run folders are not complete\n" + "\n".join(f"  {item}" for item in found.refusals))


def record(before: Annotated[str, typer.Option("--before", metavar="SHA", help="The trunk before the merge.")],
           head: Annotated[str, typer.Option("--head", metavar="SHA", help="The trunk after it.")],
           branch: Annotated[str, typer.Option("--branch", help="The trunk's name.")] = "main",
           out: OutDir = Path("runs/reused"), repository: Repo = None, as_json: AsJson = False) -> None:
    """At merge: record the results of the merged pull request's sweep on the trunk. Exit code 13 when it may not."""
    import json

    from infx.changelog.driver import Repository
    from infx.ci.remote import merged_as
    from infx.cli.ci_branch import branch_of, wanted_points
    from infx.cli.ci_inputs import client_for

    clone, client = Repository(Path.cwd()), client_for(repository)
    merged = branch_of(clone, before, clone.commit(head))
    wanted = wanted_points(merged)
    number = merged_as(client, merged.head) if wanted else None
    if not wanted or number is None:
        why = "no new entry asks for a measurement" if not wanted else f"{head[:12]} came without a pull request"
        typer.echo(json.dumps({"recorded": [], "why": why}) if as_json else f"nothing to record: {why}")
        return
    clone.git("fetch", "--quiet", "--no-tags", "origin", f"refs/pull/{number}/head")
    _record(clone, client, number, merged, wanted, branch, out, as_json)


def _evals(client: Client, number: int, merged: Branch) -> list[str]:
    """Evals that the pull request's labels or entries ask for by name."""
    from infx.ci.evals import explicit_evals
    from infx.ci.remote import pull_of
    from infx.cli.ci_branch import fresh_changes

    labelled = bool({"all-evals", "evals-only"} & {*pull_of(client, number).labels})
    return explicit_evals(labelled, fresh_changes(merged), merged.recipes)


def _record(clone: Repository, client: Client, number: int, merged: Branch, wanted: Sequence[Plan], branch: str,
            out: Path, as_json: bool) -> None:
    """Fetch, judge, tell the pull request, and put the entries on the trunk in one commit."""
    import json

    from infx.ci.proposal import proposed
    from infx.ci.reuse import Reuse, judge
    from infx.cli.ci_inputs import harness
    from infx.cli.ci_reuse import MARKER, enforce, markdown

    got = fetch_of_pull(client, number, out)
    found = Reuse((), tuple(got.refusals)) if got.refusals else judge(
        wanted, got.runs, harness=harness(clone, merged.head), evals=_evals(client, number, merged))
    if not found.qualifies:
        client.upsert_comment(number, MARKER, markdown(found, got.notes))
        enforce(found)
    entries = proposed(wanted, got.runs, found, f"sweep-{got.run}")
    grew = _put(client, clone.path, branch, entries, out, f"Record the results of #{number} (run {got.run})")
    names = [entry.run for entry in entries]
    said = f"recorded on {branch}: {', '.join(names)}" if grew else "recorded already"
    client.upsert_comment(number, MARKER, f"**{said}** (run {got.run}).\n")
    typer.echo(json.dumps({"recorded": names if grew else [], "why": said}) if as_json else said)


def _put(client: Client, path: str, branch: str, entries: Sequence[Results], out: Path, message: str) -> bool:
    """Append entries to the trunk's file as it is now, once more where somebody was quicker; False: it has them."""
    from infx.changelog.append import append_results
    from infx.errors import RemoteError
    from infx.results.store import write_whole

    for last in (False, False, True):
        text, sha = client.file(path, branch)
        target = out / Path(path).name
        write_whole(target, text)
        for entry in entries:
            append_results(target, entry)
        if (after := target.read_bytes()) == text:
            return False
        try:
            client.put_file(path, after, message, branch, sha)
            return True
        except RemoteError as error:
            if last or not error.message.startswith("409"):
                raise
    return False
