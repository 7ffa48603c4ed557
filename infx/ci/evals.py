"""Owns which evals a sweep asks for: the selection rule of docs/ci.md, and the blocks that it makes. Pure.

``eval_points`` is the rule, alone in one function. Nothing runs these blocks yet; a plan lists them.
"""

from __future__ import annotations

from collections.abc import Sequence

from infx.changelog.coverage import Recipes, selected
from infx.ci.labels import Ask
from infx.plan.select import keep, one_block
from infx.schema.changelog import Change
from infx.schema.plan import AgenticWorkload, Plan, Point

LEAST = 16
"""Concurrency from which on a point of a fixed-sequence ladder is evaluated by default: batches form there."""


def eval_points(plan: Plan, *, every: bool = False) -> list[str]:
    """The points whose servers are to be evaluated, in plan order.

    ``every``: all of them. Else, of each arm and layout of a fixed-sequence recipe, the highest and the median of the
    concurrencies from 16 on (the highest of all where none is that high); of each arm of an agentic recipe its highest
    concurrency, once.
    """
    if every:
        return [point.key for point in plan.points]
    families: dict[str, list[Point]] = {}
    for point in plan.points:
        agentic = isinstance(point.workload, AgenticWorkload)
        families.setdefault(point.arm or "" if agentic else point.key.rpartition("/")[0], []).append(point)
    chosen: set[str] = set()
    for points in families.values():
        ladder = sorted(points, key=lambda point: point.concurrency)
        high = [point for point in ladder if point.concurrency >= LEAST]
        chosen.add(ladder[-1].key)
        if high and not isinstance(ladder[0].workload, AgenticWorkload):
            chosen.add(high[len(high) // 2].key)
    return [point.key for point in plan.points if point.key in chosen]


def eval_wants(ask: Ask, changes: Sequence[Change], recipes: Recipes) -> dict[str, bool]:
    """Recipe → whether every point is wanted, for the evals that labels and new entries ask for together.

    `evals-only` and `all-evals`, as labels or in an entry, ask for evals with any primary label; without them a sweep
    of all points does. Append-only entries add points to a curve that was evaluated: they ask for none of themselves.
    """
    found: dict[str, bool] = {}
    if ask.points == "none":
        return found
    for change in changes:
        explicit = ask.evals != "default" or change.evals_only or change.all_evals
        if not explicit and (ask.points != "all" or change.append_only):
            continue
        for key in selected(change, recipes):
            if key in recipes.head:
                found[key] = found.get(key, False) or ask.evals == "all" or change.all_evals
    return found


def explicit_evals(label: bool, changes: Sequence[Change], recipes: Recipes) -> list[str]:
    """What a ``label`` or an entry asks for by name, a line a recipe: without them no results may be reused."""
    return sorted({f"evals of {key}" for change in changes if label or change.evals_only or change.all_evals
                   for key in selected(change, recipes) if key in recipes.head})


def eval_blocks(plan: Plan, *, every: bool) -> list[Plan]:
    """One plan a block, named ``evals-…``, of the points that the rule chooses: one engine start serves them all."""
    chosen = keep(plan, set(eval_points(plan, every=every)))
    return [one.model_copy(update={"blocks": [one.blocks[0].model_copy(update={"id": f"evals-{block.id}"})]})
            for block in chosen.blocks for one in [one_block(chosen, block.id)]]
