"""``infx runs``: what was swept, what waits in a queue, and how to go on with it or end it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.cli.signals import Stop
    from infx.cli.sweep_request import Job
    from infx.results.store import RunStore
    from infx.run.context import Context
    from infx.run.place.dispatch import Cluster
    from infx.run.place.dispatch import Job as SlurmJob
    from infx.schema.runner import Runner

app = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True,
                  help="List runs and the jobs that they wait for; attach to one, or cancel it.")

Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of run folders.")]
Word = Annotated[str, typer.Argument(metavar="RUN", help="Run folder, run id, a part of one, or `latest`.")]


@app.callback()
def listing(ctx: typer.Context, as_json: AsJson = False, runs: Runs = Path("runs")) -> None:
    """List runs: points done, state, and the jobs that wait or run."""
    if ctx.invoked_subcommand is not None:
        return
    from infx.results.index import list_runs

    rows = _rows(list_runs(runs))
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        typer.echo(f"no run in {runs}")
    for row in rows:
        typer.echo(f"{row['run']}  {row['runner']:<18} {row['done']:>3}/{row['points']} points  {row['state']}"
                   f"{_jobs_text(row)}")


def _jobs_text(row: dict) -> str:
    jobs = row["jobs"]
    if not jobs:
        return ""
    if row["queue"] != "known":
        return f"  {len(jobs)} jobs ({row['queue']})"
    count = {fate: sum(job["fate"] == fate for job in jobs) for fate in ("queued", "running", "done", "lost")}
    text = ", ".join(f"{number} {fate}" for fate, number in count.items() if number)
    return f"  jobs: {text}  → infx runs attach {row['run']}"


def _rows(folders: list[Path]) -> list[dict]:
    """One row a run; the scheduler is asked once, and only when some run waits for a job."""
    import time

    from infx.errors import InfxError
    from infx.results.load import load_run
    from infx.run.place.cluster import Batch
    from infx.run.place.dispatch import jobs_of, look

    waiting = {folder: jobs_of(folder) for folder in folders}
    every = [job for jobs in waiting.values() for job in jobs]
    queue = "known"
    try:
        if every and not look(every, Batch(), float("inf"), time.monotonic()):
            queue = "the scheduler does not answer"
    except InfxError as error:
        queue = error.message
    rows = []
    for folder, jobs in waiting.items():
        try:
            loaded = load_run(folder, metrics=())
        except InfxError as error:
            rows.append({"run": folder.name, "runner": "?", "points": 0, "done": 0, "queue": queue,
                         "state": f"damaged: {error.message}", "jobs": []})
            continue
        rows.append({
            "run": folder.name, "runner": loaded.run.runner, "points": len(loaded.plan.points),
            "done": len(loaded.plan.points) - len(loaded.missing), "state": str(loaded.state), "queue": queue,
            "jobs": [{"job": job.id, "block": job.block, "fate": str(job.verdict.fate), "why": job.verdict.why}
                     for job in jobs]})
    return rows


@app.command()
def attach(run: Word = "latest", runs: Runs = Path("runs")) -> None:
    """Follow the jobs of a run that was detached or whose submitter is gone, and take over what they measured."""
    from infx.cli.signals import stop_signals
    from infx.results.index import find_run
    from infx.run.place.cluster import Batch

    folder = find_run(run, runs)
    with stop_signals() as stop, _opened(folder, stop) as (context, jobs):
        ok = _follow(context, Batch(), jobs, stop)
    raise typer.Exit(stop.exit_code if stop() else 0 if ok else 1)


@app.command()
def cancel(run: Word = "latest", runs: Runs = Path("runs")) -> None:
    """End the jobs of a run; what they measured is kept, and the run can be resumed."""
    from infx.errors import BusyError
    from infx.results.index import find_run
    from infx.run.place.cluster import Batch
    from infx.run.place.dispatch import jobs_of, watch

    folder = find_run(run, runs)
    jobs, cluster = jobs_of(folder), Batch()
    if not jobs:
        typer.echo(f"{folder.name} waits for no job")
        return
    queue = cluster.queue() or {}
    found = [queue[job.name].id if job.name in queue else job.id for job in jobs]
    cluster.cancel([number for number in found if number])
    typer.echo(f"cancelled {sum(1 for number in found if number)} jobs of {folder.name}")
    try:
        with _opened(folder, lambda: False) as (context, jobs):
            watch(context, cluster, jobs)
            close_run(context.store)
    except BusyError:
        typer.echo("another infx watches this run and takes over what was measured")


def away(job: Job, *, fail_fast: bool, detach: bool) -> bool:
    """True when this sweep is to be submitted; refuses options that do not go with where it runs."""
    from infx.errors import UsageError
    from infx.run.place.node import in_allocation, on_node

    submitted = job.runner.place == "slurm" and not on_node(os.environ)
    if detach and (not submitted or in_allocation(os.environ)):
        raise UsageError("--detach goes with jobs that outlive this command", allowed="a runner with place: slurm, "
                         "on a submit host", hint="leave it out")
    if fail_fast and submitted:
        raise UsageError("--fail-fast does not go with place: slurm, whose blocks run at once",
                         hint="leave it out; `infx runs cancel` ends a sweep that went wrong")
    return submitted


def sweep_away(job: Job, stop: Stop, *, detach: bool) -> bool:
    """Submit a job a block and follow them, unless detached; True when every point that was asked for is ok."""
    from infx.cli.progress import narrator
    from infx.run.events import SweepBegan
    from infx.run.place.cluster import Batch, Steps
    from infx.run.place.dispatch import jobs_of, submit
    from infx.run.place.node import in_allocation

    with job.open_store() as store:
        root = store.paths.root
        context = _context(store, job.runner, job.root, stop)
        _refuse_while_it_waits(root, jobs_of(root))
        cluster = Steps(job.runner, os.environ) if in_allocation(os.environ) else Batch()
        with narrator(sys.stderr) as emit:
            emit(SweepBegan(root.name, str(root), len(job.plan.points), len(job.plan.blocks)))
        jobs = submit(context, cluster, job.plan.blocks)
        if detach:
            typer.echo(f"run       {root}\nnext:     infx runs\n          infx runs attach {root.name}\n"
                       f"          infx runs cancel {root.name}")
            return True
        return _follow(context, cluster, jobs, stop)


def _refuse_while_it_waits(root: Path, jobs: list[SlurmJob]) -> None:
    from infx.errors import BusyError

    if jobs:
        raise BusyError(f"{len(jobs)} jobs of this run are not taken over yet", where=str(root),
                        hint=f"infx runs attach {root.name}, or infx runs cancel {root.name}")


def _follow(context: Context, cluster: Cluster, jobs: list[SlurmJob], stop: Stop) -> bool:
    import dataclasses
    import signal

    from infx.cli.progress import narrator
    from infx.run.place.dispatch import watch

    root = context.store.paths.root
    with narrator(sys.stderr) as emit:
        outcome = watch(dataclasses.replace(context, emit=emit), cluster, jobs,
                        leave=lambda: stop.number == signal.SIGHUP)
    if outcome.stopped and not outcome.outcomes:
        typer.echo(f"the jobs go on; infx runs attach {root.name}", err=True)
        return False
    close_run(context.store)
    return outcome.ok


def close_run(store: RunStore) -> None:
    """The run's table, picture and next commands."""
    from infx.cli.sweep import close

    close(store)


def _context(store: RunStore, runner: Runner, root: Path, stop: Callable[[], bool]) -> Context:
    from infx.results.load import load_run
    from infx.run.context import Context

    return Context(plan=load_run(store.paths.root, metrics=()).plan, runner=runner, store=store, root=root,
                   environment=dict(os.environ), emit=lambda event: None, should_stop=stop)


@contextlib.contextmanager
def _opened(folder: Path, stop: Callable[[], bool]) -> Iterator[tuple[Context, list[SlurmJob]]]:
    """A run that has jobs, locked: its context and its jobs."""
    from infx.errors import UsageError
    from infx.results.load import load_run
    from infx.results.store import RunStore
    from infx.run.place.dispatch import jobs_of
    from infx.sources.runners import get_runner
    from infx.sources.tree import WorkingTree, find_tree

    tree = find_tree(Path.cwd())
    runner = get_runner(tree, load_run(folder, metrics=()).run.runner)
    if runner.place != "slurm":
        raise UsageError(f"{folder.name} ran here, not on Slurm: there is nothing to attach to",
                         hint=f"infx sweep --resume {folder} goes on with it")
    with RunStore.open(folder) as store:
        root = tree.root if isinstance(tree, WorkingTree) else Path.cwd()
        yield _context(store, runner, root, stop), jobs_of(folder)
