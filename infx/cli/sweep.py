"""``infx sweep``: measure recipes over their ladders."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Arm, Keys, Only, Out, Quick, RunnerName

if TYPE_CHECKING:
    from infx.cli.signals import Stop
    from infx.cli.sweep_request import Job
    from infx.results.store import RunStore
    from infx.run.sweep import SweepOutcome

Resume = Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Measure what this run still lacks.")]


def command(
    keys: Keys = None,
    runner_name: RunnerName = None,
    only: Only = None,
    arm: Arm = None,
    quick: Quick = False,
    resume: Resume = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="With --resume: failed points too.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop after a block with a bad point.")] = False,
    plan_file: Annotated[Path | None, typer.Option("--plan", help="Sweep this plan.json; nothing is planned.")] = None,
    block: Annotated[str | None, typer.Option("--block", metavar="ID", help="With --plan: only this block.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Slurm: submit the jobs, return; see `infx runs`.")] = False,
    unofficial: Annotated[bool, typer.Option("--unofficial", help="Findings do not stop it; not publishable.")] = False,
    image: Annotated[str | None, typer.Option("--image", metavar="LOCAL", help="With --unofficial: this image of this "
                                              "machine (id or name) instead of the recipe's.")] = None,
    out: Out = Path("runs"),
) -> None:
    """Start the pinned engines, walk the ladder, measure, store and draw. Exit code 1 when a point is not ok."""
    from infx.cli.runs import away, sweep_away
    from infx.cli.signals import stop_signals
    from infx.cli.sweep_request import Request, requested

    asked = Request(keys=tuple(keys or ()), runner=runner_name, only=tuple(only or ()), arms=tuple(arm or ()),
                    quick=quick, resume=resume, retry_failed=retry_failed, plan_file=plan_file, block=block, out=out,
                    unofficial=unofficial, image=image)
    ok = True
    with stop_signals() as stop:
        for job in requested(asked, Path.cwd()):
            if away(job, fail_fast=fail_fast, detach=detach):
                ok = sweep_away(job, stop, detach=detach) and ok
            else:
                ok = _sweep_one(job, fail_fast, stop).ok and ok
            if stop():
                raise typer.Exit(stop.exit_code)
    if not ok:
        raise typer.Exit(1)


def _sweep_one(job: Job, fail_fast: bool, stop: Stop) -> SweepOutcome:
    """One run. A new run that found its accelerators held, before anything started, leaves no folder."""
    import shutil

    from infx.errors import BusyError

    made: list[Path] = []
    try:
        return _swept(job, fail_fast, stop, made)
    except BusyError:
        for root in made:
            if not any(root.glob("starts/*")) and not any(root.glob("points/*")):
                shutil.rmtree(root, ignore_errors=True)
        raise


def _swept(job: Job, fail_fast: bool, stop: Stop, made: list[Path]) -> SweepOutcome:
    import os

    from infx.cli.progress import narrator
    from infx.results.load import known_digests
    from infx.run.context import Context
    from infx.run.events import SweepBegan
    from infx.run.expected import expectations
    from infx.run.lease import lease_folder, machine_lease
    from infx.run.policy import fail_fast as failing_fast
    from infx.run.policy import ladder
    from infx.run.sweep import sweep
    from infx.sources.tree import find_tree

    plan, runner = job.plan, job.runner
    holder = {"recipe": plan.recipe, "runner": runner.name}
    alone = runner.exclusive and runner.place == "here"  # Slurm gives whole nodes itself
    with (machine_lease(lease_folder(dict(os.environ)), holder, wanted=alone),
          job.open_store() as store, narrator(sys.stderr) as emit):
        made.append(store.paths.root)
        emit(SweepBegan(store.paths.root.name, str(store.paths.root), len(plan.points), len(plan.blocks)))
        context = Context(plan=plan, runner=runner, store=store, root=job.root, environment=dict(os.environ), emit=emit,
                          should_stop=stop, digests=known_digests(store.paths.root),
                          expect=expectations(find_tree(job.root)))
        policy = failing_fast(ladder(plan)) if fail_fast else ladder(plan)
        outcome = sweep(context, policy)
        close(store)
    return outcome


def close(store: RunStore) -> None:
    """Table, picture, place and what to type next."""
    from infx.errors import InfxError
    from infx.report.picture import picture
    from infx.report.table import run_table, run_text
    from infx.results.load import load_run

    loaded = load_run(store.paths.root)
    if not loaded.results:
        typer.echo(f"nothing was measured; the run folder is {store.paths.root}", err=True)
        return
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(run_table(loaded))
    else:
        typer.echo(run_text(loaded), nl=False)
    drawn = store.paths.picture("pareto.svg")
    try:
        store.write_file(drawn, picture([loaded], drawn.name))
        typer.echo(f"picture   {drawn}")
    except InfxError as error:
        typer.echo(f"no picture: {error}", err=True)
    run = store.paths.root
    typer.echo(f"run       {run}\nnext:     infx show {run}\n          infx plot {run} -o pareto.png")
    if loaded.missing:
        typer.echo(f"          infx sweep --resume {run}")
    typer.echo(f"          infx changelog append {run}")
