"""Owns the step from labels and change entries to the jobs of a sweep: which points, in which blocks, in what order.

Pure. A job is a plan of one block, so that a runner needs nothing else: ``infx sweep --plan FILE --block ID``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infx.changelog.coverage import Recipes, selected
from infx.ci.estimate import STARTUP_S, Estimate, estimate, first_point_cost
from infx.ci.evals import eval_blocks
from infx.ci.labels import Ask
from infx.errors import InputError
from infx.plan.fingerprint import point_fingerprint
from infx.plan.select import keep, one_block
from infx.schema.changelog import Change
from infx.schema.plan import AgenticWorkload, Block, Plan, Point

FAST_DURATION_S = 1200.0
FAST_WARMUP_TURNS = 1


@dataclass(frozen=True)
class Wanted:
    """What change entries want of one recipe: ``arms`` beside the base, and only these ``added`` points, or all."""

    recipe: str
    arms: tuple[str, ...]
    added: frozenset[str] | None


@dataclass(frozen=True)
class Job:
    """One engine start: the ``plan`` of one block, and the runner profile that serves its label."""

    plan: Plan
    runner: str

    @property
    def block(self) -> Block:
        return self.plan.blocks[0]

    @property
    def name(self) -> str:
        """Printable, unique in a sweep."""
        return f"{self.plan.recipe} {self.block.id}"


@dataclass(frozen=True)
class Sweep:
    """The jobs of a sweep: ``canary`` first where there is one, then ``jobs`` side by side; ``notes`` for people.

    ``evals`` are blocks to be evaluated, with real acceptance, which nothing runs yet.
    """

    ask: Ask
    canary: Job | None
    jobs: tuple[Job, ...]
    estimate: Estimate
    notes: tuple[str, ...]
    evals: tuple[Job, ...] = ()


def wanted(changes: Sequence[Change], recipes: Recipes) -> tuple[list[Wanted], list[str]]:
    """What new change entries ask to be measured, by recipe, and notes on what they leave unmeasured.

    A regular entry wants every point of its recipes; an append-only one the points that the branch adds. Arms are
    measured where an entry's claim names them. That append-only entries change nothing else, and that every changed
    recipe is covered, is the changelog gate's business (C-021, C-023) and must have been checked.
    """
    notes: list[str] = []
    found: dict[str, Wanted] = {}
    for change in changes:
        for key in selected(change, recipes):
            if key not in recipes.head:
                notes.append(f"{key} is removed by this branch: nothing to measure")
            elif change.evals_only:
                notes.append(f"{key}: an evals-only entry asks for no throughput")
            else:
                found[key] = _joined(found.get(key), _one(change, key, recipes))
    for want in found.values():
        moved = sorted({arm for arm in map(_arm, _moved(recipes, want.recipe)) if arm and arm not in want.arms})
        if moved:
            notes.append(f"{want.recipe}: arms {', '.join(moved)} change too and are not measured; "
                         "an entry's claim (`expect`) that names an arm has it measured")
    return list(found.values()), notes


def sweep(ask: Ask, plans: Sequence[tuple[Plan, frozenset[str] | None]], runner_of: Callable[[Plan], str], *,
          shards: int = 1, startup_s: float = STARTUP_S, notes: Sequence[str] = (),
          evals: Sequence[tuple[Plan, bool]] = ()) -> Sweep:
    """Jobs for ``plans``, each with the point keys wanted of it (None: all), as ``ask`` wants them.

    ``evals``: plans to be evaluated, and whether at every point. ``runner_of`` names the profile for a plan or raises
    RunnerError. ``shards`` cuts each block into at most so many parts: more engine starts for less wall time. Raises
    InputError for fewer than one shard.
    """
    if shards < 1:
        raise InputError(f"{shards} shards", where="--shards", allowed="1 or more")
    said = list(notes)
    graded = tuple(Job(part, runner_of(part)) for plan, every in evals for part in eval_blocks(plan, every=every))
    if graded:
        points = sum(len(job.block.points) for job in graded)
        said.append(f"points to be evaluated: {points}, engine starts for that: {len(graded)}; listed, not run and not "
                    "in the costs: infx has no evals yet")
    measuring = ask.points != "none" and ask.evals != "only"
    chosen = [narrowed for plan, keys in plans if measuring and (narrowed := _narrowed(plan, keys, ask)) is not None]
    canary, rest = _split_canary(chosen, startup_s) if ask.canary else (None, chosen)
    first = None if canary is None else Job(canary, runner_of(canary))
    jobs = tuple(Job(part, runner_of(part)) for plan in rest for part in _parts(plan, shards))
    costs = estimate([first.plan] if first else [], [job.plan for job in jobs], startup_s)
    return Sweep(ask, first, jobs, costs, tuple(said), graded)


def lowest(plan: Plan) -> Plan:
    """The lowest concurrency of each rung family: the points of one arm and one layout."""
    best: dict[str, Point] = {}
    for point in plan.points:
        family = point.key.rpartition("/")[0]
        if family not in best or point.concurrency < best[family].concurrency:
            best[family] = point
    return keep(plan, {point.key for point in best.values()})


def fast(plan: Plan) -> Plan:
    """Agentic points with one warm-up turn a lane and 1,200 s at most: never publishable, of other fingerprints."""
    points = [_fast_point(point) for point in plan.points]
    return plan if points == plan.points else plan.model_copy(update={"points": points, "unofficial": True})


def _fast_point(point: Point) -> Point:
    if not isinstance(point.workload, AgenticWorkload):
        return point
    workload = point.workload.model_copy(update={"warmup_turns": min(point.workload.warmup_turns, FAST_WARMUP_TURNS),
                                                 "duration_s": min(point.workload.duration_s, FAST_DURATION_S)})
    print_ = point_fingerprint(server=point.server, workload=workload, concurrency=point.concurrency)
    return point.model_copy(update={"workload": workload, "fingerprint": print_})


def _narrowed(plan: Plan, keys: frozenset[str] | None, ask: Ask) -> Plan | None:
    if keys is not None:
        plan = keep(plan, set(keys))
    if ask.points == "lowest":
        plan = lowest(plan)
    return (fast(plan) if ask.fast else plan) if plan.points else None


def _split_canary(plans: Sequence[Plan], startup_s: float) -> tuple[Plan | None, list[Plan]]:
    """The lowest-concurrency point of the block where that costs least, and the plans without it."""
    blocks = [(plan, block) for plan in plans for block in plan.blocks]
    if not blocks:
        return None, list(plans)
    home, block = min(blocks, key=lambda pair: first_point_cost(*pair, startup_s))
    point = min((home.point(key) for key in block.points), key=lambda item: item.concurrency)
    rest = []
    for plan in plans:
        left = {item.key for item in plan.points} - ({point.key} if plan is home else set())
        if left:
            rest.append(keep(plan, left))
    return _renamed(keep(home, {point.key}), "canary-{}"), rest


def _parts(plan: Plan, shards: int) -> list[Plan]:
    """One plan a block, or a part of one: consecutive points, parts of equal size as far as that goes."""
    parts = []
    for block in plan.blocks:
        alone = one_block(plan, block.id)
        count = min(shards, len(block.points))
        edges = [len(block.points) * index // count for index in range(count + 1)]
        for index in range(count):
            part = keep(alone, set(block.points[edges[index]:edges[index + 1]]))
            parts.append(part if count == 1 else _renamed(part, f"{{}}-{index + 1}of{count}"))
    return parts


def _renamed(plan: Plan, pattern: str) -> Plan:
    blocks = [block.model_copy(update={"id": pattern.format(block.id)}) for block in plan.blocks]
    return plan.model_copy(update={"blocks": blocks})


def _one(change: Change, key: str, recipes: Recipes) -> Wanted:
    arms = dict.fromkeys(arm for claim in change.expect for arm in (claim.arm, claim.against) if arm)
    added = frozenset(recipes.head[key]) - frozenset(recipes.base.get(key, {})) if change.append_only else None
    return Wanted(key, tuple(arms), added)


def _joined(one: Wanted | None, other: Wanted) -> Wanted:
    if one is None:
        return other
    added = None if one.added is None or other.added is None else one.added | other.added
    return Wanted(one.recipe, tuple(dict.fromkeys([*one.arms, *other.arms])), added)


def _moved(recipes: Recipes, key: str) -> list[str]:
    before = recipes.base.get(key)
    if before is None:
        return []
    return [point for point, print_ in recipes.head[key].items() if before.get(point) != print_]


def _arm(point_key: str) -> str:
    return point_key.split("/", 1)[0].partition("@")[2]
