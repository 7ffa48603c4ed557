"""Owns whether change entries and changed recipes agree: each changed recipe is covered, each entry selects one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from infx.changelog.codes import finding
from infx.findings import Finding, Mark, did_you_mean
from infx.schema.changelog import Change

Fingerprints = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Recipes:
    """Fingerprints by recipe key and point key, where the branch left the trunk and now; scenarios by recipe key."""

    base: Fingerprints
    head: Fingerprints
    scenarios: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> list[str]:
        """Keys of either side, sorted: an entry may be about a recipe that its pull request removes."""
        return sorted({*self.base, *self.head})

    @property
    def changed(self) -> list[str]:
        """Recipes that are new or have a point added, removed or changed."""
        return sorted(key for key, points in self.head.items() if dict(self.base.get(key, {})) != dict(points))


def selected(change: Change, recipes: Recipes) -> list[str]:
    """The recipe keys that an entry selects: by key or glob, and by scenario where it names some."""
    wanted = change.scenario_type
    return [key for key in recipes.known if any(fnmatchcase(key, pattern) for pattern in change.config_keys)
            and (not wanted or recipes.scenarios.get(key) in (None, *wanted))]


def check_coverage(changes: Sequence[tuple[Change, Mark]], recipes: Recipes, path: str) -> list[Finding]:
    """Findings C-020 to C-023 for the new change entries of a branch, each with the place of its entry."""
    found: list[Finding] = []
    for change, where in changes:
        found += _selects(change, where, recipes)
        if change.append_only:
            found += _only_appends(change, where, recipes)
    covered = {key for change, _ in changes if not change.evals_only for key in selected(change, recipes)}
    evals = {key for change, _ in changes if change.evals_only for key in selected(change, recipes)}
    for key in recipes.changed:
        if key not in covered:
            named = ", ".join(_moved(recipes, key))
            why = "; an evals-only entry does not cover it" if key in evals else ""
            message = f"recipe {key} changed ({named}) and no new change entry names it{why}"
            found.append(finding(Mark(path), "C-021", message))
    return found


def _selects(change: Change, where: Mark, recipes: Recipes) -> Iterator[Finding]:
    dead = [pattern for pattern in change.config_keys
            if not any(fnmatchcase(key, pattern) for key in recipes.known)]
    for pattern in dead:
        yield finding(where, "C-020", f"config key {pattern!r} matches no recipe", did_you_mean(pattern, recipes.known))
    if len(dead) < len(change.config_keys) and not selected(change, recipes):
        scenarios = ", ".join(change.scenario_type or [])
        yield finding(where, "C-022", f"the entry selects nothing: no recipe of its keys is {scenarios}")


def _only_appends(change: Change, where: Mark, recipes: Recipes) -> Iterator[Finding]:
    for key in selected(change, recipes):
        before, after = recipes.base.get(key), recipes.head.get(key, {})
        if before is None:
            yield finding(where, "C-023", f"append-only, but recipe {key} is new: there is no curve to add to")
            continue
        moved = [point for point, print_ in before.items() if after.get(point) != print_]
        if moved:
            yield finding(where, "C-023", f"append-only, but recipe {key} changes or drops {', '.join(sorted(moved))}")
        elif len(after) == len(before):
            yield finding(where, "C-023", f"append-only, but recipe {key} gains no point")


def _moved(recipes: Recipes, key: str) -> list[str]:
    """What changed in a recipe, in a few words."""
    before, after = recipes.base.get(key), recipes.head[key]
    if before is None:
        return [f"new, {len(after)} points"]
    words = {
        "changed": sum(point in before and before[point] != after[point] for point in after),
        "added": sum(point not in before for point in after),
        "removed": sum(point not in after for point in before),
    }
    return [f"{count} points {word}" for word, count in words.items() if count]
