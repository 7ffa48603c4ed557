"""Owns the raw view of a changelog file: which bytes are which entry, by text alone and whatever state they are in.

An entry begins at a line that starts with ``- `` in column 1 and ends where the next begins. Its *body* runs from
there to its last line that is not blank; what follows (the line end and blank lines) is its *tail*. Bytes before the
first entry are the *preamble*. Nothing here parses YAML, so damage in one entry never hides another.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

_HEADER = re.compile(rb"^-(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BLANK = b" \t\r\n"


@dataclass(frozen=True)
class Span:
    """One entry's place: ``start`` and ``end`` of its bytes, ``body_end`` of its body, its first ``line`` from 1."""

    index: int
    start: int
    body_end: int
    end: int
    line: int
    body: bytes

    @cached_property
    def content(self) -> str:
        """First 12 hex digits of the body's SHA-256."""
        return content_hash(self.body)


@dataclass(frozen=True)
class Split:
    """A file's bytes with its spans; ``preamble`` is the offset where the first entry begins."""

    data: bytes
    spans: tuple[Span, ...]

    @property
    def preamble(self) -> int:
        return self.spans[0].start if self.spans else len(self.data)

    @property
    def bodies(self) -> list[bytes]:
        return [span.body for span in self.spans]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Identities in order: content hash and how often the same content has stood in the file so far, from 1."""
        return tuple(identities(self.bodies))

    def line_at(self, offset: int) -> int:
        """The line, from 1, that holds the byte at ``offset``."""
        return self.data.count(b"\n", 0, offset) + 1


def split(data: bytes) -> Split:
    """Cut a file into its entries; every byte belongs to the preamble or to exactly one span."""
    starts = [match.start() for match in _HEADER.finditer(data)]
    spans, line, counted = [], 1, 0
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(data)
        line += data.count(b"\n", counted, start)
        counted = start
        body = _trimmed(data[start:end])
        spans.append(Span(index, start, start + len(body), end, line, body))
    return Split(data, tuple(spans))


def _trimmed(chunk: bytes) -> bytes:
    """``chunk`` up to the end of its last line that is not blank (trailing blanks of that line are content)."""
    newline = chunk.find(b"\n", len(chunk.rstrip(_BLANK)))
    return chunk[:newline] if newline >= 0 else chunk


def content_hash(body: bytes) -> str:
    """First 12 hex digits of the SHA-256 of an entry's body."""
    return hashlib.sha256(body).hexdigest()[:12]


def identities(bodies: Iterable[bytes]) -> list[str]:
    """``HASH-ORDINAL`` of each body; the ordinal counts equal contents from 1, as history has exact duplicates."""
    seen: Counter[str] = Counter()
    names = []
    for body in bodies:
        content = content_hash(body)
        seen[content] += 1
        names.append(f"{content}-{seen[content]}")
    return names


def common_bytes(one: bytes, other: bytes) -> int:
    """Length of the longest common prefix."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shared(one: Split, other: Split) -> int:
    """How many leading entries two files share byte for byte, what stands between them and the preamble included."""
    common = common_bytes(one.data, other.data)
    if common < min(one.preamble, other.preamble) or (one.spans and other.spans and one.preamble != other.preamble):
        return 0
    count = 0
    for mine, its in zip(one.spans, other.spans, strict=False):
        if mine.body_end != its.body_end or mine.start != its.start or mine.body_end > common:
            break
        count += 1
    return count


def join(kept: bytes, bodies: Sequence[bytes], protected: int = 0) -> bytes:
    """``kept`` followed by ``bodies``, one empty line before each and one line end after the last.

    Of ``kept`` the first ``protected`` bytes stay as they are; blank lines at its end beyond them are dropped.
    """
    if not bodies:
        return kept
    before = kept[: max(len(_trimmed(kept)), protected)]
    return before + _gap(before) + b"\n\n".join(bodies) + b"\n"


def _gap(before: bytes) -> bytes:
    """What is missing between ``before`` and a new entry so that at least one blank line parts them."""
    if not before:
        return b""
    above, _, last = before.rpartition(b"\n")
    if last.strip(_BLANK):
        return b"\n\n"
    if last:
        return b"\n"
    return b"\n" if above.rpartition(b"\n")[2].strip(_BLANK) else b""
