"""``infx ci reuse`` and ``infx ci results``: whether a sweep may stand for a plan, and the entries that it proposes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.ci.github import Client
    from infx.ci.reuse import Reuse
    from infx.results.load import LoadedRun
    from infx.schema.plan import Plan

RunWords = Annotated[list[str] | None, typer.Option("--run", metavar="RUN", show_default=False,
                                                    help="Run folder, id, or a folder of run folders; repeatable.")]
PlanFiles = Annotated[list[Path] | None, typer.Option("--plan", metavar="FILE|DIR", show_default=False,
                                                      help="Plan that they are to stand for; repeatable.")]
Digests = Annotated[list[str] | None, typer.Option("--digest", metavar="IMAGE=sha256:…", show_default=False,
                                                   help="What an image must have run as; repeatable.")]
Pulls = Annotated[int | None, typer.Option("--pull", metavar="NUMBER", min=1, show_default=False,
                                           help="Take the run that comments of this pull request name, else its newest "
                                                "sweep.")]
Repo = Annotated[str | None, typer.Option("--repository", metavar="OWNER/NAME", show_default=False,
                                          help="This repository; default: GITHUB_REPOSITORY, else the remote origin.")]
Head = Annotated[str, typer.Option("--head", metavar="REF", help="The commit whose harness counts.")]
RunsOut = Annotated[Path, typer.Option("--out", metavar="DIR", help="With --pull: folder for its artefacts.")]
Post = Annotated[bool, typer.Option("--post", help="With --pull: answer in a comment.")]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of run folders.")]
MARKER = "<!-- infx:reuse -->"


def reuse(run: RunWords = None, plan: PlanFiles = None, digest: Digests = None, pull: Pulls = None,
          repository: Repo = None, head: Head = "HEAD", out: RunsOut = Path("runs/reused"), post: Post = False,
          as_json: AsJson = False, runs: Runs = Path("runs")) -> None:
    """Say whether runs may stand for a plan, with every reason against it. Exit code 13 when they may not."""
    from infx.cli import ci_inputs
    from infx.errors import UsageError

    if bool(run) == (pull is not None):
        raise UsageError("give either --run or --pull", hint="infx ci reuse --run RUN --plan plan.json")
    wanted = ci_inputs.plans(plan or [])
    if pull is None:
        found = judged(wanted, ci_inputs.runs(run or [], runs), head, digest or [])
    else:
        client = ci_inputs.client_for(repository)
        found = _of_pull(client, pull, wanted, out, head, digest or [])
        if post:
            client.upsert_comment(pull, MARKER, markdown(found))
    typer.echo(json.dumps(_data(found), indent=1) if as_json else "\n".join(_text(found)))
    enforce(found)


def results(run: RunWords = None, plan: PlanFiles = None, digest: Digests = None, head: Head = "HEAD",
            name: Annotated[str, typer.Option("--name", show_default=False,
                                              help="What to call the run in the entries, e.g. sweep-1234.")] = "",
            out: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", show_default=False,
                                                     help="Write the entries here; default: print.")] = None,
            append: Annotated[bool, typer.Option("--append", help="Add them to the changelog instead.")] = False,
            runs: Runs = Path("runs")) -> None:
    """Propose the results entries of a sweep that may stand for its plan: one a recipe."""
    from infx.changelog.append import append_results
    from infx.changelog.render import render
    from infx.ci.proposal import proposed
    from infx.cli import ci_inputs
    from infx.results.store import write_whole

    wanted, loaded = ci_inputs.plans(plan or []), ci_inputs.runs(run or [], runs)
    found = judged(wanted, loaded, head, digest or [])
    enforce(found)
    entries = proposed(wanted, loaded, found, name)
    if append:
        target = _changelog()
        for entry in entries:
            added = append_results(target, entry)
            typer.echo(f"{target.name}: {', '.join(added) if added else 'records this already; unchanged'}")
        return
    text = b"\n\n".join(render(entry) for entry in entries) + b"\n"
    if out is None:
        typer.echo(text.decode(), nl=False)
    else:
        write_whole(out, text)
        typer.echo(str(out))


def judged(wanted: list[Plan], loaded: list[LoadedRun], head: str, digests: list[str]) -> Reuse:
    """The judgement of run folders on the disk, by the harness of ``head`` in the clone here."""
    from infx.ci.reuse import judge
    from infx.cli.ci_inputs import clone_here, harness

    return judge(wanted, loaded, harness=harness(clone_here(), head), digests=read_digests(digests))


def read_digests(words: list[str]) -> dict[str, str]:
    """IMAGE=sha256:… words as a mapping. UsageError for another form."""
    from infx.errors import UsageError

    made = {}
    for word in words:
        image, _, digest = word.rpartition("=")
        if not image or not digest.startswith("sha256:"):
            raise UsageError(f"--digest {word!r}", allowed="IMAGE=sha256:…")
        made[image] = digest
    return made


def _of_pull(client: Client, number: int, wanted: list[Plan], out: Path, head: str, digests: list[str]) -> Reuse:
    """Find the run that is meant, fetch and verify its artefacts, and judge its run folders."""
    from dataclasses import replace

    from infx.ci.reuse import Reuse
    from infx.cli.ci_fetch import fetch_of_pull

    got = fetch_of_pull(client, number, out)
    found = Reuse((), tuple(got.refusals)) if got.refusals else judged(wanted, got.runs, head, digests)
    return replace(found, notes=(*got.notes, *found.notes))


def enforce(found: Reuse) -> None:
    """Raises RefusedError where it does not qualify."""
    from infx.errors import RefusedError

    if not found.qualifies:
        raise RefusedError(f"{len(found.refusals)} reasons against reuse",
                           hint="docs/ci.md says for each code how to clear it")


def _text(found: Reuse) -> list[str]:
    from infx.ci.reuse import CLEARED

    lines = [f"covered  {len(found.covered)} points" if found.qualifies else "refused"]
    lines += [f"  {item.point}  {item.run} start {item.start}  {item.digest or ''}".rstrip() for item in found.covered
              if found.qualifies]
    for item in found.refusals:
        lines.append(f"  {item}")
        lines += [f"    do: {CLEARED[item.code]}"] if item.code in CLEARED else []
    return [*lines, *(f"note     {note}" for note in found.notes)]


def markdown(found: Reuse, notes: Sequence[str] = ()) -> str:
    """The judgement as a comment."""
    head = (f"**Reuse: yes.** {len(found.covered)} points stand for this change; at merge they are checked again."
            if found.qualifies else f"**Reuse: no.** {len(found.refusals)} reasons:")
    lines = [f"- `{item.code}` {item.where}: {item.message}" for item in found.refusals]
    return "\n".join([head, "", *lines, "", *(f"> {note}" for note in [*notes, *found.notes])]).rstrip() + "\n"


def _data(found: Reuse) -> dict[str, object]:
    from dataclasses import asdict

    return {"qualifies": found.qualifies, "covered": [asdict(item) for item in found.covered],
            "refusals": [asdict(item) for item in found.refusals], "notes": list(found.notes)}


def _changelog() -> Path:
    from infx.cli.ci_inputs import clone_here

    clone = clone_here()
    return clone.file if clone is not None else Path("perf-changelog.yaml")
