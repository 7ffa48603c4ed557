"""``infx ab``: two arms of a recipe, engine starts interleaved, compared as they come in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli import complete
from infx.cli.options import Only, Out, Quick, RunnerName

if TYPE_CHECKING:
    from infx.cli.ab_request import Trial
    from infx.compare.ab import Sight
    from infx.compare.verdict import Comparison


def command(
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", show_default=False, help="Recipe key.",
                                                autocompletion=complete.keys)] = None,
    arm: Annotated[str | None, typer.Option("--arm", metavar="NAME", show_default=False,
                                            autocompletion=complete.arms, help="The baseline arm, A.")] = None,
    against: Annotated[str, typer.Option("--against", metavar="NAME", autocompletion=complete.arms,
                                         help="The arm that is judged, B.")] = "base",
    aa: Annotated[bool, typer.Option("--aa", help="In place of --arm: the recipe against itself, for its noise floor.")
                  ] = False,
    repeats: Annotated[int | None, typer.Option("--repeats", metavar="N", show_default=False,
                                                help="Engine starts an arm and layout at most; default 6.")] = None,
    budget: Annotated[float | None, typer.Option("--budget", metavar="H", show_default=False,
                                                 help="As many starts as this many GPU-hours allow.")] = None,
    only: Only = None,
    runner_name: RunnerName = None,
    quick: Quick = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and what it can find; start no engine.")
                       ] = False,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="RUN", show_default=False,
                                                help="Go on with this A/B.")] = None,
    out: Out = Path("runs"),
) -> None:
    """Compare two arms on one machine: starts in ABBA order, stopped early when every verdict stands."""
    from infx.cli.ab_request import Asked, trial

    asked = Asked(key=key, arm=arm, against=against, aa=aa, repeats=repeats, budget=budget, only=tuple(only or ()),
                  runner=runner_name, quick=quick, resume=resume, out=out)
    made = trial(asked, Path.cwd())
    _announce(made)
    if dry_run:
        return
    stopped = _run(made)
    _conclude(made, cut=stopped not in (None, 1))
    if stopped is not None:
        raise typer.Exit(stopped)


def _announce(trial: Trial) -> None:
    """Starts, GPU-hours, looks, and the smallest effect that can be found, before anything starts."""
    from infx.measure.stats.sequential import looks

    plan = trial.plan
    starts = len(trial.left)
    images = {server.image for server in plan.servers.values()}
    if len(images) > 1:
        typer.echo(f"the arms differ in image: {', '.join(sorted(images))}")
    order = "".join("AB"[trial.arms.index(plan.point(b.points[0]).arm)] for b in trial.left)
    order = order if len(order) <= 24 else f"{order[:24]}…"
    typer.echo(f"A = {trial.arms[0] or 'base'}, B = {trial.arms[1] or 'base'} of {plan.recipe} on {trial.runner.name}")
    typer.echo(f"{starts} engine starts, at least {trial.gpu_hours:.2f} GPU-hours ({trial.ready_said}); order {order}")
    schedule = looks(trial.repeats)
    if len(schedule) > 1:
        typer.echo(f"looks after {', '.join(map(str, schedule))} starts an arm; stops when every verdict stands")
    for line in _sights(trial.sights, trial.repeats):
        typer.echo(line)


def _sights(sights: list[Sight], repeats: int) -> list[str]:
    def starts(value: int | None) -> str:
        return "over 400" if value is None else str(value)

    lines = [f"with {repeats} starts an arm, at 80 % power (one declared point / every point of a curve):"]
    said: dict[str, list[str]] = {}
    for s in sights:
        found = " / ".join("–" if v is None else f"{v:.1%}" for v in (s.smallest, s.smallest_curve))
        text = (f"spread {s.sd:.1%} ({'stored' if s.stored else 'assumed'}): smallest gain {found}; "
                f"for a gain of 5 % {starts(s.for_gain)} / {starts(s.for_gain_curve)} starts")
        if s.margin is not None:
            text += (f", to show it the same within {s.margin:.0%} "
                     f"{starts(s.for_margin)} / {starts(s.for_margin_curve)} starts")
        said.setdefault(text, []).append(s.metric)
    return [*lines, *(f"  {', '.join(metrics)}: {text}" for text, metrics in said.items())]


def _run(trial: Trial) -> int | None:
    """Sweep the interleaved plan; the exit code when it was stopped, else None."""
    import os

    from infx.cli.progress import narrator
    from infx.cli.signals import stop_signals
    from infx.compare.ab import early_stop, settled
    from infx.results.load import known_digests
    from infx.run.context import Context
    from infx.run.events import SweepBegan
    from infx.run.expected import expectations
    from infx.run.lease import lease_folder, machine_lease
    from infx.run.sweep import sweep
    from infx.sources.tree import find_tree

    plan, runner = trial.plan, trial.runner

    def enough(n: int) -> bool:
        stands = settled(trial.compared(store.paths.root))
        typer.echo(f"look after {n} starts an arm: {'every verdict stands, stopping' if stands else 'going on'}",
                   err=True)
        return stands

    holder = {"recipe": plan.recipe, "runner": runner.name}
    with (stop_signals() as stop, machine_lease(lease_folder(dict(os.environ)), holder, wanted=runner.exclusive),
          trial.open_store() as store, narrator(sys.stderr) as emit):
        emit(SweepBegan(store.paths.root.name, str(store.paths.root), len(plan.points), len(trial.left)))
        context = Context(plan=plan, runner=runner, store=store, root=trial.root, environment=dict(os.environ),
                          emit=emit, should_stop=stop, digests=known_digests(store.paths.root),
                          expect=expectations(find_tree(trial.root)))
        outcome = sweep(context, early_stop(plan, enough, trial.left))
        trial.folder.append(store.paths.root)
    if outcome.stopped:
        return stop.exit_code
    return None if outcome.ok else 1


def _conclude(trial: Trial, *, cut: bool) -> None:
    """The comparison as far as it has come, the drift, and what to type next."""
    from infx.cli.compare import print_comparison
    run = trial.folder[-1]
    found: Comparison = trial.compared(run)
    print_comparison(found, as_json=False, md=False)
    a, b = (arm or "base" for arm in trial.arms)
    typer.echo(f"run       {run}\nnext:     infx compare {run}@{a} {run}@{b} --md")
    if cut:
        typer.echo(f"          infx ab --resume {run}")
