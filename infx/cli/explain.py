"""``infx explain``: what each point will do before it runs, and what a change to a recipe changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Arm, AsJson, Keys, Only

if TYPE_CHECKING:
    from infx.lint.diff import Difference
    from infx.lint.explain import Explanation


def command(
    keys: Keys = None,
    only: Only = None,
    arm: Arm = None,
    diff: Annotated[str | None, typer.Option("--diff", metavar="REF", show_default=False,
                                             help="Compare with this revision, point by point.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the command, features, graphs, memory and roofline of each point; with --diff, what changed since REF."""
    from infx.lint import about
    from infx.sources.tree import GitTree, WorkingTree, find_tree

    tree = find_tree(Path.cwd())
    if diff is not None:
        base = GitTree(tree.root if isinstance(tree, WorkingTree) else Path.cwd(), diff)
        differences = about.differences(base, tree, keys or [], arms=arm or [])
        if as_json:
            typer.echo(json.dumps([about.as_dict(item) for item in differences], indent=1))
            return
        for item in differences:
            _difference(item, diff)
        return
    explanations = about.explanations(tree, keys or [], only=only or [], arms=arm or [])
    if as_json:
        typer.echo(json.dumps([about.as_dict(item) for item in explanations], indent=1, default=str))
        return
    for item in explanations:
        _explanation(item)


def _explanation(item: Explanation) -> None:
    typer.echo(f"{item.key}{'  (assumed figures enter)' if item.assumed else ''}")
    typer.echo(f"  command   {item.command}")
    for line in item.steps:
        typer.echo(f"  step      {line}")
    for feature in item.features:
        where = f"  [{feature.where}]" if feature.where else ""
        typer.echo(f"  feature   {feature.title}: {feature.word}{where}")
        for line in feature.details:
            typer.echo(f"              {line}")
    for line in item.memory:
        typer.echo(f"  memory    {line}")
    for line in item.roofline:
        typer.echo(f"  roofline  {line}")
    typer.echo("")


def _difference(item: Difference, ref: str) -> None:
    changed = sum(len(change.points) for change in item.changed)
    typer.echo(f"{item.recipe} since {ref}: {changed} points change, {len(item.added)} are new, "
               f"{len(item.removed)} go, {len(item.untouched)} are untouched")
    for change in item.changed:
        typer.echo(f"\n  {', '.join(_short(item.recipe, key) for key in change.points)}")
        for line in change.lines:
            typer.echo(f"    {line}")
    for title, points in (("new", item.added), ("gone", item.removed), ("untouched", item.untouched)):
        if points:
            typer.echo(f"\n  {title}: {', '.join(_short(item.recipe, key) for key in points)}")
    typer.echo("")


def _short(recipe: str, key: str) -> str:
    return key.removeprefix(recipe).removeprefix("/")
