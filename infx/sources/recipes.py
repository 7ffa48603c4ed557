"""Reading recipes: files below recipes/ → Recipe with the place of every word, or findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from infx.errors import UsageError
from infx.findings import Finding, Mark, Severity, did_you_mean
from infx.schema.recipe import Recipe
from infx.sources import modelio, yamlio
from infx.sources.codes import finding
from infx.sources.document import Document
from infx.sources.tree import Tree

PATTERN = "recipes/**/*.yaml"


@dataclass(frozen=True)
class RecipeFile:
    """One recipe file as read: ``recipe`` is None when an error finding forbids using it."""

    path: str
    key: str
    document: Document | None
    recipe: Recipe | None
    findings: tuple[Finding, ...]


def recipe_paths(tree: Tree) -> dict[str, str]:
    """Recipe key (file stem) → path, sorted by key. The first of two files with one stem wins; see duplicate_keys."""
    paths: dict[str, str] = {}
    for path in tree.glob(PATTERN):
        paths.setdefault(PurePosixPath(path).stem, path)
    return dict(sorted(paths.items()))


def duplicate_keys(tree: Tree) -> list[Finding]:
    """A finding for every recipe file whose stem another file has already."""
    first: dict[str, str] = {}
    found = []
    for path in tree.glob(PATTERN):
        stem = PurePosixPath(path).stem
        if first.setdefault(stem, path) != path:
            found.append(Finding(Mark(path), "P-012", Severity.ERROR,
                                 f"the recipe key {stem!r} is taken by {first[stem]}", "rename one of the two files"))
    return found


def read_recipe(tree: Tree, path: str) -> RecipeFile:
    """Read one recipe file; nothing stops at the first finding."""
    key = PurePosixPath(path).stem
    try:
        text = tree.read_bytes(path)
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return RecipeFile(path, key, None, None, (finding(Mark(path), "Y-028", str(error)),))
    document, findings = yamlio.load(text, path)
    if document is None:
        return RecipeFile(path, key, None, None, tuple(findings))
    recipe, more = modelio.parse(document, Recipe, given={"key": key})
    findings = [*findings, *more, *_spelled_twice(document)]
    if any(found.severity is Severity.ERROR for found in findings):
        recipe = None
    return RecipeFile(path, key, document, recipe, tuple(sorted(findings)))


def _spelled_twice(document: Document) -> list[Finding]:
    value = document.value if isinstance(document.value, dict) else {}
    places: list[tuple[str | int, ...]] = [("serve",)]
    places += [("overrides", i, "serve") for i in range(len(value.get("overrides") or ()))]
    arms = value.get("arms")
    places += [("arms", name, "serve") for name in (arms if isinstance(arms, dict) else ())]
    return [found for place in places for found in document.spelled_twice(*place)]


def select_keys(paths: dict[str, str], patterns: list[str]) -> list[str]:
    """Keys that the patterns name (exact, or a glob), in key order; every key when there is no pattern.

    Raises UsageError for a pattern that names none.
    """
    if not patterns:
        return list(paths)
    kept: set[str] = set()
    for pattern in patterns:
        named = [key for key in paths if key == pattern or PurePosixPath(key).match(pattern)]
        if not named:
            raise UsageError(f"no recipe is named {pattern!r}", allowed=", ".join(paths) or "(there are no recipes)",
                             hint=did_you_mean(pattern, paths) or "list them with `infx plan --keys`")
        kept.update(named)
    return [key for key in paths if key in kept]
