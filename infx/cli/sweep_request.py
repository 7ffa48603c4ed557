"""What a sweep command asks for, turned into jobs: plan, runner, and how its run folder is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from infx.cli.lint_gate import lint_gate
from infx.compare.ab import repeats_of
from infx.errors import InputError, UsageError
from infx.plan.load import plans_for
from infx.plan.local import unofficial
from infx.plan.select import keep, one_block, only
from infx.results.load import RunState, load_run, missing_points
from infx.results.store import RunStore, new_run_id
from infx.run.launch import check_program
from infx.run.launch.container import local_id
from infx.run.place.node import node_name, on_node
from infx.run.sweep import admit
from infx.run.workload import with_corpora
from infx.schema.plan import Plan
from infx.schema.result import Run, Status
from infx.schema.runner import Runner
from infx.schema.version import CLIENT, RUN_FORMAT, __version__
from infx.sources.runners import get_runner
from infx.sources.tree import Tree, WorkingTree, find_tree


@dataclass(frozen=True)
class Request:
    """The options of ``infx sweep``, as typed."""

    keys: tuple[str, ...]
    runner: str | None
    only: tuple[str, ...]
    arms: tuple[str, ...]
    quick: bool
    resume: Path | None
    retry_failed: bool
    plan_file: Path | None
    block: str | None
    out: Path
    unofficial: bool = False
    image: str | None = None


@dataclass(frozen=True)
class Job:
    """One run to make or to go on with."""

    plan: Plan
    runner: Runner
    open_store: Callable[[], RunStore]
    root: Path


def requested(asked: Request, cwd: Path) -> Iterator[Job]:
    """The jobs of a request; all of it is checked before the first is yielded."""
    tree = find_tree(cwd)
    root = tree.root if isinstance(tree, WorkingTree) else cwd
    _check(asked)
    if asked.resume is not None:
        return iter([_resumed(asked, tree, root)])
    runner = get_runner(tree, asked.runner or "")
    if asked.plan_file is not None:
        plans = _planned(asked, asked.plan_file)
    else:
        plans = plans_for(tree, asked.keys, only=asked.only, arms=asked.arms, quick=asked.quick)
        lint_gate(tree, [plan.recipe for plan in plans], blocking=not (asked.unofficial or runner.stands_in))
    if asked.unofficial:
        image = None if asked.image is None else _local_image(runner, asked.image)
        plans = [unofficial(plan, image) for plan in plans]
    for plan in plans:
        admit(plan, runner)
    check_program(runner, root)
    plans = [with_corpora(plan, runner, root, os.environ) for plan in plans]
    return iter([_new(asked, plan, runner, root) for plan in plans])


def _check(asked: Request) -> None:
    """Options that contradict each other, or are missing."""
    sources = [name for name, given in (("recipe keys", asked.keys), ("--plan", asked.plan_file),
                                        ("--resume", asked.resume)) if given]
    if len(sources) != 1:
        raise UsageError("say what to sweep in one way" + (f", not by {' and '.join(sources)}" if sources else ""),
                         allowed="recipe keys, --plan FILE, or --resume RUN", hint="list keys with `infx plan --keys`")
    if asked.resume is None and asked.runner is None:
        raise UsageError("no runner is named", hint="add --runner NAME, e.g. --runner simulator")
    if asked.block is not None and asked.plan_file is None:
        raise UsageError("--block goes with --plan")
    if asked.plan_file is not None and (asked.arms or asked.quick):
        raise UsageError("--arm and --quick plan anew; a plan file is swept as it stands")
    if asked.image is not None and not asked.unofficial:
        raise UsageError("--image runs another build than the recipe pins", hint="add --unofficial: such results are "
                         "never publishable")
    if asked.unofficial and asked.resume is not None:
        raise UsageError("--unofficial plans anew; a resumed run stays what it was")
    if asked.retry_failed and asked.resume is None:
        raise UsageError("--retry-failed goes with --resume")
    if asked.resume is not None and (asked.only or asked.arms or asked.quick):
        raise UsageError("--only, --arm and --quick plan anew; a resumed run keeps its plan")


def _local_image(runner: Runner, image: str) -> str:
    """The id of an image of this machine, by which it is planned and run. Raises UsageError or RunnerError."""
    if runner.launch != "docker" or runner.container is None or runner.place != "here":
        raise UsageError(f"--image names a container image, but {runner.name!r} starts none on this machine",
                         where=f"runners/{runner.name}.yaml", allowed="a runner with place: here, launch: docker")
    return local_id(runner.container, image)


def _planned(asked: Request, path: Path) -> list[Plan]:
    """The plans of a file as ``infx plan --json`` writes it (a list), or of a run folder's plan.json."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        hint = "write one with `infx plan KEY --json > plan.json`"
        raise UsageError("no such plan file", where=str(path), hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=str(path)) from error
    plans = [read_plan_value(item, path) for item in (data if isinstance(data, list) else [data])]
    if asked.block is not None:
        plans = [plan for plan in plans if any(block.id == asked.block for block in plan.blocks)] or plans[:1]
        plans = [one_block(plan, asked.block) for plan in plans]
    return [only(plan, asked.only) for plan in plans]


def read_plan_value(value: object, path: Path) -> Plan:
    """A plan out of parsed JSON. Raises InputError when it is none, or of a newer format."""
    version = value.get("format-version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > RUN_FORMAT:
        raise InputError(f"the plan has format {version}, this infx reads up to {RUN_FORMAT}", where=str(path),
                         hint="use the infx that wrote it, or a newer one")
    try:
        return Plan.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "root"
        raise InputError(f"not a plan: {place}: {first['msg']} ({error.error_count()} errors)", where=str(path),
                         hint="write one with `infx plan KEY --json`") from error


def _new(asked: Request, plan: Plan, runner: Runner, root: Path) -> Job:
    created = time.time()
    run = Run(
        format_version=RUN_FORMAT, id=new_run_id(created, plan.recipe), recipe=plan.recipe, runner=runner.name,
        created_unix=created, harness_version=__version__, harness_commit=commit_of(root), client_version=CLIENT,
        client_host=_client_host(runner), stands_in=runner.stands_in, quick=plan.quick,
        unofficial=plan.unofficial or runner.launch == "endpoint",
        command=["infx", *sys.argv[1:]],
    )
    return Job(plan, runner, partial(RunStore.create, asked.out, run, plan), root)


def _client_host(runner: Runner) -> str:
    """Where the load client runs: on Slurm beside each engine."""
    away = runner.place == "slurm" and not on_node(os.environ)
    return "each start's node" if away else node_name(os.environ)


def _resumed(asked: Request, tree: Tree, root: Path) -> Job:
    assert asked.resume is not None
    loaded = load_run(asked.resume)
    name = asked.runner or loaded.run.runner
    if name != loaded.run.runner:
        raise UsageError(f"this run was made with the runner {loaded.run.runner!r}, not {name!r}",
                         where=str(asked.resume), hint="leave --runner out, or start a new run")
    if repeats_of(loaded.plan) > 1:
        raise InputError("this run is an A/B: its points are measured in several starts", where=str(asked.resume),
                         hint=f"infx ab --resume {asked.resume}")
    runner = get_runner(tree, name)
    retry = {Status.INTERRUPTED, Status.FAILED} if asked.retry_failed else {Status.INTERRUPTED}
    missing = missing_points(loaded, frozenset(retry))
    if not missing:
        failed = "; failed points need --retry-failed" if loaded.state is not RunState.COMPLETE else ""
        raise InputError(f"this run lacks no point{failed}", where=str(asked.resume),
                         hint=f"show it with `infx show {asked.resume}`")
    plan = keep(loaded.plan, set(missing))
    admit(plan, runner)
    check_program(runner, root)
    return Job(plan, runner, partial(RunStore.open, asked.resume), root)


def commit_of(root: Path) -> str | None:
    """The commit of the tree that runs, with ``+`` when files differ from it; None outside a repository."""
    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    return None if head is None else head + ("+" if git("status", "--porcelain") else "")
