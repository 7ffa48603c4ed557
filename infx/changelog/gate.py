"""Owns the gate: what a changelog may look like against the trunk it builds on. Pure; one rule set, two moments."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from infx.changelog.codes import finding
from infx.changelog.coverage import Recipes, check_coverage
from infx.changelog.entries import publishable
from infx.changelog.spans import Span, Split, common_bytes, split
from infx.changelog.syntax import Entry, check_bytes, count_entries, read_span
from infx.findings import Finding, Mark
from infx.schema.changelog import Change, Results, Retract

Moment = Literal["pr", "merge"]

PATH = "perf-changelog.yaml"
MOST = 40
"""Findings about altered history that are listed one by one."""


def check(head: bytes, base: bytes = b"", *, path: str = PATH, at: Moment = "pr", recipes: Recipes | None = None,
          trunk: bool = True) -> list[Finding]:
    """Every finding about ``head``, a changelog's bytes, given ``base``, the trunk's bytes where the branch left it.

    What ``base`` holds is never judged, only that it is still there byte for byte. ``at`` is ``merge`` for the moment
    of merging, when placeholder links are refused; nothing else depends on it. ``trunk`` is False for the changelog of
    a run folder, which takes results that may not be published. Without ``recipes`` coverage is not judged.
    """
    old, new = split(base), split(head)
    intact = head.startswith(base)
    fresh = _fresh(old, new, intact)
    found = [] if intact else _history(old, new, path)
    if intact:
        found += _region(old, new, path)
    else:
        for span in fresh:
            found += check_bytes(head, span.start, span.start + len(span.body), path)
    readings = [(span, read_span(span, path)) for span in fresh]
    for span, reading in readings:
        found += reading.findings
        if isinstance(reading.entry, Change) and reading.entry.pending and at == "merge":
            found.append(finding(_key(span, b"pr-link", path), "C-019", f"the link is still {reading.entry.pr_link}"))
    found += _counts(old, new, path, bool(found))
    entries = [(span, reading.entry) for span, reading in readings if reading.entry is not None]
    found += _ledger(new, entries, path, trunk)
    if recipes is not None:
        changes = [(entry, _key(span, b"config-keys", path)) for span, entry in entries if isinstance(entry, Change)]
        found += check_coverage(changes, recipes, path)
    return sorted(set(found))


def choose_base(head: bytes, trunk: bytes, states: Iterable[bytes], forks: Iterable[bytes] = ()) -> bytes:
    """The bytes of the trunk that ``head`` builds on.

    ``states`` are what the trunk held at its own commits that ``head`` has, newest first; ``forks`` what the merge
    bases of both hold, which may be commits of another branch that landed since. All of ``trunk`` where ``head`` begins
    with it, and where the merge bases hold all of its entries: git takes such a branch's file as it is and asks no
    merge driver, so the trunk must come first already. Else the newest state. States that the trunk itself has given
    up since (a branch landed commit by commit, and a later one edited its entry) are passed over where ``head`` has all
    of their entries that the trunk still has.
    """
    if head.startswith(trunk):
        return trunk
    known: Counter[bytes] = Counter()
    for fork in forks:
        known |= Counter(split(fork).bodies)
    if known and not Counter(split(trunk).bodies) - known:
        return trunk
    newest: bytes | None = None
    have, standing = Counter(split(head).bodies), Counter(split(trunk).bodies)
    for state in states:
        newest = state if newest is None else newest
        if head.startswith(state) or trunk.startswith(state):
            return state
        if (Counter(split(state).bodies) - have) & standing:
            break
    return newest or b""


def _fresh(old: Split, new: Split, intact: bool) -> list[Span]:
    if intact:
        return list(new.spans[len(old.spans):])
    left = Counter(old.bodies)
    fresh = []
    for span in new.spans:
        if left[span.body]:
            left[span.body] -= 1
        else:
            fresh.append(span)
    return fresh


def _region(old: Split, new: Split, path: str) -> list[Finding]:
    """Findings about the bytes behind the base: their characters, and what parts the entries."""
    base, head = old.data, new.data
    if len(head) == len(base):
        return []
    found = check_bytes(head, len(base), len(head), path)
    fresh = new.spans[len(old.spans):]
    first = fresh[0].start if fresh else len(head)
    lead = head[len(base):first]
    if lead.strip() and (old.spans or not _comment(lead)):
        line = new.line_at(len(base) + len(lead) - len(lead.lstrip(b"\r\n")))
        code = "C-015" if old.spans else "C-016"
        what = "text is added to the trunk's last entry" if old.spans else "text before the first entry"
        found.append(finding(Mark(path, line, 1), code, f"{what}: {lead.strip()[:60].decode('utf-8', 'replace')!r}",
                             "begin a new entry with `- ` in column 1"))
    elif fresh and not lead.strip():
        found += _lead(old, lead, fresh[0], path)
    for above, below in zip(fresh, fresh[1:], strict=False):
        if head[above.body_end:above.end] != b"\n\n":
            blanks = _blanks(head[above.body_end:above.end])
            found.append(_gap(new, above, f"{blanks} before the entry of line {below.line}", path))
    if not head.endswith(b"\n"):
        last = head.rpartition(b"\n")[2].decode("utf-8", "replace")
        where = Mark(path, new.line_at(len(head)), len(last) + 1)
        found.append(finding(where, "C-001", "the file does not end with a newline"))
    elif fresh and head[fresh[-1].body_end:] != b"\n":
        found.append(_gap(new, fresh[-1], f"{_blanks(head[fresh[-1].body_end:])} at the end of the file", path))
    return found


def _lead(old: Split, lead: bytes, first: Span, path: str) -> list[Finding]:
    """What parts the first new entry from the trunk: one empty line, or the blank lines that the trunk ends with."""
    base = old.data
    if not old.spans:
        fits = lead.count(b"\n") <= 1 + (not base.endswith(b"\n") and bool(base)) and not lead.strip(b"\n")
    elif not base.endswith(b"\n"):
        fits = lead == (b"\n\n" if base.rpartition(b"\n")[2].strip() else b"\n")
    else:
        above = base[:-1].rpartition(b"\n")[2]
        fits = lead == b"\n" or (not above.strip() and lead == b"")
    if fits:
        return []
    what = _blanks(b"\n" * base.endswith(b"\n") + lead)
    return [finding(Mark(path, first.line, 1), "C-013", f"{what} between the trunk's last entry and the new one")]


def _gap(new: Split, above: Span, what: str, path: str) -> Finding:
    return finding(Mark(path, new.line_at(above.body_end) + 1, 1), "C-013", what)


def _blanks(tail: bytes) -> str:
    lines = tail.split(b"\n")[1:-1]
    if any(lines):
        return "a separator line of blanks"
    return f"{len(lines)} empty lines" if lines else "no empty line"


def _comment(text: bytes) -> bool:
    return all(not line.strip() or line.startswith(b"#") for line in text.split(b"\n"))


def _counts(old: Split, new: Split, path: str, known: bool) -> list[Finding]:
    """Entries by text against entries by YAML, for the whole file where the base itself reads, else the new part."""
    if len(new.data) == len(old.data):
        return []
    whole = count_entries(old.data) == len(old.spans)
    data = new.data if whole else new.data[len(old.data):]
    headers = len(new.spans) - (0 if whole else len(old.spans))
    parsed = count_entries(data)
    if parsed == headers or (parsed is None and known):
        return []
    what = "cannot be read as YAML" if parsed is None else "is no list" if parsed < 0 else f"YAML reads as {parsed}"
    line = new.spans[len(old.spans)].line if len(new.spans) > len(old.spans) else new.line_at(len(old.data))
    return [finding(Mark(path, line, 1), "C-012", f"{headers} entries by their headers, but the text {what}")]


def _history(old: Split, new: Split, path: str) -> list[Finding]:
    """What happened to the base's bytes: which entries were changed, removed, moved or pushed apart."""
    common = common_bytes(old.data, new.data)
    line = new.line_at(common)
    matcher = difflib.SequenceMatcher(None, old.bodies, new.bodies, autojunk=False)
    found = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        place = Mark(path, new.spans[j1].line if j1 < len(new.spans) else new.line_at(len(new.data)), 1)
        if tag == "insert" and j2 < len(new.spans):
            found.append(finding(place, "C-015", f"{j2 - j1} entries are inserted before the trunk's entry of line "
                                 f"{old.spans[i1].line if i1 < len(old.spans) else '?'}; entries go at the end"))
        for k, span in enumerate(old.spans[i1:i2] if tag in ("delete", "replace") else ()):
            changed = tag == "replace" and j1 + k < j2
            where = Mark(path, new.spans[j1 + k].line, 1) if changed else place
            done = "changed" if changed else "removed"
            found.append(finding(where, "C-015", f"the trunk's entry {old.ids[span.index]} (its line {span.line}: "
                                 f"{_title(span)}) is {done}"))
    if not found:
        what = "blanks or comments between the trunk's entries are changed"
        found.append(finding(Mark(path, line, 1), "C-015", what))
    more = [finding(Mark(path, line, 1), "C-015", f"and {len(found) - MOST} more")] if len(found) > MOST else []
    return found[:MOST] + more


def _title(span: Span) -> str:
    lines = [line.strip().decode("utf-8", "replace") for line in span.body.split(b"\n")]
    named = next((line[2:] for line in lines[1:] if line.startswith("- ")), lines[0])
    return named.strip("\"'")[:60]


def _key(span: Span, key: bytes, path: str) -> Mark:
    """Where a key of an entry stands, else where the entry begins."""
    for number, line in enumerate(span.body.split(b"\n"), span.line):
        bare = line.lstrip(b"- ")
        if bare.startswith(key + b":"):
            return Mark(path, number, len(line) - len(bare) + 1)
    return Mark(path, span.line, 1)


def _ledger(new: Split, fresh: Sequence[tuple[Span, Entry]], path: str, trunk: bool) -> list[Finding]:
    """Whether new retractions have a target and new results may stand here."""
    found, standing, retracted, runs = [], {}, set(), {}
    own = {span.index: entry for span, entry in fresh}
    for name, span in zip(new.ids, new.spans, strict=True):
        entry = own.get(span.index)
        if entry is None and (b"kind: retract" in span.body or b"kind: results" in span.body):
            entry = read_span(span, path).entry
        if isinstance(entry, Retract):
            problem = "is retracted already" if entry.entry in retracted else (
                "" if standing.get(entry.entry) else "is no entry above this one that can be retracted")
            if problem and span.index in own:
                found.append(finding(_key(span, b"entry", path), "C-024", f"{entry.entry} {problem}"))
            retracted.add(entry.entry)
            runs = {run: holder for run, holder in runs.items() if holder != entry.entry}
        if isinstance(entry, Results):
            found += _results(entry, span, runs, path, trunk) if span.index in own else []
            runs.setdefault(entry.run, name)
        standing[name] = not isinstance(entry, Retract)
    return found


def _results(entry: Results, span: Span, runs: dict[str, str], path: str, trunk: bool) -> list[Finding]:
    found = []
    if trunk and not publishable(entry):
        found.append(finding(_key(span, b"provenance", path), "C-025",
                             f"run {entry.run} is {', '.join(entry.provenance)}"))
    if entry.run in runs:
        message = f"run {entry.run} is recorded by entry {runs[entry.run]}"
        found.append(finding(_key(span, b"run", path), "C-026", message))
    return found
