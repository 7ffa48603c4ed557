"""Owns the text of a change: two states of one recipe, point by point, grouped by what differs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from infx.lint.explain import Explanation
from infx.schema.plan import Plan, Point


@dataclass(frozen=True)
class Side:
    """One state of a recipe: its plan and the explanations of its points."""

    plan: Plan
    explanations: Sequence[Explanation]

    def points(self) -> dict[str, tuple[Point, Explanation | None]]:
        """Point key → point and explanation."""
        by_key = {item.key: item for item in self.explanations}
        return {point.key: (point, by_key.get(point.key)) for point in self.plan.points}


@dataclass(frozen=True)
class Change:
    """Points that change in one and the same way."""

    points: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What a change to a recipe does: new points, removed ones, changed groups and points that stay the same."""

    recipe: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[Change, ...] = ()
    untouched: tuple[str, ...] = field(default=())


def compare(recipe: str, before: Side | None, after: Side | None) -> Difference:
    """The difference of two states; None stands for a recipe that is not there."""
    old = before.points() if before else {}
    new = after.points() if after else {}
    groups: dict[tuple[str, ...], list[str]] = {}
    untouched = []
    for key in new:
        if key not in old:
            continue
        if old[key][0].fingerprint == new[key][0].fingerprint and before and after:
            untouched.append(key)
            continue
        assert before is not None and after is not None
        lines = [*_declared(before.plan, old[key][0], after.plan, new[key][0]), *_predicted(old[key][1], new[key][1])]
        groups.setdefault(tuple(lines), []).append(key)
    return Difference(
        recipe,
        added=tuple(key for key in new if key not in old),
        removed=tuple(key for key in old if key not in new),
        changed=tuple(Change(tuple(keys), lines) for lines, keys in groups.items()),
        untouched=tuple(untouched),
    )


def _declared(old_plan: Plan, old: Point, new_plan: Plan, new: Point) -> list[str]:
    first, second = old_plan.servers[old.server], new_plan.servers[new.server]
    lines = []
    if first.image != second.image:
        lines.append(f"image: {first.image} → {second.image}")
    lines += _mapping("env ", first.env, second.env)
    lines += _mapping("", arguments(first.argv), arguments(second.argv))
    a, b = old.workload.model_dump(mode="json", by_alias=True), new.workload.model_dump(mode="json", by_alias=True)
    lines += _mapping("workload ", a, b)
    if old.acceptance_length != new.acceptance_length:
        lines.append(f"golden acceptance length: {old.acceptance_length} → {new.acceptance_length}")
    return lines


def _predicted(old: Explanation | None, new: Explanation | None) -> list[str]:
    """Features and memory lines that differ between two explanations."""
    if old is None or new is None:
        return []
    lines = []
    first, second = old.words(), new.words()
    for name in dict.fromkeys([*first, *second]):
        a, b = first.get(name, "off"), second.get(name, "off")
        if a != b:
            lines.append(f"{name}: {a} → {b}")
    room = [_room(side) for side in (old, new)]
    if room[0] != room[1]:
        lines.append(f"KV room: {room[0]} → {room[1]} tokens")
    steps = [side.steps for side in (old, new)]
    lines += [f"{line}" for line in difflib.ndiff(steps[0], steps[1]) if line.startswith(("- ", "+ "))]
    return lines


def _room(side: Explanation) -> str:
    """KV tokens of the whole server, so that points of one server change alike."""
    return next((line.split(" KV tokens")[0].strip() for line in side.memory if " KV tokens" in line), "unknown")


def arguments(argv: Sequence[str]) -> dict[str, str]:
    """argv as flag → value; a flag without a value has ``on``; words before the first flag are kept by position."""
    found: dict[str, str] = {}
    name = ""
    for index, word in enumerate(argv):
        if word.startswith("--"):
            name = word
            found[name] = "on"
        elif name:
            found[name] = word if found[name] == "on" else f"{found[name]} {word}"
        else:
            found[f"word {index + 1}"] = word
    return found


def _mapping(prefix: str, old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    lines = []
    for name in sorted({*old, *new}):
        a, b = old.get(name), new.get(name)
        if a == b:
            continue
        if a is None:
            lines.append(f"{prefix}{name}: added, {b}")
        elif b is None:
            lines.append(f"{prefix}{name}: removed (was {a})")
        else:
            lines.append(f"{prefix}{name}: {a} → {b}")
    return lines
