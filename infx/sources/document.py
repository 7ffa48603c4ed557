"""Owns a read YAML document: plain values beside the place of every key and value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from infx.findings import Finding, Mark
from infx.sources.codes import finding

Step = str | int


@dataclass(slots=True)
class Node:
    """One value: where it stands, what it is, its text as written (scalars) and its children."""

    mark: Mark
    value: Any = None
    text: str | None = None
    items: list[Node] | None = None
    keys: dict[str, tuple[Mark, Node]] | None = None
    size: int = 1
    height: int = 0
    doubtful: bool = False

    def child(self, step: Step) -> Node | None:
        """The value below ``step`` (a key or an index), or None."""
        if isinstance(step, str):
            pair = self.keys.get(step) if self.keys is not None else None
            return pair[1] if pair else None
        if self.items is not None and 0 <= step < len(self.items):
            return self.items[step]
        return None


@dataclass(frozen=True)
class Document:
    """A YAML file as plain Python (``value``) with marks; ``doubtful`` where a word was refused and only guessed.

    A document with ``doubtful`` set came with error findings and must not be used for more than further checks.
    """

    path: str
    root: Node
    text: str = field(repr=False)

    @property
    def value(self) -> Any:
        return self.root.value

    @property
    def doubtful(self) -> bool:
        return next(self._doubts(self.root), None) is not None

    def node(self, *steps: Step) -> Node | None:
        """The value at a path of keys and indices, or None where there is none."""
        node: Node | None = self.root
        for step in steps:
            node = node.child(step) if node else None
        return node

    def mark(self, *steps: Step) -> Mark:
        """Where the value at ``steps`` begins; the deepest known ancestor's place where it is missing."""
        return self._walk(steps)[0].mark

    def key_mark(self, *steps: Step) -> Mark:
        """Where the key of the last of ``steps`` stands; for list items and the root, the value's own place."""
        node, key = self._walk(steps)
        return key or node.mark

    def raw(self, *steps: Step) -> str | None:
        """A scalar as it was written (``1.10`` stays ``1.10``), or None."""
        node = self.node(*steps)
        return node.text if node else None

    def spelled_twice(self, *steps: Step) -> list[Finding]:
        """Findings for keys of the mapping at ``steps`` that differ only in ``-`` against ``_``."""
        node = self.node(*steps)
        seen: dict[str, tuple[str, Mark]] = {}
        found = []
        for key, (mark, _) in ((node.keys if node else None) or {}).items():
            first = seen.setdefault(key.replace("_", "-"), (key, mark))
            if first[0] != key:
                message = f"{key!r} is the same key as {first[0]!r} of line {first[1].line}"
                found.append(finding(mark, "Y-013", message, f"keep {key.replace('_', '-')!r}"))
        return found

    def _walk(self, steps: tuple[Step, ...]) -> tuple[Node, Mark | None]:
        node, key = self.root, None
        for step in steps:
            below = node.child(step)
            if below is None:
                break
            key = node.keys[step][0] if node.keys is not None and isinstance(step, str) else None
            node = below
        return node, key

    def _doubts(self, node: Node) -> Iterator[Node]:
        stack = [node]
        while stack:
            node = stack.pop()
            if node.doubtful:
                yield node
            stack.extend(node.items or ())
            stack.extend(pair[1] for pair in (node.keys or {}).values())
