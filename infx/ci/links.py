"""Owns finding links in texts and judging answers: dead, or not to be told from here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LINK = re.compile(r"https?://[^\s<>\"'`\\{}|^\[\]]+")
_PLACEHOLDERS = re.compile(r"//(HOST|OWNER|[^/]*example\.(org|com))\b|OWNER/NAME|/NUMBER|…")

DEAD = {404, 410, 451}
"""Answers that mean that a page is gone; others (403, 429, 5xx) may be about who asks."""


@dataclass(frozen=True, order=True)
class Link:
    """One address and the first place that names it."""

    url: str
    path: str
    line: int


def links_in(texts: Iterable[tuple[str, str]]) -> list[Link]:
    """Every address of (path, text) pairs once, with its first place; examples and placeholders are left out."""
    found: dict[str, Link] = {}
    for path, text in texts:
        for number, line in enumerate(text.splitlines(), 1):
            for url in _urls(line):
                found.setdefault(url, Link(url, path, number))
    return sorted(found.values(), key=lambda link: (link.path, link.line, link.url))


def _urls(line: str) -> Iterator[str]:
    for match in _LINK.finditer(line):
        url = match[0].partition("#")[0].rstrip(".,;:!?*")
        while url.endswith(")") and url.count("(") < url.count(")"):
            url = url[:-1].rstrip(".,;:")
        if not _PLACEHOLDERS.search(url):
            yield url


def verdict(status: int | None, error: str = "") -> str:
    """``ok``, ``dead`` or ``unknown`` for a status code, or for an error where there is no answer."""
    if status is None:
        return "dead" if error == "no such host" else "unknown"
    return "dead" if status in DEAD else "ok" if status < 400 else "unknown"
