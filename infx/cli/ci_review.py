"""``infx ci checklist``, ``signoff`` and ``comment``: what a review needs, from a branch and its runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.ci_reuse import Digests, Post, Repo, Runs, RunWords
from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.changelog.driver import Repository
    from infx.ci.checklist import Checklist, Signed
    from infx.ci.commands import Comment
    from infx.ci.comment import Content
    from infx.ci.github import Client
    from infx.ci.signoff import Verdict
    from infx.cli.ci_facts import Evidence
    from infx.sources.tree import Tree

Base = Annotated[str, typer.Option("--base", metavar="REF", help="The trunk; checklist and owners are taken from it.")]
Head = Annotated[str, typer.Option("--head", metavar="REF", help="The pull request's head commit.")]
Event = Annotated[Path, typer.Option("--event", metavar="FILE", help="The issue_comment event's payload, as JSON.")]
Remote = Annotated[bool, typer.Option("--remote", help="Ask the code host for head, author, files and teams as they "
                                                       "are now.")]
Links = Annotated[list[str] | None, typer.Option("--link", metavar="WORDS=URL", show_default=False,
                                                 help="A link at the end; repeatable.")]
FETCHED = Path("runs/reused")
PullNumber = Annotated[int | None, typer.Option("--pull", metavar="NUMBER", min=1, show_default=False,
                                                help="The pull request.")]
Out = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", show_default=False,
                                          help="Write the comment here; default: print.")]


def checklist(head: Head = "HEAD", base: Base = "HEAD") -> None:
    """Print the review checklist for one commit, to be posted as a comment with one's boxes ticked."""
    from infx.changelog.driver import Repository
    from infx.ci.checklist import blank

    clone = Repository(Path.cwd())
    typer.echo(blank(_checklist(clone, clone.commit(base)), clone.commit(head)), nl=False)


def signoff(event: Event, base: Base, head: Head, run: RunWords = None, digest: Digests = None, remote: Remote = False,
            out: Annotated[Path, typer.Option("--out", metavar="DIR", help="With --remote and without --run: folder "
                                                                           "for the sweep's artefacts.")] = FETCHED,
            post: Post = False, repository: Repo = None, as_json: AsJson = False, runs: Runs = Path("runs")) -> None:
    """Judge the sign-off that a comment is. Exit code 13 when it does not stand; 0 also when it is no sign-off."""
    from dataclasses import replace

    from infx.changelog.driver import Repository
    from infx.ci.checklist import read_signed
    from infx.ci.commands import own_lines
    from infx.ci.signoff import MARKER, markdown, status
    from infx.cli.ci_fetch import fetch_of_pull
    from infx.cli.ci_inputs import client_for, origin
    from infx.errors import RefusedError

    clone = Repository(Path.cwd())
    number, author, comment = _commented(event, repository or os.environ.get("GITHUB_REPOSITORY") or origin(clone))
    signed = read_signed(own_lines(comment.body))
    if signed is None:
        typer.echo("the comment is no sign-off: it has no line `Review checklist, version N, commit SHA`")
        return
    evidence = _evidence(base, clone.commit(head), run or [], digest or [], runs, number)
    client = client_for(repository) if remote or post else None
    if client is not None and remote and not run:
        got = fetch_of_pull(client, number, out)
        evidence = replace(evidence, runs=got.runs, unfetched=got.refusals)
    found = _verdict(evidence, signed, comment, author, clone.commit(base), client if remote else None)
    if post and client is not None:
        client.upsert_comment(number, MARKER, markdown(found))
        client.send("POST", f"statuses/{found.commit}", status(found))
    typer.echo(json.dumps(_data(found), indent=1) if as_json else markdown(found), nl=as_json)
    if not found.passes:
        raise RefusedError(f"the sign-off of {comment.author} does not stand", hint="the table says why")


def comment(base: Base, head: Head, run: RunWords = None, digest: Digests = None, pull: PullNumber = None,
            out: Out = None, post: Post = False, repository: Repo = None, link: Links = None,
            unofficial: Annotated[bool, typer.Option("--unofficial", help="Say that these are no results of a "
                                                                          "pull request's sweep.")] = False,
            proposal: Annotated[Path | None, typer.Option("--proposal", metavar="FILE", show_default=False,
                                                          help="Write the proposed results entries here, if any."
                                                          )] = None,
            runs: Runs = Path("runs")) -> None:
    """Write what a sweep found as a comment: picture, table, verdicts, claims, coverage and the proposed entry."""
    from infx.changelog.driver import Repository
    from infx.ci.comment import MARKER, body
    from infx.cli.ci_inputs import client_for
    from infx.errors import UsageError
    from infx.results.store import write_whole

    if post and pull is None:
        raise UsageError("--post needs --pull", hint="say which pull request")
    evidence = _evidence(base, Repository(Path.cwd()).commit(head), run or [], digest or [], runs, pull)
    content = _content(evidence, link or [], unofficial)
    text = body(content)
    if proposal is not None and content.proposal:
        write_whole(proposal, content.proposal.encode())
    if out is not None:
        write_whole(out, text.encode())
    else:
        typer.echo(text, nl=False)
    if post and pull is not None:
        typer.echo(f"comment {client_for(repository).upsert_comment(pull, MARKER, text)}", err=True)


def _commented(path: Path, here: str | None) -> tuple[int, str, Comment]:
    """Number, author and comment of an issue_comment event of the repository ``here``. InputError for another one."""
    from infx.ci.commands import read_comment
    from infx.errors import InputError, UsageError

    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError("no such event file", where=str(path),
                         hint="in a workflow it is $GITHUB_EVENT_PATH") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=str(path)) from error
    issue = value.get("issue") if isinstance(value, dict) else None
    if not isinstance(issue, dict) or not isinstance(issue.get("number"), int):
        raise InputError("not an event of a comment: there is no `issue` with a number", where=str(path),
                         hint="give the file that GITHUB_EVENT_PATH names in a workflow on issue_comment")
    name = str((value.get("repository") or {}).get("full_name", here))
    if here is not None and name.lower() != here.lower():
        raise InputError(f"the event is of {name}, but this is {here}", where=str(path),
                         hint="judge in a clone of the event's repository, or say --repository OWNER/NAME")
    if "pull_request" not in issue:
        raise InputError(f"issue {issue['number']} is no pull request", where=str(path))
    author = (issue.get("user") or {}).get("login", "ghost")
    return issue["number"], str(author), read_comment(value.get("comment") or {})


def _evidence(base: str, head: str, words: list[str], digests: list[str], parent: Path, number: int | None) -> Evidence:
    from infx.changelog.driver import Repository
    from infx.cli import ci_inputs
    from infx.cli.ci_branch import branch_of
    from infx.cli.ci_facts import Evidence
    from infx.cli.ci_reuse import read_digests
    from infx.cli.compare_request import Desk

    clone = Repository(Path.cwd())
    return Evidence(branch_of(clone, base, head), ci_inputs.runs(words, parent) if words else [],
                    Desk(Path.cwd(), parent, None, None, "latest"), ci_inputs.harness(clone, head),
                    read_digests(digests), number)


def _checklist(clone: Repository, commit: str) -> Checklist:
    """The checklist as the trunk has it: a branch does not choose its own."""
    from infx.ci.checklist import PAGE, read_checklist
    from infx.sources.tree import GitTree

    return read_checklist(_text(GitTree(clone.top, commit), PAGE), PAGE)


def _text(tree: Tree, path: str) -> str:
    from infx.errors import InputError

    try:
        return tree.read_bytes(path).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise InputError("the trunk does not have it", where=path) from error


def _verdict(evidence: Evidence, signed: Signed, comment: Comment, author: str, trunk: str, client: Client | None
             ) -> Verdict:
    """Facts, owners and the pull request as it is now → the verdict."""
    from dataclasses import replace

    from infx.ci.labels import MODIFIERS
    from infx.ci.owners import PATHS, read_owners, unowned
    from infx.ci.remote import pull_of, team_members
    from infx.ci.signoff import decide
    from infx.cli.ci_facts import facts_of
    from infx.errors import InputError
    from infx.sources.tree import GitTree

    branch = evidence.branch
    head, left = branch.head, branch.fork or trunk
    files = branch.clone.lines("diff", "--name-only", "--no-renames", left, head, "--")
    member = _nobody
    if client is not None:
        pull = pull_of(client, evidence.pull or 0)
        if pull.head != head:
            raise InputError(f"the head of pull request {pull.number} is {pull.head[:12]}, here it is {head[:12]}",
                             hint="somebody pushed meanwhile: a sign-off is of one commit; fetch, sign the new one")
        author, files = pull.author, list(dict.fromkeys([*files, *pull.files]))
        member = team_members(client)
        evidence = replace(evidence, eval_labels=bool({*MODIFIERS[:2]} & {*pull.labels}))
    tree = GitTree(branch.clone.top, trunk)
    path = next((name for name in PATHS if tree.exists(name)), PATHS[0])
    return decide(_checklist(branch.clone, trunk), signed, comment, head=head, author=author,
                  unowned=unowned(read_owners(_text(tree, path), path), files, comment.author, member),
                  facts=facts_of(evidence))


def _nobody(team: str, user: str) -> bool:
    return False


def _data(verdict: Verdict) -> dict[str, object]:
    from dataclasses import asdict

    return {"passes": verdict.passes, **asdict(verdict)}


def _content(evidence: Evidence, links: list[str], unofficial: bool) -> Content:
    """What the comment tells, worked out as far as the runs allow."""
    from infx.changelog.render import render
    from infx.ci.comment import Content, Shown
    from infx.ci.proposal import proposed
    from infx.compare.beside import beside
    from infx.compare.markdown import markdown
    from infx.compare.verdict import compare

    shown = []
    for pair in evidence.pairs:
        text = ""
        if pair.before is not None:
            found = compare(pair.before, pair.after, evidence.desk.scheduled(evidence.desk.options((), ()),
                                                                             pair.before, pair.after))
            text = markdown(found, beside(found))
        shown.append(Shown(pair.recipe, pair.before, pair.after, text))
    reuse = evidence.reuse
    entries = proposed(evidence.plans, evidence.runs, reuse, _name()) if reuse.qualifies else []
    marks = [f"{word}: {what}" for word, what, holds in (
        ("UNOFFICIAL", "these are no results of a pull request's sweep", unofficial),
        ("SIMULATED", "no hardware was measured", any(run.simulated for run in evidence.runs)),
        ("UNOFFICIAL", "rules were relaxed", any(run.unofficial for run in evidence.runs)),
        ("QUICK", "short prompts and windows", any(run.quick for run in evidence.runs))) if holds]
    return Content(evidence.branch.head, reuse, shown, evidence.claims, evidence.coverage,
                   "\n\n".join(render(entry).decode() for entry in entries) + "\n" * bool(entries),
                   [(words, address) for words, _, address in (link.partition("=") for link in links)], marks,
                   reuse.notes)


def _name() -> str:
    """What the entries call the sweep: the workflow's run, where this is one."""
    run = os.environ.get("GITHUB_RUN_ID", "")
    return f"sweep-{run}" if run else ""
