"""``infx ci``: what checks on pull requests run. ``plan``: from labels and a diff to the jobs of a sweep."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.ci_fetch import fetch, head, record
from infx.cli.ci_inputs import origin
from infx.cli.ci_links import links
from infx.cli.ci_reuse import results, reuse
from infx.cli.ci_review import checklist, comment, signoff
from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.changelog.driver import Repository
    from infx.ci.estimate import Span
    from infx.ci.event import PullEvent
    from infx.ci.labels import Ask
    from infx.ci.plan import Job, Sweep

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None,
                  help="Plan the sweeps that pull requests ask for; judge, propose and sign off what they measured.")

Event = Annotated[Path | None, typer.Option("--event", metavar="FILE", show_default=False,
                                            help="The pull_request event's payload, as JSON.")]
Label = Annotated[list[str] | None, typer.Option("--label", metavar="NAME", show_default=False,
                                                 help="Without an event: plan as if this label were on; repeatable.")]
Base = Annotated[str, typer.Option("--base", metavar="REF", help="The trunk.")]
Head = Annotated[str, typer.Option("--head", metavar="REF", help="The pull request's head commit.")]
Shards = Annotated[int, typer.Option("--shards", help="Cut each block into up to so many parts: more starts, less wall "
                                                      "time.")]
Startup = Annotated[float, typer.Option("--startup-s", min=0, help="Seconds assumed for an engine to become ready.")]
Repo = Annotated[str | None, typer.Option("--repository", metavar="OWNER/NAME", show_default=False,
                                          help="This repository; default: GITHUB_REPOSITORY, else the remote origin.")]
PlanOut = Annotated[Path | None, typer.Option("--out", metavar="DIR", show_default=False,
                                              help="Write the plan of each job into this folder.")]
Outputs = Annotated[Path | None, typer.Option("--github-output", metavar="FILE", show_default=False,
                                              help="Append the matrices as outputs of a workflow's step.")]


for _command in (reuse, results, comment, checklist, signoff, record, head, fetch, links):
    app.command()(_command)


@app.command()
def plan(base: Base, head: Head, event: Event = None, label: Label = None, shards: Shards = 1,
         startup_s: Startup = 900, repository: Repo = None, out: PlanOut = None, github_output: Outputs = None,
         as_json: AsJson = False) -> None:
    """Say which engine starts the labels of a pull request ask for, and what they will cost. Runs nothing."""
    from infx.changelog.driver import Repository
    from infx.ci.labels import asked
    from infx.errors import UsageError
    from infx.results.store import write_whole

    if (event is None) == (not label):
        raise UsageError("give either --event or --label", hint="in a workflow: --event \"$GITHUB_EVENT_PATH\"")
    clone = Repository(Path.cwd())
    if event is None:
        commit, ask = clone.commit(head), asked(label or [])
    else:
        pull = _event(event, repository or os.environ.get("GITHUB_REPOSITORY") or origin(clone))
        commit = _head(clone, head, pull)
        said = clone.git("log", "-1", "--format=%B", commit).stdout.decode("utf-8", "replace")
        ask = _idle(asked(pull.labels, said), pull)
    made = _sweep(clone, base, commit, ask, shards, startup_s)
    for job in [*([made.canary] if made.canary else []), *made.jobs, *made.evals] if out is not None else []:
        write_whole(out / _file(job), (job.plan.model_dump_json(by_alias=True, indent=1) + "\n").encode())
    if github_output is not None:
        with github_output.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{name}={json.dumps(value)}\n" for name, value in _matrices(made).items())
    typer.echo(json.dumps({**_matrices(made), **_costs(made)}, indent=1) if as_json else "\n".join(_table(made)))


def _event(path: Path, repository: str | None) -> PullEvent:
    from infx.ci.event import read_event
    from infx.errors import InputError, UsageError

    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError("no such event file", where=str(path),
                         hint="in a workflow it is $GITHUB_EVENT_PATH") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=str(path)) from error
    pull = read_event(value, str(path))
    if repository is not None and pull.repository.lower() != repository.lower():
        raise InputError(f"the event is of {pull.repository}, but this is {repository}", where=str(path),
                         hint="plan in a clone of the event's repository, or say --repository OWNER/NAME")
    return pull


def _head(clone: Repository, head: str, pull: PullEvent) -> str:
    """The commit of ``head``, which must be the very one that the event is about."""
    from infx.errors import InputError, UsageError

    if pull.head_repository is None:
        raise InputError(f"the repository of {pull.head_ref!r} is deleted: pull request {pull.number} has no branch",
                         hint="push the commits to a branch that exists, and open the pull request from it")
    try:
        commit = clone.commit(head)
    except UsageError as error:
        raise InputError(f"the head {head} of pull request {pull.number} is not in this clone: its branch "
                         f"{pull.head_ref!r} is deleted, was force-pushed, or is not fetched",
                         hint=error.hint) from error
    if commit != pull.head_sha:
        raise InputError(f"the event is about commit {pull.head_sha[:12]}, but {head} is {commit[:12]}",
                         hint="a later push has an event of its own; what a label asks for is for one exact commit")
    return commit


def _idle(ask: Ask, pull: PullEvent) -> Ask:
    from infx.ci.labels import Ask

    idle = pull.idle()
    if pull.from_fork:
        idle = (f"the branch is of {pull.head_repository}, a fork: its code does not get onto our runners; "
                "a maintainer may push the reviewed commit to a branch here")
    return Ask(why=idle) if idle and ask.points != "none" else ask


def _sweep(clone: Repository, base: str, head: str, ask: Ask, shards: int, startup_s: float) -> Sweep:
    """Check the changelog, then plan what its new entries select."""
    from infx.ci.plan import sweep
    from infx.cli.ci_branch import branch_of, eval_plans, runner_of, wanted_plans

    if ask.points == "none":
        return sweep(ask, [], lambda _: "", shards=shards, startup_s=startup_s)
    branch = branch_of(clone, base, head)
    plans, notes = wanted_plans(branch)
    return sweep(ask, plans, runner_of(branch.tree), shards=shards, startup_s=startup_s, notes=notes,
                 evals=eval_plans(branch, ask))


def _file(job: Job) -> str:
    folder = "evals/" if job.block.id.startswith("evals-") else ""
    return f"{folder}{job.plan.recipe}.{job.block.id}.json"


def _matrices(made: Sweep) -> dict[str, object]:
    """What a workflow reads; an empty matrix is not allowed there, so the counts say whether to start a job."""
    def rows(jobs: list[Job]) -> dict[str, object]:
        return {"include": [{
            "name": job.name, "recipe": job.plan.recipe, "block": job.block.id, "plan": _file(job),
            "label": job.plan.label, "runs-on": ["self-hosted", job.plan.label], "runner": job.runner,
            "points": job.block.points,
        } for job in jobs]}

    canary = [made.canary] if made.canary else []
    return {"canary": rows(canary), "sweep": rows(list(made.jobs)), "canary-jobs": len(canary),
            "sweep-jobs": len(made.jobs), "fail-fast": made.ask.fail_fast, "evals": rows(list(made.evals)),
            "evals-jobs": len(made.evals)}


def _costs(made: Sweep) -> dict[str, object]:
    costs = made.estimate
    return {"why": made.ask.why, "notes": list(made.notes), "estimate": {
        "starts": costs.starts, "points": costs.points, "assumed-startup-s": costs.startup_s,
        "gpu-hours": [costs.gpu_hours.low, costs.gpu_hours.high], "wall-s": [costs.wall.low, costs.wall.high],
        "one-runner-wall-s": [costs.serial.low, costs.serial.high]}}


def _table(made: Sweep) -> list[str]:
    lines = [f"asked     {made.ask.why}"]
    for role, job in [*([("canary", made.canary)] if made.canary else []), *(("then", job) for job in made.jobs),
                      *(("evals", job) for job in made.evals)]:
        concurrencies = ", ".join(point.rpartition("/")[2] for point in job.block.points)
        lines.append(f"{role:<9} {job.name}  [{job.plan.label}, profile {job.runner}]  {concurrencies}")
    if made.ask.fail_fast:
        lines.append("fail-fast the first point that is not ok ends every job")
    costs = made.estimate
    if costs.starts:
        lines.append(f"costs     {costs.starts} engine starts, {costs.points} points, "
                     f"{_range(costs.gpu_hours, 1)} GPU-hours")
        lines.append(f"wall      {_range(costs.wall, 3600)} h with a runner for each job, "
                     f"{_range(costs.serial, 3600)} h with one runner")
        lines.append(f"assumed   {costs.startup_s:g} s for an engine to be ready; ramps and warm-up turns not counted")
    else:
        lines.append("runs      nothing")
    return [*lines, *(f"note      {note}" for note in made.notes)]


def _range(span: Span, unit: float) -> str:
    low, high = f"{span.low / unit:.1f}", f"{span.high / unit:.1f}"
    return low if low == high else f"{low} to {high}"
