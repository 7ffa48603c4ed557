"""The last lines of an engine's log that say something: pure text work."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TELLING = re.compile(r"\b(error|exception|traceback|fatal|fault|failed|killed|out of memory|abort|unrecognized|invalid"
                      r"|signal|refused|cannot|not found)\b|Error\b", re.IGNORECASE)
_NOISE = re.compile(r"^\s*(\^+|~+|=+|-+|\d+%\|.*)?\s*$|it/s\]|\bINFO\b.*\b(GET|POST) /|Route: /")


def clean_lines(text: str) -> list[str]:
    """Lines without colour codes, progress bars (only what follows the last carriage return) and blanks."""
    lines = (_ANSI.sub("", line).rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in text.split("\n"))
    return [line for line in lines if line and not _NOISE.search(line)]


def meaningful_tail(text: str, count: int = 6, width: int = 300) -> list[str]:
    """The last ``count`` telling lines in order: those that name an error, else the last ones of all."""
    lines = clean_lines(text)
    telling = [line for line in lines if _TELLING.search(line)]
    return [line if len(line) <= width else line[: width - 1] + "…" for line in (telling or lines)[-count:]]
