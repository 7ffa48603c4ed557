"""Owns how entries are shown to a person: lists with retractions applied, and what is known of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from infx.changelog.entries import Record
from infx.schema.changelog import Change, Results, Retract


def about(records: Sequence[Record], pattern: str) -> list[Record]:
    """Records that name a recipe which ``pattern`` matches, by key or glob on either side, and their retractions."""
    named = {record.id for record in records
             if any(fnmatchcase(key, pattern) or fnmatchcase(pattern, key) for key in record.keys)}
    return [record for record in records if record.id in named or _target(record) in named]


def _target(record: Record) -> str:
    return record.entry.entry if isinstance(record.entry, Retract) else ""


def as_text(record: Record) -> Iterator[str]:
    """Lines for one entry: its id, kind, keys and link, then what it says, then what became of it."""
    kind = record.entry.kind if record.entry else "damaged" if not record.keys else "history"
    yield f"{record.id}  {kind:8} {', '.join(record.keys) or '-'}  {record.link}".rstrip()
    for line in record.lines:
        yield f"    {line}"
    if isinstance(record.entry, Change):
        for claim in record.entry.expect:
            against = f" against {claim.against}" if claim.against else ""
            yield f"    expects {claim.sentence()}{against}"
    if record.retracted:
        yield f"    RETRACTED: {record.retracted.reason}"


def as_data(record: Record) -> dict[str, Any]:
    """One entry as plain data for scripts."""
    return {
        "id": record.id, "line": record.span.line, "kind": record.entry.kind if record.entry else None,
        "keys": record.keys, "lines": record.lines, "link": record.link,
        "entry": record.entry.model_dump(mode="json", by_alias=True) if record.entry else None,
        "retracted": record.retracted.reason if record.retracted else None,
        "findings": [item.as_dict() for item in record.findings],
    }


def of_run(records: Sequence[Record], run: str) -> list[Record]:
    """Results entries of a run (its id or a part of it), their retractions, and the changes of its recipe before it."""
    found: list[Record] = []
    for index, record in enumerate(records):
        if isinstance(record.entry, Results) and run in record.entry.run:
            recipe = record.entry.recipe
            found += [other for other in records[:index] if isinstance(other.entry, Change) and other not in found
                      and any(fnmatchcase(recipe, key) for key in other.keys)]
            found.append(record)
        elif _target(record) in {other.id for other in found}:
            found.append(record)
    return found


def points(entry: Results) -> Iterator[str]:
    """A line for every point of a results entry."""
    for point in entry.points:
        figures = "  ".join(f"{name} {value:g}" for name, value in point.metrics.items())
        yield f"    {point.point.split('/', 1)[-1]:16} {point.status:12} {figures}  sha256:{point.sha256[:12]}"
