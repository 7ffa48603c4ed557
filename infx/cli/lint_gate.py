"""What lint says before a sweep: an error stops one that measures, and is only said where an engine stands in."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from infx.errors import InputError
from infx.findings import errors
from infx.lint.about import linter
from infx.sources.catalog import load_catalog
from infx.sources.recipes import read_recipe, recipe_paths
from infx.sources.tree import Tree


def lint_gate(tree: Tree, keys: Sequence[str], *, blocking: bool) -> None:
    """Lint the recipes of ``keys``. Raises InputError with every error when ``blocking``, else prints them."""
    check, waivers = linter(tree)
    catalog, _ = load_catalog(tree)
    paths = recipe_paths(tree)
    found = sorted({*waivers, *(one for key in keys for one in check(read_recipe(tree, paths[key]), catalog))})
    bad = errors(found)
    if bad and blocking:
        raise InputError("\n".join(["lint finds what would make these results wrong:", *map(str, bad)]),
                         hint="mend the recipe (`infx validate --explain CODE`), or sweep it with --unofficial: such "
                         "results are never publishable")
    for finding in bad:
        print(f"lint: {finding}", file=sys.stderr)
