"""What a branch changes against the trunk, read from git as data: its entries, its recipes, and the plans they want."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.changelog.coverage import Recipes
    from infx.changelog.driver import Repository
    from infx.ci.labels import Ask
    from infx.findings import Finding
    from infx.schema.changelog import Change
    from infx.schema.plan import Plan
    from infx.sources.tree import GitTree, Tree


@dataclass(frozen=True)
class Branch:
    """One commit ``head`` against where it left the trunk: nothing of it is executed, its files are only read."""

    clone: Repository
    head: str
    fork: str
    trunk: bytes
    changelog: bytes
    tree: GitTree
    recipes: Recipes


def branch_of(clone: Repository, base: str, head: str) -> Branch:
    """Read both sides. Raises UsageError for an unknown ref and InputError for a recipe that cannot be planned."""
    from infx.changelog.trees import recipes_of
    from infx.plan.load import plans_for
    from infx.sources.recipes import recipe_paths
    from infx.sources.tree import GitTree

    data = clone.bytes_at(head)
    fork, trunk = clone.base(base, head, data)
    tree = GitTree(clone.top, head)
    recipes = recipes_of(GitTree(clone.top, fork) if fork else None, tree)
    unreadable = [key for key in recipe_paths(tree) if key not in recipes.head]
    if unreadable:
        plans_for(tree, unreadable)
    return Branch(clone, head, fork, trunk, data, tree, recipes)


def gate_findings(branch: Branch, at: str) -> list[Finding]:
    """What the changelog's gate says of the branch ``at`` pr or merge."""
    from infx.changelog.gate import check

    return check(branch.changelog, branch.trunk, path=branch.clone.path, at=at,  # type: ignore[arg-type]
                 recipes=branch.recipes)


def fresh_changes(branch: Branch) -> list[Change]:
    """The branch's own change entries. Raises ChangelogError with every finding of the gate."""
    from infx.changelog.entries import ledger
    from infx.changelog.spans import split
    from infx.errors import ChangelogError
    from infx.findings import errors
    from infx.schema.changelog import Change

    bad = errors(gate_findings(branch, "pr"))
    if bad:
        lines = "\n".join(f"  {item}" for item in bad)
        raise ChangelogError(f"the changelog does not say what this branch changes\n{lines}", where=branch.clone.path,
                             hint="see the same with `infx changelog check --base REF`")
    fresh = ledger(branch.changelog, branch.clone.path)[len(split(branch.trunk).spans):]
    return [item.entry for item in fresh if isinstance(item.entry, Change) and item.retracted is None]


def wanted_plans(branch: Branch) -> tuple[list[tuple[Plan, frozenset[str] | None]], list[str]]:
    """The plans that the branch's entries want, each with the points wanted of it (None: all), and notes."""
    from infx.ci.plan import wanted
    from infx.plan.load import plans_for

    wants, notes = wanted(fresh_changes(branch), branch.recipes)
    plans = [(one, want.added) for want in wants
             for one in plans_for(branch.tree, [want.recipe], arms=list(dict.fromkeys(["base", *want.arms])))]
    return plans, notes if wants else [*notes, "no new change entry asks for a measurement"]


def eval_plans(branch: Branch, ask: Ask) -> list[tuple[Plan, bool]]:
    """The plans to be evaluated, base arm, and whether at every point."""
    from infx.ci.evals import eval_wants
    from infx.plan.load import plans_for

    wants = eval_wants(ask, fresh_changes(branch), branch.recipes)
    return [(plan, every) for key, every in wants.items() for plan in plans_for(branch.tree, [key])]


def wanted_points(branch: Branch) -> list[Plan]:
    """What the branch's entries want to be measured, in full: plans with just the wanted points."""
    from infx.plan.select import keep

    return [plan if keys is None else keep(plan, set(keys)) for plan, keys in wanted_plans(branch)[0]]


def runner_of(tree: Tree) -> Callable[[Plan], str]:
    """Names the first profile, by name, that serves a plan's label and may sweep it."""
    from infx.errors import RunnerError
    from infx.run.sweep import admit
    from infx.sources.runners import get_runner, runner_paths

    profiles = [get_runner(tree, name) for name in runner_paths(tree)]
    measuring = [profile for profile in profiles if not profile.stands_in and profile.launch != "endpoint"]

    def choose(plan: Plan) -> str:
        serving = [profile for profile in measuring if profile.serves == "any" or plan.label in profile.serves]
        if not serving:
            raise RunnerError(f"no runner profile serves the label {plan.label!r} of {plan.recipe}",
                              where="runners/", hint="add the label to a profile's `serves`")
        refusal = None
        for profile in serving:
            try:
                admit(plan, profile)
            except RunnerError as error:
                refusal = refusal or error
            else:
                return profile.name
        assert refusal is not None
        raise refusal

    return choose
