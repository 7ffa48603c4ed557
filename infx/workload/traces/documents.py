"""Bytes of a trace file → JSON values with their line, one at a time, so that memory follows the largest alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from infx.findings import Finding, Mark
from infx.workload.traces.codes import finding

LIMIT = 256 << 20  # bytes of one JSON document; the largest public session has 2 MB


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value and the line on which it begins."""

    value: object
    mark: Mark


def documents(stream: BinaryIO, path: str, limit: int = LIMIT) -> Iterator[Document | Finding]:
    """Every JSON value of ``stream``: one a line, or one over the whole file; the items of a list one by one.

    A line that is not JSON is a finding and the next line is read; so is a document above ``limit`` bytes.
    """
    lines = _lines(stream, limit)
    head = list(itertools.islice(lines, 2))
    if not head:
        yield finding("T-013", Mark(path), "the file is empty")
    elif len(head) == 2 and _decode(head[0][1])[1] and _decode(head[1][1])[1]:
        yield from _whole(stream, head, path, limit)
    else:
        for number, line in itertools.chain(head, lines):
            if len(line) > limit:
                yield finding("T-014", Mark(path, number, 1), f"a line of more than {limit >> 20} MiB")
                return
            yield from _decoded(line, Mark(path, number, 1))


def _lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


def _whole(
    stream: BinaryIO, head: list[tuple[int, bytes]], path: str, limit: int
) -> Iterator[Document | Finding]:
    first = head[0][0]
    data = head[0][1] + b"\n" * (head[1][0] - first - 1) + head[1][1] + stream.read(limit + 1)
    if len(data) > limit:
        hint = "write one session a line"
        yield finding("T-014", Mark(path, 1, 1), f"one JSON document of more than {limit >> 20} MiB", hint)
    else:
        yield from _decoded(data, Mark(path, first, 1))


def _decode(data: bytes) -> tuple[object, tuple[str, int] | None]:
    """The value of ``data``, or what is wrong with it as JSON and at which byte."""
    try:
        return msgspec.json.decode(data), None
    except (msgspec.DecodeError, RecursionError) as error:
        found = re.search(r"\(byte (\d+)\)", str(error))
        what = re.sub(r" \(byte \d+\)", "", str(error)).removeprefix("JSON is malformed: ")
        return None, (what, int(found[1]) if found else len(data.rstrip()))


def _decoded(data: bytes, mark: Mark) -> Iterator[Document | Finding]:
    value, problem = _decode(data)
    if problem:
        what, at = problem
        place = Mark(mark.path, mark.line + data.count(b"\n", 0, at), at - data.rfind(b"\n", 0, at))
        yield finding("T-001", place, f"not JSON: {what}", "is the file complete?")
        return
    for item in value if isinstance(value, list) else [value]:
        yield Document(item, mark)
