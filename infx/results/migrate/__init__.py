"""Older run folders, lifted to the present format at read: one function per format version that was left.

``STEPS[v]`` takes the kind of file (``run``, ``plan``, ``start``, ``result``) and its content in format v,
and returns the content in format v + 1. Format 1 is the first, so there is no step yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Step = Callable[[str, dict[str, Any]], dict[str, Any]]

STEPS: dict[int, Step] = {}


def migrate(
    kind: str, content: dict[str, Any], version: int, target: int, steps: Mapping[int, Step] = STEPS
) -> dict[str, Any]:
    """``content`` of a file of ``kind`` in format ``version``, lifted step by step to ``target``.

    KeyError when a step is missing (a format that no release of infx wrote).
    """
    while version < target:
        content = steps[version](kind, content)
        version += 1
        content = {**content, "format-version": version}
    return content
