"""Trace files → sessions and findings: recognises the format, reads one session at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from infx.findings import Finding, Mark, errors
from infx.workload.traces import azure, weka
from infx.workload.traces.codes import finding, repeated_finding
from infx.workload.traces.documents import Document, documents
from infx.workload.traces.model import Corpus, Session
from infx.workload.traces.mooncake import MooncakeReader

_KNOWN = "coding-agent objects (id, block_size, requests), Mooncake lines (timestamp, input_length), Azure CSV"


def iter_sessions(stream: BinaryIO, path: str) -> Iterator[Session | Finding]:
    """The sessions of one file as they are read, and findings between them.

    Coding-agent traces hold one session in memory at a time; Mooncake traces share blocks across the file and
    come as a whole at its end. ``path`` is only named in findings.
    """
    header = stream.peek(64) if hasattr(stream, "peek") else b""
    if header.removeprefix(b"\xef\xbb\xbf").startswith(b"TIMESTAMP,"):
        stream.readline()
        yield from azure.sessions(stream, path)
        return
    found = documents(stream, path)
    before: list[Finding] = []
    for first in found:
        if isinstance(first, Document):
            break
        before.append(first)
    else:
        yield from before
        return
    yield from before
    keys = first.value.keys() if isinstance(first.value, dict) else set()
    if "requests" in keys or "hash_id_scope" in keys or "block_size" in keys:
        yield from _weka(chain([first], found))
    elif "timestamp" in keys or "input_length" in keys:
        yield from _mooncake(chain([first], found), path)
    else:
        yield finding("T-015", first.mark, f"no known trace format: keys {', '.join(sorted(keys)) or 'none'}", _KNOWN)


def read(files: Iterable[tuple[str, BinaryIO]], name: str, sha256: str | None = None) -> Reading:
    """A corpus of all sessions of ``files`` (path and open binary file), and every finding.

    The corpus lacks the sessions that have errors, and is None when none is left.
    """
    sessions: list[Session] = []
    found: list[Finding] = []
    names: dict[str, str] = {}
    last = ""
    for path, stream in files:
        last = path
        for item in iter_sessions(stream, path):
            if isinstance(item, Finding):
                found.append(item)
            elif item.id in names:
                found.append(repeated_finding(item.id, names[item.id], Mark(path)))
            else:
                names[item.id] = path
                sessions.append(item)
    if not sessions and not errors(found):
        found.append(finding("T-013", Mark(last), "no session to replay"))
    return Reading(Corpus(name, tuple(sessions), sha256) if sessions else None, found)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading gave: ``corpus`` (None: nothing usable) and ``findings``."""

    corpus: Corpus | None
    findings: list[Finding]


def _weka(items: Iterable[Document | Finding]) -> Iterator[Session | Finding]:
    for item in items:
        if isinstance(item, Finding):
            yield item
            continue
        session, found = weka.session(item)
        yield from found
        if session is not None:
            yield session


def _mooncake(items: Iterable[Document | Finding], path: str) -> Iterator[Session | Finding]:
    reader = MooncakeReader(path)
    for item in items:
        if isinstance(item, Finding):
            yield item
        else:
            yield from reader.add(item)
    yield from reader.sessions()
