"""Owns the step from two trees to what the gate knows of recipes: their fingerprints and scenarios."""

from __future__ import annotations

from infx.changelog.coverage import Recipes
from infx.plan.load import fingerprints
from infx.sources.recipes import read_recipe, recipe_paths
from infx.sources.tree import Tree


def recipes_of(base: Tree | None, head: Tree) -> Recipes:
    """Recipes where the branch left the trunk and as they are now; a base of None has none."""
    scenarios: dict[str, str] = {}
    for tree in (base, head):
        for key, path in recipe_paths(tree).items() if tree is not None else ():
            recipe = read_recipe(tree, path).recipe
            if recipe is not None:
                scenarios[key] = recipe.scenario.kind
    return Recipes(fingerprints(base) if base is not None else {}, fingerprints(head), scenarios)
