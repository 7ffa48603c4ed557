"""Owns reading YAML text: bytes → (Document or None, findings), strictly, in bounded time, never raising for bad text.

Accepted: UTF-8 (a byte-order mark gives a warning), LF and CR LF, anchors and aliases within limits, plain words that
every YAML version reads alike, and ``1e3`` and dates in the obvious way (a number; text). All else is a finding of
``infx.sources.codes`` that names the fix. The limits are the constants below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from infx.findings import Finding, Mark
from infx.sources.codes import finding
from infx.sources.document import Document, Node
from infx.sources.scalars import resolve

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_VALUES_FROM_ALIASES = 20_000
MAX_FINDINGS = 100

Root = Literal["mapping", "sequence", "any"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_ODD_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_CONFLICT = re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE)
_BOMS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\x00\x00\xfe\xff", "UTF-32"))


def load(
    text: bytes, path: str, *, root: Root = "mapping", limit: int = MAX_BYTES
) -> tuple[Document | None, list[Finding]]:
    """Read one YAML document.

    ``path`` is used in marks only. ``root`` says what the file must be; ``limit`` is in bytes. The document is None
    where the text has no usable structure; where single words were refused it is given with ``doubtful`` set.
    """
    if len(text) > limit:
        message = f"the file has {len(text):,} bytes; the limit is {limit:,}"
        return None, [finding(Mark(path, 1, 1), "Y-002", message, "split it, or move data out of it")]
    decoded, found = _decode(text, path)
    if decoded is None:
        return None, found
    found += _characters(decoded, path)
    if any(item.code != "Y-006" for item in found):
        return None, found
    builder = _Builder(path)
    node = builder.build(decoded)
    found = [*found, *builder.found][:MAX_FINDINGS]
    if node is None:
        return None, found
    node.doubtful |= bool(builder.found)
    wanted = {"mapping": node.keys is not None, "sequence": node.items is not None, "any": True}[root]
    if not wanted:
        message = f"the file is {_kind(node)}, not a {root}"
        hint = "write `key: value` lines" if root == "mapping" else "write `- item` lines"
        return None, [*found, finding(node.mark, "Y-009", message, hint)]
    return Document(path, node, decoded), found


def _decode(text: bytes, path: str) -> tuple[str | None, list[Finding]]:
    start = Mark(path, 1, 1)
    for bom, name in _BOMS:
        if text.startswith(bom):
            return None, [finding(start, "Y-003", f"the file is {name}", "save it as UTF-8")]
    found = []
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
        found.append(finding(start, "Y-006", "the file begins with a byte-order mark", "save it without one"))
    try:
        return text.decode("utf-8"), found
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8")
        message = f"byte 0x{text[error.start]:02x} is not UTF-8"
        return None, [*found, finding(_place(before, len(before), path), "Y-003", message, "save the file as UTF-8")]


def _characters(text: str, path: str) -> list[Finding]:
    found = []
    for pattern, code, fix in ((_CONTROL, "Y-004", "remove it"), (_ODD_BREAK, "Y-005", "use LF line ends")):
        match = pattern.search(text)
        if match:
            message = f"character U+{ord(match.group()):04X} is not allowed"
            found.append(finding(_place(text, match.start(), path), code, message, fix))
    return found


def _place(text: str, offset: int, path: str) -> Mark:
    line = text.count("\n", 0, offset) + 1
    return Mark(path, line, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def _kind(node: Node) -> str:
    if node.keys is not None:
        return "a mapping"
    return "a list" if node.items is not None else f"one value, {node.text!r:.60}"


@dataclass
class _Frame:
    """An open mapping or sequence: its node and the key that waits for its value."""

    node: Node
    anchor: str | None
    key: tuple[str, Mark] | None = None
    refused: bool = False
    wants_key: bool = True


@dataclass
class _Builder:
    """Builds nodes from parser events without recursion, so that depth and aliases are bounded before expansion."""

    path: str
    found: list[Finding] = field(default_factory=list)
    anchors: dict[str, Node | None] = field(default_factory=dict)
    frames: list[_Frame] = field(default_factory=list)
    root: Node | None = None
    documents: int = 0
    expanded: int = 0

    def build(self, text: str) -> Node | None:
        """The root node, or None with findings."""
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                if not self._take(event):
                    return None
        except yaml.YAMLError as error:
            self._broken(error, text)
            return None
        if self.root is None:
            self._say(Mark(self.path, 1, 1), "Y-008", "the file is empty", "fill it or remove it")
        return self.root

    def _take(self, event: Any) -> bool:
        """Handle one event; False stops the reading."""
        mark = self._mark(event)
        if isinstance(event, yaml.DocumentStartEvent):
            return self._document(event, mark)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, mark)
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
            return True
        if not isinstance(event, (yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            return True
        if event.tag is not None:
            fix = "remove it; quote the value to make it text"
            self._say(mark, "Y-011", f"tag {event.tag!r:.60} is not allowed", fix)
        if event.anchor is not None and event.anchor in self.anchors:
            self._say(mark, "Y-018", f"anchor &{event.anchor} is set twice", "give it another name")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, mark)
        return self._open(event, mark)

    def _document(self, event: Any, mark: Mark) -> bool:
        self.documents += 1
        if self.documents > 1:
            self._say(mark, "Y-010", "a second document begins here", "split the file at the `---`")
            return False
        if event.version or event.tags:
            self._say(mark, "Y-011", "directives are not allowed", "remove the lines that begin with %")
            return False
        return True

    def _scalar(self, event: Any, mark: Mark) -> bool:
        plain = event.implicit[0] and event.tag is None
        frame = self.frames[-1] if self.frames else None
        if frame and frame.node.keys is not None and frame.wants_key:
            self._key(frame, event.value, plain, mark)
            return True
        if frame is None and plain and not event.value:
            return True
        value, refusal = resolve(event.value) if plain else (event.value, None)
        if refusal:
            self._say(mark, refusal.code, refusal.message, refusal.hint)
        node = Node(mark, value, event.value, doubtful=refusal is not None or event.tag is not None)
        if event.anchor:
            self.anchors[event.anchor] = node
        self._add(node)
        return True

    def _key(self, frame: _Frame, text: str, plain: bool, mark: Mark) -> None:
        """Take the key of a pair; a refused key drops its pair."""
        frame.wants_key = False
        frame.key, frame.refused = (text, mark), True
        value, refusal = resolve(text) if plain else (text, None)
        if plain and text == "<<":
            self._say(mark, "Y-014", "merge keys are not allowed", "write the keys out, or use overrides or arms")
        elif plain and not text:
            self._say(mark, "Y-015", "a pair without a key", "write the key")
        elif not isinstance(value, str) or refusal:
            kind = "null" if value is None else type(value).__name__
            self._say(mark, "Y-015", f"the key {text!r:.60} is {kind}, not text", f'quote it: "{text[:60]}"')
        elif text in (frame.node.keys or {}):
            first = frame.node.keys[text][0]  # type: ignore[index]
            self._say(mark, "Y-012", f"key {text!r:.80} stands at line {first.line} already", "keep one of them")
            frame.node.doubtful = True
        else:
            frame.refused = False
        frame.node.doubtful |= frame.refused

    def _open(self, event: Any, mark: Mark) -> bool:
        if len(self.frames) >= MAX_DEPTH:
            self._say(mark, "Y-016", f"more than {MAX_DEPTH} levels", "flatten the file")
            return False
        frame = self.frames[-1] if self.frames else None
        if frame and frame.node.keys is not None and frame.wants_key:
            self._say(mark, "Y-015", "a mapping or a list as key", "keys are text: quote it if it is meant as such")
            return False
        node = Node(mark, doubtful=event.tag is not None)
        if isinstance(event, yaml.MappingStartEvent):
            node.value, node.keys = {}, {}
        else:
            node.value, node.items = [], []
        if event.anchor:
            self.anchors[event.anchor] = None
        self.frames.append(_Frame(node, event.anchor))
        return True

    def _close(self) -> None:
        frame = self.frames.pop()
        if frame.anchor:
            self.anchors[frame.anchor] = frame.node
        self._add(frame.node)

    def _alias(self, name: str, mark: Mark) -> bool:
        frame = self.frames[-1] if self.frames else None
        if frame and frame.node.keys is not None and frame.wants_key:
            self._say(mark, "Y-015", "an alias as key", "write the key out")
            return False
        node = self.anchors.get(name)
        if node is None:
            why = "is inside of itself" if name in self.anchors else "has no anchor above it"
            self._say(mark, "Y-018", f"alias *{name} {why}", "write the value out")
            return False
        self.expanded += node.size
        if self.expanded > MAX_VALUES_FROM_ALIASES:
            message = f"aliases would expand to more than {MAX_VALUES_FROM_ALIASES:,} values"
            self._say(mark, "Y-017", message, "write the values out")
            return False
        if len(self.frames) + node.height > MAX_DEPTH:
            self._say(mark, "Y-016", f"more than {MAX_DEPTH} levels with the alias *{name}", "flatten the file")
            return False
        self._add(Node(mark, node.value, node.text, node.items, node.keys, node.size, node.height, node.doubtful))
        return True

    def _add(self, node: Node) -> None:
        """Put a finished value into the open mapping or sequence."""
        if not self.frames:
            self.root = node
            return
        frame = self.frames[-1]
        above = frame.node
        above.size += node.size
        above.height = max(above.height, node.height + 1)
        if above.items is not None:
            above.items.append(node)
            above.value.append(node.value)
            return
        frame.wants_key = True
        if frame.key and not frame.refused:
            key, mark = frame.key
            above.keys[key] = (mark, node)  # type: ignore[index]
            above.value[key] = node.value

    def _broken(self, error: yaml.YAMLError, text: str) -> None:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        mark = getattr(error, "problem_mark", None)
        where = Mark(self.path, mark.line + 1, mark.column + 1) if mark else Mark(self.path, 1, 1)
        lines = text.split("\n")
        line = lines[mark.line] if mark and mark.line < len(lines) else ""
        conflict = _CONFLICT.search(text)
        if conflict:
            where = _place(text, conflict.start(), self.path)
            self._say(where, "Y-001", "an unresolved merge conflict", "keep one side and remove the marker lines")
            return
        if "maximum" in problem:
            self._say(where, "Y-016", f"more than {MAX_DEPTH} levels", "flatten the file")
            return
        if re.match(r" *(?:- *)*\t", line) and "\t" in line[: where.column]:
            tab = Mark(self.path, where.line, line.index("\t") + 1)
            self._say(tab, "Y-007", "a tab in the indentation", "use spaces")
            return
        context, begun = getattr(error, "context", None), getattr(error, "context_mark", None)
        since = f" {context} of line {begun.line + 1}" if context and begun else ""
        self._say(where, "Y-001", f"{problem}{since}", _advice(problem))

    def _mark(self, event: Any) -> Mark:
        start = event.start_mark
        return Mark(self.path, start.line + 1, start.column + 1)

    def _say(self, where: Mark, code: str, message: str, hint: str) -> None:
        if len(self.found) < MAX_FINDINGS:
            self.found.append(finding(where, code, message, hint))


def _advice(problem: str) -> str:
    if "cannot start any token" in problem:
        return "quote the value that holds this character"
    if "mapping values are not allowed" in problem:
        return "quote the value that holds `: `, or mend the indentation"
    if "unexpected end" in problem:
        return "close the quote or bracket"
    return "mend the text at this place"
