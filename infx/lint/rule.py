"""Owns what a rule is: a coded, documented class whose check gives hits, never findings appended to a caller's list."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from infx.findings import Mark, Severity

if TYPE_CHECKING:
    from infx.lint.view import RecipeView


@dataclass(frozen=True)
class Hit:
    """One violation: its place, the fields of the rule's message, the servers it concerns and what to do.

    ``at`` names layout and arm (``@arm tp2``); hits with one place and text are reported once, with all of them.
    """

    where: Mark
    fields: Mapping[str, Any] = field(default_factory=dict)
    at: str = ""
    hint: str = ""


class Rule(ABC):
    """One rule. The docstring of a rule class is its page: what it finds, why it matters, how to mend it."""

    code: ClassVar[str]
    title: ClassVar[str]
    severity: ClassVar[Severity]
    waivable: ClassVar[bool]
    message: ClassVar[str]

    @abstractmethod
    def check(self, view: RecipeView) -> Iterable[Hit]:
        """Every violation in one recipe."""

    def text(self, hit: Hit) -> str:
        """The message of a hit."""
        return self.message.format(**hit.fields)

    @classmethod
    def page(cls) -> str:
        """The rule's documentation."""
        return inspect.getdoc(cls) or ""
