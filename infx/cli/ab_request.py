"""What ``infx ab`` asks for, turned into a trial: the interleaved plan, its cost, what it can find, its run folder."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from infx.cli.compare_request import Desk
from infx.cli.sweep_request import commit_of
from infx.compare.ab import (
    READY_GUESS_S,
    Sight,
    gpu_hours,
    interleave,
    left_of,
    repeats_for_budget,
    repeats_of,
    schedule_of,
    sights,
    twinned,
)
from infx.compare.sides import planned_facts, side_of
from infx.compare.verdict import Comparison, Options, compare
from infx.errors import InputError, UsageError
from infx.plan.load import plans_for
from infx.results.index import list_runs
from infx.results.load import LoadedRun, load_run
from infx.results.store import RunStore, new_run_id
from infx.run.launch import check_program
from infx.run.sweep import admit
from infx.run.workload import with_corpora
from infx.schema.plan import Block, Plan
from infx.schema.result import Run, Status
from infx.schema.runner import Runner
from infx.schema.version import CLIENT, RUN_FORMAT, __version__
from infx.sources.runners import get_runner
from infx.sources.tree import WorkingTree, find_tree

REPEATS = 6


@dataclass(frozen=True)
class Asked:
    """The options of ``infx ab``, as typed."""

    key: str | None
    arm: str | None
    against: str
    aa: bool
    repeats: int | None
    budget: float | None
    only: tuple[str, ...]
    runner: str | None
    quick: bool
    resume: Path | None
    out: Path


@dataclass(frozen=True)
class Trial:
    """An A/B that can start: ``arms`` are (A, B), None the base; ``left`` is what is still to be measured."""

    plan: Plan
    runner: Runner
    arms: tuple[str | None, str | None]
    repeats: int
    gpu_hours: float
    ready_said: str
    sights: list[Sight]
    options: Options
    open_store: Callable[[], RunStore]
    root: Path
    left: list[Block]
    folder: list[Path] = field(default_factory=list)

    def compared(self, run: Path) -> Comparison:
        """The run's arms compared as far as it has come, at the looks it has had."""
        loaded = load_run(run)
        first, second = (side_of(arm or "base", [loaded], arm) for arm in self.arms)
        return compare(first, second, replace(self.options, schedule_of=schedule_of(first, second)))


def trial(asked: Asked, cwd: Path) -> Trial:
    """Check what was asked and plan it. UsageError, InputError or RunnerError where it cannot start."""
    tree = find_tree(cwd)
    root = tree.root if isinstance(tree, WorkingTree) else cwd
    desk = Desk(cwd, asked.out, None, None, "repeats")
    if asked.resume is not None:
        return _resumed(asked, desk, root)
    if asked.key is None or (asked.arm is None and not asked.aa) or asked.runner is None:
        raise UsageError("say what to compare and where", allowed="infx ab KEY --arm NAME --runner NAME")
    if asked.repeats is not None and asked.budget is not None:
        raise UsageError("--repeats and --budget exclude each other")
    if asked.aa and (asked.arm is not None or asked.against != "base"):
        raise UsageError("--aa compares the recipe with itself; it takes neither --arm nor --against")
    if asked.arm == asked.against:
        raise UsageError(f"A and B are both {asked.arm!r}", hint="--aa compares a recipe with itself")
    runner = get_runner(tree, asked.runner)
    arms = () if asked.arm is None else (asked.arm, asked.against)
    plans = plans_for(tree, [asked.key], only=asked.only, arms=arms, quick=asked.quick)
    if len(plans) != 1:
        raise UsageError(f"an A/B is of one recipe; {asked.key!r} names {len(plans)}")
    admit(plans[0], runner)
    check_program(runner, root)
    plan = with_corpora(plans[0], runner, root, os.environ)
    plan = twinned(plan) if asked.aa else plan
    ready, said = _ready(asked.out, plan.recipe)
    repeats = asked.repeats or REPEATS
    if asked.budget is not None:
        repeats = repeats_for_budget(plan, asked.budget, ready)
    made = interleave(plan, repeats)
    created = time.time()
    run = Run(
        format_version=RUN_FORMAT, id=new_run_id(created, plan.recipe), recipe=plan.recipe, runner=runner.name,
        created_unix=created, harness_version=__version__, harness_commit=commit_of(root), client_version=CLIENT,
        client_host=socket.gethostname(), stands_in=runner.stands_in, quick=plan.quick, unofficial=plan.unofficial,
        command=["infx", *sys.argv[1:]],
    )
    return _trial(made, made.blocks, runner, desk, (ready, said), partial(RunStore.create, asked.out, run, made), root)


def _resumed(asked: Asked, desk: Desk, root: Path) -> Trial:
    assert asked.resume is not None
    if asked.key or asked.arm or asked.aa or asked.repeats or asked.budget or asked.only or asked.quick:
        raise UsageError("a resumed A/B keeps its plan; give --resume alone")
    loaded = desk.load(str(asked.resume))
    where = str(asked.resume)
    if repeats_of(loaded.plan) < 2:
        raise InputError("this run is no A/B", where=where, hint="infx sweep --resume goes on with it")
    if asked.runner not in (None, loaded.run.runner):
        raise UsageError(f"this run was made with the runner {loaded.run.runner!r}, not {asked.runner!r}", where=where,
                         hint="leave --runner out, or start a new A/B")
    left = left_of(loaded.plan, {s.id: s.block for s in loaded.starts.values()}, _measured(loaded))
    if not left:
        raise InputError("this A/B lacks nothing", where=where, hint=f"compare its arms with `infx compare {where}`")
    runner = get_runner(find_tree(desk.cwd), loaded.run.runner)
    admit(loaded.plan, runner)
    check_program(runner, root)
    return _trial(loaded.plan, left, runner, desk, _ready(asked.resume.parent, loaded.run.recipe),
                  partial(RunStore.open, loaded.path), root)


def _trial(plan: Plan, left: list[Block], runner: Runner, desk: Desk, ready: tuple[float, str],
           open_store: Callable[[], RunStore], root: Path) -> Trial:
    arms = tuple(dict.fromkeys(point.arm for point in plan.points))
    options = desk.options((), ())
    facts = {key: replace(fact, simulated=runner.stands_in) for key, fact in planned_facts(plan, arms[1]).items()}
    return Trial(plan=plan, runner=runner, arms=(arms[0], arms[1]), repeats=repeats_of(plan),
                 gpu_hours=gpu_hours(plan, ready[0], left), ready_said=ready[1],
                 sights=sights(plan, options.floor_of, facts), options=options, open_store=open_store, root=root,
                 left=left)


def _ready(runs: Path, recipe: str) -> tuple[float, str]:
    """Seconds that this recipe's engine took to become ready, from its newest run, or a guess; and which it is."""
    for path in reversed([run for run in list_runs(runs) if f"-{recipe}-" in run.name]):
        found = [s.ready_s for s in load_run(path).starts.values() if s.ready_s is not None]
        if found:
            return max(found), f"ready after {max(found):.0f} s as in {path.name}"
    return READY_GUESS_S, f"assuming {READY_GUESS_S:.0f} s until ready"


def _measured(loaded: LoadedRun) -> dict[str, set[str]]:
    measured: dict[str, set[str]] = {}
    for result in loaded.results:
        if result.status is not Status.INTERRUPTED:
            measured.setdefault(result.start, set()).add(result.point)
    return measured
