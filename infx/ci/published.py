"""Owns which points of a recipe are published: those of every results entry that counts, the newest of each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from infx.compare.sides import Side, side_of_entry
from infx.schema.changelog import Results


def published(entries: Sequence[Results], recipe: str) -> Side | None:
    """The base arm's published points of a recipe, or None; ``entries`` are oldest first, retracted ones left out.

    An append-only entry holds the added points alone, so the latest entry is not the curve that readers see.
    """
    points = {}
    for entry in entries:
        if entry.recipe == recipe:
            points.update({label: found for label, found in side_of_entry("published", entry).points.items()
                           if found[0].facts.arm is None})
    return Side("published", points) if points else None
