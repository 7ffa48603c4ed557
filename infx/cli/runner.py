"""``infx runner``: the profiles, whether a machine can measure by one, and what dead sweeps left."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli import complete
from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.schema.runner import Runner
    from infx.sources.tree import Tree

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True,
                  help="List runner profiles, check that one can measure here, clear up after dead sweeps.")

Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.runners,
                                       help="Runner profile (runners/NAME.yaml).")]


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """List the profiles: place, launch, and the labels that each serves."""
    from infx.sources.runners import get_runner, runner_paths
    from infx.sources.tree import find_tree

    tree = find_tree(Path.cwd())
    rows = [get_runner(tree, name) for name in runner_paths(tree)]
    if as_json:
        typer.echo(json.dumps([row.model_dump(mode="json", by_alias=True) for row in rows], indent=1))
        return
    for row in rows:
        serves = row.serves if isinstance(row.serves, str) else ", ".join(row.serves)
        typer.echo(f"{row.name:<20} {row.place}, {row.launch:<9} {serves:<22} {row.description}")


@app.command("check")
def check(
    name: Name,
    image: Annotated[list[str] | None, typer.Option("--image", metavar="REF", show_default=False, help="Look for this "
                     "image instead of those of the recipes that the runner serves; repeatable.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder in which run folders would be made.")] =
    Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Look whether a sweep could measure here: each check is ok, fails or unknown, with the reason.

    Exit code 4 when a check fails. What is unknown fails nothing.
    """
    from infx.run.preflight.look import check_runner

    tree, runner, root = _profile(name)
    images = list(image) if image else _images(tree, runner)
    checks = check_runner(runner, root=root, images=images, out=out, environment=dict(os.environ))
    bad = [one for one in checks if one.state == "fails"]
    if as_json:
        rows = [{"name": one.name, "state": one.state, "reason": one.reason, "hint": one.hint} for one in checks]
        typer.echo(json.dumps({"runner": name, "ok": not bad, "checks": rows}, indent=1))
    else:
        for one in checks:
            typer.echo(str(one))
        unknown = sum(one.state == "unknown" for one in checks)
        typer.echo(f"{len(checks)} checks: {len(bad)} fail, {unknown} unknown", err=True)
    if bad:
        raise typer.Exit(4)


@app.command("clean")
def clean(
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")] = False,
) -> None:
    """Remove what dead sweeps left: their containers, engine processes and lease notes. A living sweep's stay.

    Exit code 4 when something could not be removed.
    """
    from infx.run.preflight.leftovers import leftovers, remove

    _, runner, _ = _profile(name)
    found = leftovers(runner, dict(os.environ))
    failed = False
    for left in found:
        why = "" if dry_run else remove(runner, left)
        word = f"cannot remove ({why})" if why else "would remove" if dry_run else "removed"
        failed = failed or bool(why)
        typer.echo(f"{word:<14}{left.kind:<10} {left.id[:64]}  of {left.of}")
    if not found:
        typer.echo("nothing of a dead sweep is left")
    if failed:
        raise typer.Exit(4)


def _profile(name: str) -> tuple[Tree, Runner, Path]:
    from infx.sources.runners import get_runner
    from infx.sources.tree import WorkingTree, find_tree

    tree = find_tree(Path.cwd())
    return tree, get_runner(tree, name), tree.root if isinstance(tree, WorkingTree) else Path.cwd()


def _images(tree: Tree, runner: Runner) -> list[str]:
    """Images of the recipes that the runner serves, arms included; a placeholder is nobody's image."""
    from infx.schema.image import Pin, parse_image
    from infx.sources.recipes import read_recipe, recipe_paths

    found: list[str] = []
    for path in recipe_paths(tree).values():
        recipe = read_recipe(tree, path).recipe
        if recipe is None or (runner.serves != "any" and recipe.runner not in runner.serves):
            continue
        if runner.hardware is not None and recipe.hardware not in runner.hardware:
            continue
        found += [recipe.image, *(arm.image for arm in recipe.arms.values() if arm.image)]
    unusable = (Pin.PLACEHOLDER, Pin.PACKAGE)
    return [image for image in dict.fromkeys(found) if parse_image(image).pin not in unusable]
