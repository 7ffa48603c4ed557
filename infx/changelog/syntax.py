"""Owns what is demanded of the text of a new entry: its bytes, its lines, its YAML and its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from infx.changelog.codes import finding
from infx.changelog.spans import Span
from infx.findings import Finding, Mark, did_you_mean
from infx.schema.changelog import KINDS, Change, Results, Retract
from infx.sources.document import Document
from infx.sources.modelio import parse
from infx.sources.yamlio import load

Entry = Change | Results | Retract

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKER = re.compile(rb"(?:<{7}|\|{7}|={7}|>{7})(?: .*)?")
_LOST_HEADER = re.compile(
    rb"[ ]+-[ ]+(?:config-keys|kind)[ ]*:|[ ]*(?:pr-link|reason)[ ]*:.*-[ ]*(?:config-keys|kind)[ ]*:"
)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Reading:
    """What one span says: its entry where it is one, the findings about it and its YAML as far as it could be read."""

    entry: Entry | None
    findings: list[Finding]
    value: Any = None


def check_bytes(data: bytes, start: int, end: int, path: str) -> list[Finding]:
    """Findings about the characters and lines of ``data[start:end]``; marks count from the start of ``data``."""
    found: list[Finding] = []
    first = data.count(b"\n", 0, start) + 1
    returns: list[Mark] = []
    for number, line in enumerate(data[start:end].split(b"\n"), first):
        bare = line.rstrip(b"\r")
        if b"\r" in line:
            returns.append(Mark(path, number, _column(line, line.index(b"\r"))))
        found += _line(bare, number, path)
    if returns:
        more = f" (and on {len(returns) - 1} more lines)" if len(returns) > 1 else ""
        found.append(finding(returns[0], "C-002", f"a carriage return{more}"))
    return found


def _line(line: bytes, number: int, path: str) -> Iterator[Finding]:
    def at(index: int) -> Mark:
        return Mark(path, number, _column(line, index))

    if _MARKER.fullmatch(line):
        yield _marker(number, line, path)
        return
    if b"\t" in line:
        yield finding(at(line.index(b"\t")), "C-003", "a tab")
    control = _CONTROL.search(line)
    if control:
        yield finding(at(control.start()), "C-004", f"control character 0x{control[0][0]:02x}")
    if _BOM in line:
        yield finding(at(line.index(_BOM)), "C-006", "a byte-order mark")
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        yield finding(at(error.start), "C-005", f"byte 0x{line[error.start]:02x} is not UTF-8")
    kept = line.rstrip(b" ")
    if kept and kept != line:
        yield finding(at(len(kept)), "C-014", f"{len(line) - len(kept)} blanks at the end of the line")
    lost = _LOST_HEADER.match(line)
    if lost:
        name = b"config-keys" if b"config-keys" in lost[0] else b"kind"
        yield finding(at(line.index(name)), "C-010", f"the header `- {name.decode()}:` is not at the start of a line")


def _marker(number: int, line: bytes, path: str) -> Finding:
    return finding(Mark(path, number, 1), "C-007", f"conflict marker {line[:40].decode('utf-8', 'replace')!r}")


def _column(line: bytes, index: int) -> int:
    return len(line[:index].decode("utf-8", "replace")) + 1


def read_span(span: Span, path: str) -> Reading:
    """Read one entry strictly: YAML with unique keys and nothing folded, then the schema of its kind."""
    document, raw = load(span.body.replace(b"\r", b"") + b"\n", path, root="sequence")
    marked = [number for number, line in enumerate(span.body.split(b"\n"), span.line) if _MARKER.fullmatch(line)]
    if marked:
        return Reading(None, [_marker(number, span.body.split(b"\n")[number - span.line], path) for number in marked])
    found = [_recoded(item, span) for item in raw if item.code != "Y-006"]
    found += _folded(span, path)
    if document is None:
        return Reading(None, found)
    items = document.value
    if len(items) != 1 or not isinstance(items[0], dict):
        what = f"{len(items)} items" if len(items) != 1 else f"{type(items[0]).__name__} {items[0]!r:.60}"
        wrong = finding(Mark(path, span.line, 1), "C-016", f"{what} instead of a mapping")
        return Reading(None, [*found, wrong], items)
    entry, more = _model(document, span, path)
    return Reading(None if found else entry, [*found, *more], items[0])


def _model(document: Document, span: Span, path: str) -> tuple[Entry | None, list[Finding]]:
    kind = document.value[0].get("kind", "change")
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS) or f"one of {', '.join(KINDS)}"
        return None, [finding(_shifted(document.mark(0, "kind"), span), "C-017", f"unknown kind {kind!r}", hint)]
    link_line = document.mark(0, "pr-link").line if "pr-link" in document.value[0] else 0
    entry, raw = parse(document, KINDS[kind], at=(0,))
    found = []
    for item in raw:
        about_link = item.where.line == link_line or "pr-link" in item.message
        message = item.message.replace("[0].", "")
        code = "C-018" if about_link else "C-017"
        found.append(finding(_shifted(item.where, span), code, message, "" if about_link else item.hint))
    return entry, found


def _recoded(item: Finding, span: Span) -> Finding:
    code = "C-009" if item.code == "Y-012" else "C-008"
    message = re.sub(r"\bline (\d+)", lambda match: f"line {int(match[1]) + span.line - 1}", item.message)
    return finding(_shifted(item.where, span), code, message, "" if code == "C-009" else item.hint)


def _shifted(mark: Mark, span: Span) -> Mark:
    return replace(mark, line=mark.line + span.line - 1) if mark.line else replace(mark, line=span.line, column=1)


def _folded(span: Span, path: str) -> list[Finding]:
    """Text that goes on over several lines outside of a block scalar: how a lost header hides in the line above."""
    found, key_line, link = [], 0, False
    try:
        for event in yaml.parse(span.body.replace(b"\r", b"") + b"\n", Loader=_LOADER):
            if not isinstance(event, yaml.ScalarEvent):
                link = False
                continue
            line = event.start_mark.line
            where = Mark(path, span.line + line, event.start_mark.column + 1)
            text = event.value
            if event.style in (None, "", "'", '"') and event.end_mark.line > line and event.end_mark.column > 0:
                found.append(finding(where, "C-011", f"text folded over {event.end_mark.line - line + 1} lines: "
                                     f"{text[:60]!r}…"))
            elif link and line != key_line:
                found.append(finding(where, "C-011", "the link stands on the line after its key"))
            link, key_line = text == "pr-link", line
    except yaml.YAMLError:
        return found
    return found


def count_entries(data: bytes) -> int | None:
    """How many entries YAML sees in ``data``: None where it cannot be read, -1 where it is no list."""
    try:
        node = yaml.compose(data, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    if node is None:
        return 0
    return len(node.value) if isinstance(node, yaml.SequenceNode) else -1

