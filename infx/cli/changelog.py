"""``infx changelog``: append to the changelog, check it against the trunk, merge, mend and show it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.changelog.driver import Repository
    from infx.findings import Finding

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
                  help="The append-only changelog: append, check, merge, mend, show.")

File = Annotated[Path | None, typer.Option("--file", metavar="PATH", show_default=False,
                                           help="The changelog; default: perf-changelog.yaml at the top.")]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of run folders.")]
NAME = "perf-changelog.yaml"


@app.command()
def append(
    run: Annotated[str, typer.Argument(help="Run folder, run id, a part of one, or `latest`.")],
    file: File = None,
    runs: Runs = Path("runs"),
) -> None:
    """Add a run's results: to the changelog when they may be published, else to the run folder's changelog.yaml."""
    from infx.changelog.append import append_results
    from infx.changelog.entries import publishable, results_entry
    from infx.changelog.record import summary
    from infx.results.index import find_run
    from infx.results.load import load_run

    loaded = load_run(find_run(run, runs))
    entry = results_entry(summary(loaded))
    if file is None and not publishable(entry):
        target, trunk = loaded.paths.changelog, False
        said = ", ".join(entry.provenance)
        typer.echo(f"{entry.run} is {said}: not for {NAME}, recorded in its own folder", err=True)
    else:
        target, trunk = file or _changelog(), True
    added = append_results(target, entry, trunk=trunk)
    typer.echo(f"{target}: {', '.join(added) if added else 'records this run already; unchanged'}")


@app.command()
def check(
    base: Annotated[str | None, typer.Option("--base", metavar="REF", show_default=False,
                                             help="The trunk that this branch builds on.")] = None,
    at: Annotated[str, typer.Option("--at", metavar="pr|merge", help="At merge placeholder links are refused.")] = "pr",
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Check the changelog against the trunk. Exit code 8 when there is a finding."""
    from infx.changelog import gate
    from infx.errors import UsageError

    if at not in ("pr", "merge"):
        raise UsageError(f"--at {at}: unknown moment", allowed="pr, merge")
    target = file or _changelog()
    head = _read(target)
    if base is None:
        found, against = gate.check(head, path=_shown(target), at=at), "no base"
    else:
        found, against = _check_against(target, head, base, at)
    if as_json:
        typer.echo(json.dumps([item.as_dict() for item in found], indent=1))
    else:
        for item in found:
            typer.echo(str(item))
        typer.echo(f"{_shown(target)}: {len(found)} findings ({against}, at {at})", err=True)
    if found:
        raise typer.Exit(8)


def _check_against(target: Path, head: bytes, ref: str, at: str) -> tuple[list[Finding], str]:
    from infx.changelog import gate
    from infx.changelog.trees import recipes_of
    from infx.sources.tree import GitTree, WorkingTree

    repository = _repository(target)
    fork, base = repository.base(ref, "HEAD", head)
    tree = WorkingTree(repository.top)
    before = GitTree(repository.top, fork) if fork else None
    recipes = recipes_of(before, tree) if tree.glob("recipes/**/*.yaml") else None
    found = [replace(item, hint=item.hint.replace("--onto REF", f"--onto {ref}"))
             for item in gate.check(head, base, path=repository.path, at=at, recipes=recipes)]
    return found, f"base {fork[:12] or 'none'} of {ref}"


@app.command()
def show(
    key: Annotated[str | None, typer.Option("--key", metavar="GLOB", show_default=False,
                                            help="Only entries about these recipes.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Retracted entries too.")] = False,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, show_default=False,
                                             help="Only the last N.")] = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Show entries in order, with their ids; what is retracted is hidden, its retraction says why."""
    from infx.changelog import views
    from infx.changelog.entries import ledger

    target = file or _changelog()
    records = ledger(_read(target), _shown(target))
    chosen = views.about(records, key) if key else records
    chosen = [record for record in chosen if everything or not record.retracted][-(last or 0):]
    if as_json:
        typer.echo(json.dumps([views.as_data(record) for record in chosen], indent=1, ensure_ascii=False))
        return
    for record in chosen:
        typer.echo("\n".join(views.as_text(record)))
    typer.echo(f"{len(chosen)} of {len(records)} entries", err=True)


@app.command("log")
def log_of(
    run: Annotated[str, typer.Argument(help="Run id, a part of one, or a run folder.")],
    file: File = None,
    runs: Runs = Path("runs"),
) -> None:
    """Show what the changelogs say of a run: its results, retractions, and the changes that led to it."""
    from infx.changelog import views
    from infx.changelog.entries import ledger
    from infx.errors import UsageError
    from infx.results.index import find_run
    from infx.results.layout import CHANGELOG
    from infx.schema.changelog import Results

    name = Path(run).name if (Path(run) / "run.json").is_file() else run
    own = runs / name / CHANGELOG if not (Path(run) / "run.json").is_file() else Path(run) / CHANGELOG
    if not own.exists() and runs.is_dir() and name == "latest":
        own = find_run(name, runs) / CHANGELOG
        name = own.parent.name
    shown = 0
    for target in (file or _changelog(), own):
        for record in views.of_run(ledger(_read(target), _shown(target)), name) if target.exists() else ():
            shown += 1
            typer.echo("\n".join([f"{_shown(target)}:{record.span.line}", *views.as_text(record)]))
            if isinstance(record.entry, Results):
                typer.echo("\n".join(views.points(record.entry)))
    if not shown:
        raise UsageError(f"no changelog records a run {run!r}", hint="record it: `infx changelog append RUN`")


@app.command()
def draft(
    base: Annotated[str | None, typer.Option("--base", metavar="REF", show_default=False,
                                             help="The trunk; default: as configured, or origin/main, main.")] = None,
    link: Annotated[str, typer.Option("--link", metavar="URL", help="The pull request.")] = "XXX",
    printed: Annotated[bool, typer.Option("--print", help="Print it and leave the file alone.")] = False,
    file: File = None,
) -> None:
    """Write a change entry for what the working copy changes in recipes since the trunk; edit its words then."""
    from infx.changelog.append import append as add
    from infx.changelog.draft import draft as drafted
    from infx.changelog.render import render
    from infx.changelog.trees import recipes_of
    from infx.lint.about import differences
    from infx.sources.tree import GitTree, WorkingTree

    target = file or _changelog()
    repository = _repository(target)
    fork, _ = repository.base(base or _trunk(repository), "HEAD", _read(target))
    before, tree = GitTree(repository.top, fork or "HEAD"), WorkingTree(repository.top)
    recipes = recipes_of(before, tree)
    known = [key for key in recipes.changed if key in recipes.base]
    entry = drafted(recipes, differences(before, tree, known) if known else [], link)
    if entry is None:
        typer.echo("no recipe's fingerprints changed: nothing to draft")
    elif printed:
        typer.echo(render(entry).decode())
    else:
        typer.echo(f"{target}: {', '.join(add(target, [entry]))}\n{render(entry).decode()}")


@app.command()
def retract(
    entry: Annotated[str, typer.Argument(help="Id of the entry, as `infx changelog show` prints it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it no longer counts.")],
    link: Annotated[str | None, typer.Option("--link", metavar="URL", show_default=False,
                                             help="The pull request.")] = None,
    file: File = None,
) -> None:
    """Withdraw an entry: it stays in the file, and views hide it and give the reason."""
    from pydantic import ValidationError

    from infx.changelog.append import append as add
    from infx.errors import UsageError
    from infx.schema.changelog import Retract

    try:
        made = Retract(kind="retract", entry=entry, reason=reason, pr_link=link)
    except ValidationError as error:
        raise UsageError("; ".join(str(item["msg"]) for item in error.errors()),
                         hint="ids look like 0123456789ab-1") from error
    target = file or _changelog()
    typer.echo(f"{target}: {', '.join(add(target, [made]))}")


@app.command()
def repair(
    printed: Annotated[bool, typer.Option("--print", help="Print what would be appended.")] = False,
    file: File = None,
) -> None:
    """Mend damage that is on the trunk already: retract each damaged entry and append again what it says."""
    from infx.changelog.append import append as add
    from infx.changelog.recover import repairs
    from infx.changelog.render import render

    target = file or _changelog()
    found = repairs(_read(target), _shown(target))
    for item in found:
        head = f"{_shown(target)}:{item.record.span.line}: entry {item.record.id}"
        typer.echo(f"{head}: retracted, {len(item.entries) - 1} entries appended again")
        for lost in item.lost:
            typer.echo(f"{head}: not recovered, append it by hand: {lost}")
    entries = [entry for item in found for entry in item.entries]
    if printed:
        typer.echo("\n\n".join(render(entry).decode() for entry in entries))
    elif entries:
        add(target, entries)
    typer.echo(f"{_shown(target)}: {len(found)} damaged entries", err=True)


@app.command()
def rebase(
    onto: Annotated[str, typer.Option("--onto", metavar="REF", help="The trunk whose bytes come first.")],
    source: Annotated[str, typer.Option("--from", metavar="REV", help="Where the branch's own commits are.")] = "HEAD",
    file: File = None,
) -> None:
    """Rebuild a damaged branch's changelog in the working copy: the trunk's bytes, then the branch's own entries."""
    from infx.changelog.append import rewrite
    from infx.changelog.rebuild import rebuild
    from infx.changelog.spans import split

    target = file or _changelog()
    repository = _repository(target)
    trunk = repository.bytes_at(repository.commit(onto))
    steps = repository.steps(repository.commit(onto), repository.commit(source))
    committed, now = repository.bytes_at(source), _read(target)
    if now != committed and source == "HEAD":
        steps.append((committed, now))
    made = rebuild(trunk, steps, now)
    rewrite(target, lambda _: made.data)
    typer.echo(f"{_shown(target)}: {len(split(trunk).spans)} entries of {onto}, then {len(made.own)} of this branch")
    for why, body in made.left_out:
        typer.echo(f"left out ({why}); add it by hand if it is yours:\n{body.decode('utf-8', 'replace')}")


@app.command("install-driver")
def install_driver(
    trunk: Annotated[list[str] | None, typer.Option("--trunk", metavar="REF", show_default=False,
                                                    help="The trunk, e.g. origin/main; repeatable.")] = None,
) -> None:
    """Register the merge driver in this clone, so that git merges the changelog entry by entry, the trunk first."""
    from infx.changelog.driver import Repository, install

    repository = Repository(Path.cwd())
    for line in install(repository, trunk or []):
        typer.echo(line)
    if repository.git("check-attr", "merge", "--", NAME).stdout.rstrip().endswith(b"unspecified"):
        typer.echo(f"add to .gitattributes: {NAME} -text merge=infx-changelog", err=True)


@app.command("merge-driver", hidden=True)
def merge_driver(files: Annotated[list[str], typer.Argument(help="%O %A %B %P, as git gives them.")]) -> None:
    """What git calls to merge the changelog."""
    import os

    from infx.changelog.driver import drive

    raise typer.Exit(drive(files, os.environ))


def _changelog() -> Path:
    """The changelog of the nearest repository or tree, whether it exists or not."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / NAME).is_file() or (folder / ".git").exists():
            return folder / NAME
    return here / NAME


def _repository(target: Path) -> Repository:
    from infx.changelog.driver import Repository
    from infx.errors import UsageError

    repository = Repository(target.resolve().parent)
    place = target.resolve()
    if not place.is_relative_to(repository.top.resolve()):
        raise UsageError(f"{target} is outside of the repository {repository.top}")
    repository.path = place.relative_to(repository.top.resolve()).as_posix()
    return repository


def _trunk(repository: Repository) -> str:
    from infx.errors import UsageError

    known = repository.trunks()
    if not known:
        raise UsageError("no trunk is known", hint="give --base REF, or `infx changelog install-driver --trunk REF`")
    return known[0]


def _read(target: Path) -> bytes:
    return target.read_bytes() if target.exists() else b""


def _shown(target: Path) -> str:
    here = Path.cwd()
    return target.relative_to(here).as_posix() if target.is_relative_to(here) else str(target)
