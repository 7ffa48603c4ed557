"""Owns the draft of a change entry: what differs between two states of the recipes, in the entry's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from infx.changelog.coverage import Recipes
from infx.schema.changelog import PLACEHOLDER, Change

if TYPE_CHECKING:
    from infx.lint.diff import Difference

MOST_LINES = 12
"""Lines of description a recipe gets before the rest is counted."""


def draft(recipes: Recipes, differences: Sequence[Difference], link: str = PLACEHOLDER) -> Change | None:
    """The change entry that covers every changed recipe; None where nothing changed.

    ``append-only`` is set where every changed recipe only gains points.
    """
    keys = recipes.changed
    if not keys:
        return None
    described = {item.recipe: item for item in differences}
    lines: list[str] = []
    for key in keys:
        mine = _lines(key, recipes, described.get(key))
        lines += mine[:MOST_LINES]
        lines += [f"{key}: and {len(mine) - MOST_LINES} more differences"] if len(mine) > MOST_LINES else []
    return Change(config_keys=keys, description=lines, pr_link=link,
                  append_only=all(_only_gains(recipes, key) for key in keys))


def _only_gains(recipes: Recipes, key: str) -> bool:
    before, after = recipes.base.get(key), recipes.head[key]
    return before is not None and len(after) > len(before) and all(after.get(point) == f for point, f in before.items())


def _lines(key: str, recipes: Recipes, difference: Difference | None) -> list[str]:
    before, after = recipes.base.get(key), recipes.head[key]
    if before is None:
        return [f"{key}: new recipe with {len(after)} points"]
    lines = []
    for group in difference.changed if difference else ():
        lines += [f"{key} {_points(key, group.points)}: {line}" for line in group.lines]
    named = {point for group in (difference.changed if difference else ()) for point in group.points}
    rest = [point for point, print_ in after.items() if point in before and before[point] != print_]
    rest = [point for point in rest if point not in named]
    added = [point for point in after if point not in before]
    gone = [point for point in before if point not in after]
    for what, points in (("changed", rest), ("added", added), ("removed", gone)):
        lines += [f"{key}: {what} {_points(key, points)}"] if points else []
    return lines


def _points(key: str, points: Sequence[str]) -> str:
    short = [point.removeprefix(key).removeprefix("/") for point in points]
    return ", ".join(short[:6]) + (f" and {len(short) - 6} more" if len(short) > 6 else "")
