"""One check of a runner: what was looked at, whether it holds, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "fails", "unknown"]


@dataclass(frozen=True)
class Check:
    """``name`` (stable), ``state``, the ``reason`` with what was found, and ``hint``: what to do unless it is ok."""

    name: str
    state: State
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        tail = f"\n{'':20}do: {self.hint}" if self.hint and self.state != "ok" else ""
        return f"{self.state:<8}{self.name:<12}{self.reason}{tail}"


def ok(name: str, reason: str) -> Check:
    """It holds."""
    return Check(name, "ok", reason)


def fails(name: str, reason: str, hint: str) -> Check:
    """It does not hold: a sweep would not start, or would not measure what it says."""
    return Check(name, "fails", reason, hint)


def unknown(name: str, reason: str, hint: str = "") -> Check:
    """Nobody can tell from here."""
    return Check(name, "unknown", reason, hint)
