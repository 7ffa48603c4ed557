"""What a shell completes: recipe keys, points, arms, runner profiles, codes and schemas of the tree around the caller.

Nothing heavy is loaded until a Tab asks for it; keys and profiles need file names alone. What cannot be read
completes to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from infx.schema.recipe import Recipe


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Recipe keys that are not named yet."""
    named = _words(ctx, "keys")
    return [key for key in _stems("recipes/**/*.yaml") if key.startswith(incomplete) and key not in named]


def runners(ctx: typer.Context, incomplete: str) -> list[str]:
    """Runner profiles."""
    return [name for name in _stems("runners/*.yaml") if name.startswith(incomplete)]


def points(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ends of point keys (tp2/c64) of the recipes that are named; of every recipe where none is."""
    from infx.plan.expand import point_key
    from infx.schema.plan import Parallel

    ends: dict[str, None] = {}
    for recipe in _recipes(ctx):
        for rung in recipe.ladder:
            layout = Parallel(tp=rung.tp, pp=rung.pp, dp=rung.dp, ep=rung.ep, gpus=1)
            for concurrency in rung.concurrencies():
                ends[point_key("", None, layout, concurrency).removeprefix("/")] = None
    return [end for end in ends if end.startswith(incomplete)]


def arms(ctx: typer.Context, incomplete: str) -> list[str]:
    """``base`` and the arms of the recipes that are named."""
    found = dict.fromkeys(["base", *(name for recipe in _recipes(ctx) for name in recipe.arms)])
    return [name for name in found if name.startswith(incomplete)]


def lint_codes(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Codes of findings with their titles."""
    from infx.lint.pages import codes

    return [(code, page[0]) for code, page in codes().items() if code.startswith(incomplete.upper())]


def schema_names(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Kinds of files with where they lie, and groups of them."""
    from infx.schema.export import GROUPS, KINDS

    named = _words(ctx, "names")
    every = [*((name, kind.files) for name, kind in KINDS.items()), *((group, "all of them") for group in GROUPS)]
    return [item for item in every if item[0].startswith(incomplete) and item[0] not in named]


def _stems(pattern: str) -> list[str]:
    from infx.errors import InfxError
    from infx.sources.tree import find_tree

    try:
        return sorted({PurePosixPath(path).stem for path in find_tree(Path.cwd()).glob(pattern)})
    except (InfxError, OSError):
        return []


def _recipes(ctx: typer.Context) -> Iterator[Recipe]:
    """Readable recipes that the command line names so far (exact or glob); all where it names none.

    After an option that lacks its value yet, the parser has left the words before it in ``args``.
    """
    from infx.errors import InfxError
    from infx.sources.recipes import read_recipe, recipe_paths, select_keys
    from infx.sources.tree import find_tree

    try:
        tree = find_tree(Path.cwd())
        paths = recipe_paths(tree)
        for key in select_keys(paths, _words(ctx, "keys") or _words(ctx, "key") or list(ctx.args)):
            recipe = read_recipe(tree, paths[key]).recipe
            if recipe is not None:
                yield recipe
    except (InfxError, OSError):
        return


def _words(ctx: typer.Context, name: str) -> list[str]:
    said: Any = ctx.params.get(name) or []
    return [said] if isinstance(said, str) else [str(word) for word in said]
