"""Selections of a plan: Plan → Plan functions for --only and the like."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from infx.errors import UsageError
from infx.findings import did_you_mean
from infx.schema.plan import Plan


def only(plan: Plan, patterns: Sequence[str]) -> Plan:
    """Keep the points that a pattern names: a point key, its part after the recipe, or a glob of either.

    Raises UsageError for a pattern that names none.
    """
    if not patterns:
        return plan
    keys = [point.key for point in plan.points]
    kept: set[str] = set()
    for pattern in patterns:
        named = [key for key in keys if _names(pattern, key)]
        if not named:
            short = [key.split("/", 1)[1] for key in keys]
            raise UsageError(f"no point of {plan.recipe} is named {pattern!r}", allowed=", ".join(short),
                             hint=did_you_mean(pattern, [*keys, *short]) or "list them with `infx plan --keys`")
        kept.update(named)
    return keep(plan, kept)


def matches(plan: Plan, pattern: str) -> bool:
    """True when the pattern names at least one point."""
    return any(_names(pattern, point.key) for point in plan.points)


def keep(plan: Plan, keys: set[str]) -> Plan:
    """Keep these point keys; blocks and servers without a point go."""
    points = [point for point in plan.points if point.key in keys]
    blocks = [block.model_copy(update={"points": [key for key in block.points if key in keys]})
              for block in plan.blocks if any(key in keys for key in block.points)]
    servers = {block.server for block in blocks}
    return plan.model_copy(update={
        "points": points, "blocks": blocks,
        "servers": {name: server for name, server in plan.servers.items() if name in servers},
    })


def one_block(plan: Plan, block_id: str) -> Plan:
    """Keep one block, of an A/B that start alone. Raises UsageError when there is none of this id."""
    for block in plan.blocks:
        if block.id == block_id:
            return keep(plan.model_copy(update={"blocks": [block]}), set(block.points))
    ids = [block.id for block in plan.blocks]
    raise UsageError(f"the plan of {plan.recipe} has no block {block_id!r}", allowed=", ".join(ids),
                     hint=did_you_mean(block_id, ids))


def _names(pattern: str, key: str) -> bool:
    short = key.split("/", 1)[1]
    return key == pattern or short == pattern or fnmatchcase(key, pattern) or fnmatchcase(short, pattern)
