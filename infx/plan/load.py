"""From a tree to checked recipes and plans: the one way that commands, gates and runners take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from infx.errors import InputError, UsageError
from infx.findings import Finding, did_you_mean, errors
from infx.plan import select
from infx.plan.check import check_recipe
from infx.plan.expand import expand
from infx.plan.facts import check_golden, names_of, plan_facts
from infx.plan.quick import quick as quickened
from infx.schema.catalog import Catalog
from infx.schema.plan import Plan
from infx.schema.recipe import Recipe
from infx.sources import recipes as recipe_source
from infx.sources import runners as runner_source
from infx.sources.catalog import load_catalog
from infx.sources.recipes import RecipeFile
from infx.sources.tree import Tree, WorkingTree


@dataclass(frozen=True)
class Checked:
    """Findings of a check and how many files it read."""

    files: int
    findings: tuple[Finding, ...]


def check_all(tree: Tree, paths: Sequence[Path], cwd: Path,
              more: Callable[[RecipeFile, Catalog], list[Finding]] | None = None) -> Checked:
    """Check the catalog, and the recipes and profiles at ``paths`` (files or folders; none: all of the tree).

    ``more`` is a further check of each recipe file. A file outside of the tree is checked as a recipe. Raises
    UsageError for a path that names none of these.
    """
    catalog, findings = load_catalog(tree)
    found = [*findings, *recipe_source.duplicate_keys(tree)]
    chosen = _chosen(tree, paths, cwd)
    for home, path, shown in chosen:
        if PurePosixPath(path).parts[0] == "runners":
            said = runner_source.read_runner(home, path)[1]
        else:
            file = recipe_source.read_recipe(home, path)
            said = [*check_file(file, catalog), *(more(file, catalog) if more else ())]
        found += [replace(one, where=replace(one.where, path=shown)) for one in said]
    return Checked(len(chosen), tuple(sorted(set(found))))


def check_file(file: RecipeFile, catalog: Catalog) -> list[Finding]:
    """Every finding of one recipe file: reading, schema, and what the catalog says."""
    found = list(file.findings)
    if file.recipe is not None and file.document is not None:
        found += check_recipe(file.recipe, file.document, names_of(catalog))
        found += check_golden(file.recipe, file.document, catalog)
    return sorted(found)


def plans_for(tree: Tree, keys: Sequence[str], *, only: Sequence[str] = (), arms: Sequence[str] = (),
              quick: bool = False) -> list[Plan]:
    """Plans of the recipes that ``keys`` (exact or globs; none: all) name.

    ``arms`` replaces the base by these arms (``base`` names the base); a recipe without one of them is an
    error where it was named exactly. Raises InputError with every finding, UsageError for unknown names.
    """
    catalog, findings = load_catalog(tree)
    _refuse(findings, "configs/")
    paths = recipe_source.recipe_paths(tree)
    _refuse(recipe_source.duplicate_keys(tree), "recipes/")
    plans = [plan_of(tree, paths[key], catalog, arms) for key in recipe_source.select_keys(paths, list(keys))]
    if only:
        plans = _only(plans, only)
    return [quickened(plan) for plan in plans] if quick else plans


def plan_of(tree: Tree, path: str, catalog: Catalog, arms: Sequence[str] = ()) -> Plan:
    """The plan of one recipe file. Raises InputError with its findings, UsageError for an unknown arm."""
    file = recipe_source.read_recipe(tree, path)
    _refuse(check_file(file, catalog), path)
    assert file.recipe is not None
    return expand(file.recipe, plan_facts(file.recipe, catalog, tree), source=tree.label,
                  arms=_arms(file.recipe, arms))


def fingerprints(tree: Tree) -> dict[str, dict[str, str]]:
    """Recipe key → point key → fingerprint, for every readable recipe of a tree, arms included."""
    catalog, _ = load_catalog(tree)
    found: dict[str, dict[str, str]] = {}
    for key, path in recipe_source.recipe_paths(tree).items():
        file = recipe_source.read_recipe(tree, path)
        if file.recipe is None or errors(check_file(file, catalog)):
            continue
        plan = expand(file.recipe, plan_facts(file.recipe, catalog, tree), source=tree.label,
                      arms=(None, *file.recipe.arms))
        found[key] = {point.key: point.fingerprint for point in plan.points}
    return found


def _arms(recipe: Recipe, wanted: Sequence[str]) -> tuple[str | None, ...]:
    for name in wanted:
        if name != "base" and name not in recipe.arms:
            raise UsageError(f"{recipe.key} has no arm {name!r}", allowed=", ".join(["base", *recipe.arms]),
                             hint=did_you_mean(name, recipe.arms))
    return tuple(None if name == "base" else name for name in wanted) or (None,)


def _only(plans: list[Plan], patterns: Sequence[str]) -> list[Plan]:
    """Apply --only over several recipes: a pattern must name a point of at least one of them."""
    if len(plans) == 1:
        return [select.only(plans[0], patterns)]
    kept = []
    used: set[str] = set()
    for plan in plans:
        mine = [pattern for pattern in patterns if select.matches(plan, pattern)]
        used.update(mine)
        if mine:
            kept.append(select.only(plan, mine))
    for pattern in patterns:
        if pattern not in used:
            raise UsageError(f"no point is named {pattern!r}", hint="list them with `infx plan --keys`")
    return kept


def _refuse(findings: Sequence[Finding], where: str) -> None:
    bad = errors(findings)
    if bad:
        lines = "\n".join(f"  {item}" for item in bad)
        raise InputError(f"{len(bad)} error{'s' if len(bad) > 1 else ''}\n{lines}", where=where)


def _chosen(tree: Tree, paths: Sequence[Path], cwd: Path) -> list[tuple[Tree, str, str]]:
    """(tree, path in it, path to show) of every file that ``paths`` name, once each."""
    every = [*tree.glob(recipe_source.PATTERN), *tree.glob(runner_source.PATTERN)]
    if not paths:
        return [(tree, name, name) for name in every]
    root = Path(tree.label).resolve() if isinstance(tree, WorkingTree) else None
    chosen: dict[tuple[str, str], tuple[Tree, str, str]] = {}
    for path in paths:
        full = (cwd / path).resolve()
        inside = full.relative_to(root).as_posix() if root is not None and full.is_relative_to(root) else None
        named = [] if inside is None else [name for name in every if PurePosixPath(name).is_relative_to(inside)]
        if named:
            chosen |= {(tree.label, name): (tree, name, name) for name in named}
        elif full.is_file():
            chosen[str(full), ""] = (WorkingTree(full.parent), full.name, str(path))
        else:
            raise UsageError(f"no recipe or runner profile at {path}", where=tree.label,
                             hint="recipes lie below recipes/ and profiles in runners/, as .yaml files")
    return list(chosen.values())
