"""Owns the way from a tree to lint findings, explanations and differences: what commands call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from infx.errors import UsageError
from infx.findings import Finding
from infx.lint.diff import Difference, Side, compare
from infx.lint.engine import lint
from infx.lint.explain import Explanation, explain
from infx.lint.rules.image import UpstreamImage
from infx.lint.view import RecipeView
from infx.plan import select
from infx.plan.load import plan_of
from infx.schema.catalog import Catalog
from infx.schema.recipe import Recipe
from infx.sources import recipes as recipe_source
from infx.sources.catalog import load_catalog
from infx.sources.recipes import RecipeFile, read_recipe
from infx.sources.tree import Tree
from infx.sources.waivers import load_waivers


def linter(tree: Tree) -> tuple[Callable[[RecipeFile, Catalog], list[Finding]], list[Finding]]:
    """A check of one recipe file by every rule under the tree's waivers, and the findings of the waivers."""
    waivers, found = load_waivers(tree)

    def check(file: RecipeFile, catalog: Catalog) -> list[Finding]:
        if file.recipe is None or file.document is None:
            return []
        waived = any(UpstreamImage.code in one.rules and file.key in one.recipes for one in waivers)
        return lint(file.recipe, file.document, catalog, waivers, beside=_every(tree) if waived else None)

    return check, found


def _every(tree: Tree) -> tuple[Recipe, ...]:
    """Every readable recipe of the tree."""
    read = (read_recipe(tree, path).recipe for path in recipe_source.recipe_paths(tree).values())
    return tuple(recipe for recipe in read if recipe is not None)


def explanations(tree: Tree, keys: Sequence[str], *, only: Sequence[str] = (), arms: Sequence[str] = ()
                 ) -> list[Explanation]:
    """Explanations of every point that the arguments name. Raises UsageError and InputError as plans do."""
    catalog, _ = load_catalog(tree)
    paths = recipe_source.recipe_paths(tree)
    found: list[Explanation] = []
    for key in recipe_source.select_keys(paths, list(keys)):
        found += _side(tree, paths[key], catalog, arms, only).explanations
    if only and not found:
        raise UsageError(f"no point is named {', '.join(only)}", hint="list them with `infx plan --keys`")
    return found


def differences(base: Tree, tree: Tree, keys: Sequence[str], *, arms: Sequence[str] = ()) -> list[Difference]:
    """What changed between two trees: one difference a recipe that any point of which differs, or that was named."""
    old_catalog, new_catalog = load_catalog(base)[0], load_catalog(tree)[0]
    old, new = recipe_source.recipe_paths(base), recipe_source.recipe_paths(tree)
    every = dict(sorted({**old, **new}.items()))
    found = []
    for key in recipe_source.select_keys(every, list(keys)):
        before = _side(base, old[key], old_catalog, arms) if key in old else None
        after = _side(tree, new[key], new_catalog, arms) if key in new else None
        difference = compare(key, before, after)
        if keys or difference.changed or difference.added or difference.removed:
            found.append(difference)
    return found


def as_dict(item: Any) -> dict[str, Any]:
    """An explanation or a difference as plain data."""
    assert is_dataclass(item) and not isinstance(item, type)
    return asdict(item)


def _side(tree: Tree, path: str, catalog: Catalog, arms: Sequence[str], only: Sequence[str] = ()) -> Side:
    plan = plan_of(tree, path, catalog, arms)
    if only:
        mine = [pattern for pattern in only if select.matches(plan, pattern)]
        plan = select.only(plan, mine) if mine else select.keep(plan, set())
    file = read_recipe(tree, path)
    assert file.recipe is not None and file.document is not None
    return Side(plan, explain(RecipeView(file.recipe, file.document, catalog), plan))
