"""Owns reading CODEOWNERS: which people and teams own a path; the last line that matches decides. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from infx.errors import InputError

PATHS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Where the file may lie; the first one that is there counts."""

_OWNER = re.compile(r"@[A-Za-z0-9](?:[A-Za-z0-9-]*)(?:/[A-Za-z0-9._-]+)?|[^@\s]+@[^@\s]+\.[^@\s]+")


@dataclass(frozen=True)
class Rule:
    """One line: a pattern and its owners (none: nobody owns what it matches)."""

    line: int
    pattern: str
    owners: tuple[str, ...]
    matches: re.Pattern[str]


def read_owners(text: str, path: str) -> list[Rule]:
    """The rules in order. Raises InputError with every line that the code host would pass over without a word."""
    rules, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if not words:
            continue
        pattern, owners = words[0], words[1:]
        bad = [owner for owner in owners if not _OWNER.fullmatch(owner)]
        if pattern.startswith("!") or "[" in pattern or "\\" in pattern:
            problems.append(f"{path}:{number}:1: {pattern!r} uses what CODEOWNERS does not know (! [ \\)")
        elif bad:
            problems.append(f"{path}:{number}:1: {', '.join(bad)} is neither @user, @org/team nor an address")
        else:
            rules.append(Rule(number, pattern, tuple(owners), _pattern(pattern)))
    if problems:
        raise InputError("\n".join(problems), where=path, hint="such lines are ignored, so that others own the files")
    return rules


def owners_of(rules: Iterable[Rule], path: str) -> tuple[str, ...]:
    """The owners of a path; none where no line matches or the last one that does names nobody."""
    found: tuple[str, ...] = ()
    for rule in rules:
        if rule.matches.fullmatch(path):
            found = rule.owners
    return found


def unowned(rules: Iterable[Rule], files: Iterable[str], user: str, member: Callable[[str, str], bool]
            ) -> list[tuple[str, tuple[str, ...]]]:
    """The files that ``user`` does not own, each with its owners. ``member``: (``org/team``, user) → belongs to it."""
    rules = list(rules)
    known: dict[str, bool] = {}

    def mine(owner: str) -> bool:
        if owner.lower() not in known:
            name = owner.removeprefix("@")
            known[owner.lower()] = owner.startswith("@") and (
                member(name, user) if "/" in name else name.lower() == user.lower())
        return known[owner.lower()]

    found = []
    for path in files:
        owners = owners_of(rules, path)
        if not any(mine(owner) for owner in owners):
            found.append((path, owners))
    return found


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern as a regular expression of whole paths, by the rules of .gitignore."""
    folder = text.endswith("/")
    bare = text.strip("/")
    anchored = "/" in text.rstrip("/")
    parts = []
    for part in re.split(r"(\*\*/|/\*\*$|\*|\?)", bare):
        parts.append({"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)))
    tail = "/.*" if folder else "" if bare.endswith("*") and "/" in bare else "(?:/.*)?"
    return re.compile(("" if anchored else "(?:.*/)?") + "".join(parts) + tail)
