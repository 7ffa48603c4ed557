"""Fields of a trace record: which are there, of which type, and not negative."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from infx.findings import Finding, Mark, did_you_mean
from infx.workload.traces.codes import finding


class Kind(Enum):
    """What a field may hold."""

    TEXT = "a string"
    COUNT = "an integer"
    NUMBER = "a number"
    LIST = "a list"
    ANY = "any value"

    def takes(self, value: object) -> bool:
        if self is Kind.ANY:
            return True
        if self is Kind.TEXT:
            return isinstance(value, str)
        if self is Kind.LIST:
            return isinstance(value, list)
        if isinstance(value, bool):
            return False
        return isinstance(value, int) or (self is Kind.NUMBER and isinstance(value, float) and math.isfinite(value))


@dataclass(frozen=True, slots=True)
class Field:
    """One field: ``least`` is the lowest value of a number (None: any)."""

    kind: Kind
    required: bool = True
    nullable: bool = False
    least: int | None = 0


def check(record: Mapping[str, object], fields: Mapping[str, Field], place: str, mark: Mark) -> list[Finding]:
    """Findings T-002 (missing, wrong type), T-003 (unknown) and T-006 (too small) about one record."""
    found = []
    for name in record.keys() - fields.keys():
        found.append(finding("T-003", mark, f"{place}: unknown field {name!r}", did_you_mean(name, fields)))
    for name, field in fields.items():
        if name not in record:
            if field.required:
                found.append(finding("T-002", mark, f"{place}: field {name!r} is missing"))
            continue
        value = record[name]
        if value is None and field.nullable:
            continue
        if not field.kind.takes(value):
            shown = "null" if value is None else repr(value)[:40]
            found.append(finding("T-002", mark, f"{place}: {name} is {shown}, not {field.kind.value}"))
        elif field.least is not None and isinstance(value, int | float) and value < field.least:
            found.append(finding("T-006", mark, f"{place}: {name} is {value}, below {field.least}"))
    return found
