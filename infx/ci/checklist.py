"""Owns the review checklist: its page, the text that a reviewer posts, and reading that back. Pure.

The page has a version and boxes in two sections; a sign-off is a comment with the boxes, their words unchanged, and one
line that names version and commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from infx.errors import InputError

PAGE = "docs/PR_REVIEW_CHECKLIST.md"

MACHINE = ("recipes", "waivers", "changelog", "measured", "claims", "coverage", "evals")
"""Boxes that infx decides; every other one is a person's word."""

SECTIONS = {"decided by infx": "machine", "a reviewer's word": "person"}

_VERSION = re.compile(r"Version (\d+)\.?")
_LINE = re.compile(r"\s*Review checklist, version (\d+), commit ([0-9a-f]+)\s*")
_BOX = re.compile(r"\s*[-*] \[(.)\] \*\*([a-z-]+)\*\*:?\s*(.*)")


@dataclass(frozen=True)
class Item:
    """One box: ``by`` says who decides it."""

    key: str
    by: Literal["machine", "person"]
    text: str


@dataclass(frozen=True)
class Checklist:
    """The page as data."""

    version: int
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Signed:
    """What a comment says: version and commit, the boxes that are ticked, and the words of every box."""

    version: int
    commit: str
    ticked: frozenset[str]
    words: tuple[tuple[str, str], ...]


def read_checklist(text: str, path: str = PAGE) -> Checklist:
    """The page as data. Raises InputError with everything that is wrong with it."""
    version, by, items, problems = None, None, [], []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _VERSION.match(line.strip()):
            version = version or int(match[1])
        elif line.startswith("#"):
            by = SECTIONS.get(line.strip("# ").lower())
        elif match := _BOX.fullmatch(line):
            key = match[2]
            if by is None:
                problems.append(f"{path}:{number}:1: the box {key!r} stands in no section of {', '.join(SECTIONS)}")
            elif (by == "machine") != (key in MACHINE):
                problems.append(f"{path}:{number}:1: {key!r} is {'not ' * (by == 'machine')}decided by infx")
            elif any(item.key == key for item in items):
                problems.append(f"{path}:{number}:1: {key!r} comes twice")
            else:
                items.append(Item(key, by, match[3].strip()))  # type: ignore[arg-type]
    if version is None:
        problems.append(f"{path}:1:1: there is no line `Version N`")
    problems += [f"{path}:1:1: the box {key!r} is missing" for key in MACHINE if key not in {i.key for i in items}]
    if problems or version is None:
        raise InputError("\n".join(problems), where=path)
    return Checklist(version, tuple(items))


def blank(checklist: Checklist, commit: str) -> str:
    """The text that a reviewer posts after ticking their boxes; infx ticks its own by itself."""
    lines = [f"Review checklist, version {checklist.version}, commit {commit}", ""]
    for title, by in SECTIONS.items():
        lines += [f"### {title[0].upper()}{title[1:]}", ""]
        lines += [f"- [ ] **{item.key}**: {item.text}" for item in checklist.items if item.by == by]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def read_signed(lines: Sequence[str]) -> Signed | None:
    """The sign-off that a comment's own lines hold; None where they hold none. The first heading line counts."""
    heads = [match for line in lines if (match := _LINE.fullmatch(line))]
    if not heads:
        return None
    boxes = [match for line in lines if (match := _BOX.fullmatch(line))]
    return Signed(int(heads[0][1]), heads[0][2],
                  frozenset(match[2] for match in boxes if match[1] in "xX"),
                  tuple((match[2], match[3].strip()) for match in boxes))
