"""Findings: what a check has to say about a place in a file. Checks return them; nothing stops at the first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, order=True)
class Mark:
    """A place in a file: line and column count from 1; 0 means the whole file."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Finding:
    """One statement of one check: ``where`` it stands, its ``code``, ``severity``, ``message`` and ``hint``."""

    where: Mark
    code: str
    severity: Severity = field(compare=False)
    message: str
    hint: str = field(default="", compare=False)

    def __str__(self) -> str:
        mark = "" if self.severity is Severity.ERROR else f" [{self.severity}]"
        tail = f" ({self.hint})" if self.hint else ""
        return f"{self.where}: {self.code}{mark} {self.message}{tail}"

    def as_dict(self) -> dict[str, object]:
        return {
            "path": self.where.path,
            "line": self.where.line,
            "column": self.where.column,
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "hint": self.hint,
        }


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that forbid going on."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def did_you_mean(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """``perhaps you meant 'x'`` for the closest of ``choices``, or an empty string."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=cutoff)
    return f"perhaps you meant {close[0]!r}" if close else ""
