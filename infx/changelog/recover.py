"""Owns mending the trunk: what damaged entries still say, as a retraction of each and its parts appended again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import ValidationError

from infx.changelog.entries import Record, ledger
from infx.changelog.merge import HIDING
from infx.changelog.syntax import Entry
from infx.schema.changelog import LINK, PLACEHOLDER, Change, Retract

_MARKER = re.compile(r"(?:<{7}|\|{7}|={7}|>{7})(?: .*)?")
_KEY = re.compile(r" *(- +)?(config-keys|scenario-type|description|pr-link|evals-only|all-evals|append-only|kind):(.*)")
_GLUED = re.compile(r"(?P<link>https?://\S+?/\d+)-? *- *(?:config-keys|kind):.*")
_FLAGS = ("evals-only", "all-evals", "append-only")


@dataclass(frozen=True)
class Repair:
    """What to append for one damaged entry, and what could not be read of it."""

    record: Record
    entries: list[Entry]
    lost: list[str] = field(default_factory=list)


def repairs(data: bytes, path: str) -> list[Repair]:
    """For every damaged entry that still counts: its retraction, then the entries that its text holds.

    Damaged is what hides or fuses entries. Entries that older rules wrote (another link, a scalar description) are
    read as they are and left alone.
    """
    found = []
    for record in ledger(data, path):
        hiding = sorted(item for item in record.findings if item.code in HIDING)
        if record.retracted or not hiding:
            continue
        again, lost = _again(record.span.body.decode("utf-8", "replace"))
        if len(again) == 1 and not lost and _says_the_same(record, again[0]):
            continue
        reason = f"damaged at line {hiding[0].where.line}: {hiding[0].message}; what it says is appended again"
        found.append(Repair(record, [Retract(kind="retract", entry=record.id, reason=reason), *again], lost))
    return found


def _says_the_same(record: Record, change: Change) -> bool:
    """Whether the loose reading already gives all of the entry, so that nothing is hidden."""
    return (record.keys, record.lines, record.link) == (change.config_keys, change.description, change.pr_link)


@dataclass
class _Part:
    """The lines of one entry by key, as they are met."""

    blocks: dict[str, list[str]] = field(default_factory=dict)
    key: str = ""


def _again(text: str) -> tuple[list[Change], list[str]]:
    """The changes that a damaged entry's text holds, and a word on each part that is none."""
    changes, lost = [], []
    for part in _parts(text.replace("\t", "  ").split("\n")):
        try:
            changes.append(_change(part))
        except (ValidationError, yaml.YAMLError, KeyError, TypeError) as error:
            what = "no description" if isinstance(error, KeyError) else "unreadable"
            words = " ".join(" ".join(lines) for lines in part.blocks.values())
            lost.append(f"{what}: {' '.join(words.split())[:100]}")
    return changes, lost


def _parts(lines: Sequence[str]) -> Iterator[_Part]:
    """Cut an entry's lines where a second one begins: at a header, at a key that is there, at keys behind a value."""
    part = _Part()
    for line in lines:
        if _MARKER.fullmatch(line) or not line.strip() or line.lstrip().startswith("#"):
            continue
        glued = _GLUED.search(line)
        match = _KEY.fullmatch(line)
        if match:
            key = match[2]
            if key in part.blocks or (match[1] and part.blocks):
                yield part
                part = _Part()
            rest = glued["link"] if glued and key == "pr-link" else match[3].strip()
            part.blocks[key], part.key = ([rest] if rest else []), key
            if glued:
                yield part
                part = _Part({"config-keys": []}, "config-keys")
        elif part.key in ("pr-link", *_FLAGS) and part.blocks[part.key] and line.lstrip().startswith("- "):
            yield part
            part = _Part({"config-keys": [line]}, "config-keys")
        elif part.key:
            part.blocks[part.key].append(line)
    if part.blocks:
        yield part


def _change(part: _Part) -> Change:
    link = " ".join(_values(part.blocks.get("pr-link", []))).strip()
    return Change(
        config_keys=_values(part.blocks["config-keys"]),
        scenario_type=_values(part.blocks["scenario-type"]) or None if "scenario-type" in part.blocks else None,
        description=_values(part.blocks["description"]),
        pr_link=link if LINK.fullmatch(link) else PLACEHOLDER,
        **{name.replace("-", "_"): part.blocks.get(name) == ["true"] for name in _FLAGS},
    )


def _values(lines: Sequence[str]) -> list[str]:
    """The items of a list, or the lines of a scalar, as text."""
    if not lines:
        return []
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    value: Any = yaml.load("\n".join(line[indent:] for line in lines), Loader=yaml.CBaseLoader)
    if isinstance(value, list):
        return [item if isinstance(item, str) else str(item) for item in value]
    return [line.strip().removeprefix("- ") for line in str(value).splitlines() if line.strip()]
