"""Owns merging two versions of a changelog, entry by entry. Pure: bytes in, bytes or the reasons of a conflict out.

The side that holds more of the trunk's bytes comes first, unchanged; the other side's own entries follow. Entries that
are not on the trunk yet may be edited or dropped by one side. Equal entries that both sides gained since their common
ancestor are one entry: a squash or a cherry-pick brought it. An entry whose link is still the placeholder is the same
as one that differs only in its link. Everything else that is not an append is a conflict.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from infx.changelog.spans import Span, Split, common_bytes, join, shared, split
from infx.changelog.syntax import check_bytes, read_span
from infx.findings import Finding

_LINK_LINE = re.compile(rb"^  pr-link:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
HIDING = {"C-004", "C-005", "C-006", "C-007", "C-008", "C-009", "C-010", "C-011", "C-012", "C-016"}
"""Codes of damage that can hide or fuse entries."""

_PENDING = re.compile(rb"(?:https://\S+/)?XXX")


@dataclass(frozen=True)
class Merged:
    """A merge's outcome: the ``data``, or ``conflicts`` that say what a person must decide; ``notes`` are news."""

    data: bytes
    conflicts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(ancestor: bytes, ours: bytes, theirs: bytes, trunks: Sequence[bytes] = (), *, joining: bool = True,
          path: str = "perf-changelog.yaml") -> Merged:
    """Merge ``theirs`` into ``ours`` given their ``ancestor`` and the trunk's versions, most trusted first.

    ``joining`` is True for `git merge`, where both sides descend from the ancestor; a rebase or a cherry-pick sets one
    commit's change on a side that may lack what the ancestor has. On a conflict ``data`` holds both sides between
    conflict markers.
    """
    old, mine, its = split(ancestor), split(ours), split(theirs)
    candidates = [split(data) for data in trunks] or [old]
    first = _holder(mine, its, candidates) if joining else mine
    trunk = max(candidates, key=lambda candidate: shared(first, candidate))
    problems = _altered(old, its, trunk, "their") + (_altered(old, mine, trunk, "our") if joining else [])
    if problems:
        return Merged(_marked(ours, theirs), problems)
    second = its if first is mine else mine
    if _front(second) not in (_front(old), _front(first)):
        return Merged(_marked(ours, theirs), ["the text before the first entry differs: keep the trunk's"])
    fixed = shared(first, trunk)
    known = min(shared(old, trunk), shared(second, trunk), fixed)
    own = _Own(landed=first.bodies[known:fixed], old=old.bodies[known:], new=second.bodies[known:],
               standing=first.bodies[fixed:])
    own.reconcile()
    if own.conflicts:
        return Merged(_marked(ours, theirs), own.conflicts)
    if not joining:
        first, fixed = _promoted(first, trunk, fixed, own.standing)
    data = _assemble(first, trunk, fixed, own.standing)
    damage = _damage(first, split(data), path)
    if damage:
        return Merged(_marked(ours, theirs), [str(item) for item in damage], own.notes)
    return Merged(data, [], own.notes)


def _holder(mine: Split, its: Split, trunks: Sequence[Split]) -> Split:
    """The side that holds more of the trunk, by the most trusted version that tells the sides apart; else ours."""
    for trunk in trunks:
        have, other = shared(mine, trunk), shared(its, trunk)
        if have != other:
            return mine if have > other else its
    return mine


def _promoted(first: Split, trunk: Split, fixed: int, own: list[bytes]) -> tuple[Split, int]:
    """Where a picked change brings the trunk's next entries, they go to their places there instead of the end."""
    reached = fixed
    while reached < len(trunk.spans) and trunk.bodies[reached] in own:
        own.remove(trunk.bodies[reached])
        reached += 1
    if reached == fixed:
        return first, fixed
    return split(trunk.data[: trunk.spans[reached - 1].end]), reached


def _altered(old: Split, side: Split, trunk: Split, whose: str) -> list[str]:
    """The trunk's entries that the ancestor has and a side lacks; such as only stand elsewhere in it are no loss."""
    left = Counter(side.bodies[shared(side, trunk):])
    problems = []
    for index in range(shared(side, trunk), shared(old, trunk)):
        lost = old.spans[index]
        if left[lost.body]:
            left[lost.body] -= 1
            continue
        problems.append(
            f"{whose} version changes or lacks the trunk's entry {old.ids[index]} ({title(lost.body)}, "
            f"line {lost.line} of the ancestor); entries on the trunk are never edited: run `infx changelog rebase "
            f"--onto TRUNK`, and to withdraw one `infx changelog retract {old.ids[index]}`")
    return problems


@dataclass
class _Own:
    """The entries that are not on the trunk: ``old`` the ancestor's, ``new`` the joining side's, ``standing`` those of
    the side that comes first (they become the result), ``landed`` what the trunk gained since."""

    landed: list[bytes]
    old: list[bytes]
    new: list[bytes]
    standing: list[bytes]
    conflicts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def reconcile(self) -> None:
        """Carry what ``new`` changed against ``old`` over to ``standing``."""
        self._drop_landed()
        before = list(self.standing)
        gained = _gained(self.old, before)
        matcher = difflib.SequenceMatcher(None, self.old, self.new, autojunk=False)
        added: list[bytes] = []
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                continue
            olds, news = self.old[i1:i2], self.new[j1:j2]
            paired = min(len(olds), len(news))
            for was, now in zip(olds[:paired], news[:paired], strict=True):
                self._edit(was, now, before)
            for was in olds[paired:]:
                self._remove(was, before)
            added += news[paired:]
        for body in added:
            self._add(body, gained)

    def _drop_landed(self) -> None:
        """Take what the trunk has gained out of both the ancestor's and the joining side's own entries."""
        known: set[bytes] = set()
        for entries in (self.old, self.new):
            left = list(self.landed)
            for body in list(entries):
                same = twin(body, left)
                if same is not None:
                    left.remove(same)
                    entries.remove(body)
                    if entries is self.old:
                        known.add(body)
                    elif same != body and body not in known:
                        self.notes.append(f"the entry {title(body)!r} is on the trunk, its link filled in: kept once")

    def _edit(self, was: bytes, now: bytes, before: list[bytes]) -> None:
        if was in before:
            before.remove(was)
            self.standing[self.standing.index(was)] = now
        elif now in self.standing:
            return
        else:
            self.conflicts.append(f"both sides changed or dropped the unpublished entry {title(was)!r}: keep one")

    def _remove(self, was: bytes, before: list[bytes]) -> None:
        if was in before:
            before.remove(was)
            self.standing.remove(was)
        elif any(_same_but_link(was, other) for other in self.standing):
            self.conflicts.append(f"one side dropped the unpublished entry {title(was)!r}, the other changed it")

    def _add(self, body: bytes, gained: list[bytes]) -> None:
        same = twin(body, gained)
        if same is not None:
            gained.remove(same)
            return
        pending = next((other for other in gained if _pending(other) and _same_but_link(other, body)), None)
        if pending is not None:
            gained.remove(pending)
            self.standing[self.standing.index(pending)] = body
            return
        self.standing.append(body)


def _gained(old: Sequence[bytes], standing: Sequence[bytes]) -> list[bytes]:
    """What the first side added of its own, compared with the ancestor."""
    left, gained = list(old), []
    for body in standing:
        if body in left:
            left.remove(body)
        else:
            gained.append(body)
    return gained


def twin(body: bytes, among: Sequence[bytes]) -> bytes | None:
    """An equal entry, or for a placeholder link one that differs in its link alone."""
    if body in among:
        return body
    if not _pending(body):
        return None
    return next((other for other in among if _same_but_link(body, other)), None)


def _same_but_link(one: bytes, other: bytes) -> bool:
    return _LINK_LINE.sub(b"", one) == _LINK_LINE.sub(b"", other)


def _pending(body: bytes) -> bool:
    link = _LINK_LINE.search(body)
    return link is not None and _PENDING.fullmatch(link[1].strip(b"\"'")) is not None


def title(body: bytes) -> str:
    """A few words that name an entry to a person: its first key or item."""
    lines = [line.strip().decode("utf-8", "replace") for line in body.split(b"\n")]
    named = next((line[2:] for line in lines[1:] if line.startswith("- ")), lines[0])
    return named.strip("\"'")[:60]


def _protected(first: Split, trunk: Split, fixed: int) -> int:
    """How many leading bytes of the first side are the trunk's."""
    if first.data.startswith(trunk.data):
        return len(trunk.data)
    if not fixed:
        return min(first.preamble, common_bytes(first.data, trunk.data))
    last = first.spans[fixed - 1]
    return max(last.body_end, min(last.end, common_bytes(first.data, trunk.data)))


def _assemble(first: Split, trunk: Split, fixed: int, own: Sequence[bytes]) -> bytes:
    """The first side's bytes as far as its own entries still stand in their places, then the rest."""
    have: Sequence[Span] = first.spans[fixed:]
    same = 0
    while same < min(len(have), len(own)) and have[same].body == own[same]:
        same += 1
    kept = first.data if same == len(have) else first.data[: have[same].start]
    protected = min(len(kept), max(_protected(first, trunk, fixed), first.preamble if not fixed else 0))
    if same == len(own) and same < len(have):
        return kept[:protected] + kept[protected:].rstrip(b" \t\r\n") + (b"\n" if len(kept) > protected else b"")
    return join(kept, own[same:], protected)


def _front(side: Split) -> bytes:
    return side.data[: side.preamble].rstrip()


def _damage(first: Split, result: Split, path: str) -> list[Finding]:
    """Damage in the entries that join the first side's: a merge must not pass on what hides or fuses entries."""
    known = Counter(first.bodies)
    found: list[Finding] = []
    for span in result.spans:
        if known[span.body]:
            known[span.body] -= 1
            continue
        found += check_bytes(result.data, span.start, span.body_end, path) + read_span(span, path).findings
    return sorted({item for item in found if item.code in HIDING})


def _marked(ours: bytes, theirs: bytes) -> bytes:
    """Both sides, with conflict markers round what they do not share, cut between entries."""
    mine, its = split(ours), split(theirs)
    same = shared(mine, its)
    cut = mine.spans[same].start if same < len(mine.spans) else len(ours)
    other = its.spans[same].start if same < len(its.spans) else len(theirs)
    if ours[:cut] != theirs[:cut]:
        cut, other = 0, 0

    def whole(part: bytes) -> bytes:
        return part if not part or part.endswith(b"\n") else part + b"\n"

    return (whole(ours[:cut]) + b"<<<<<<< ours\n" + whole(ours[cut:]) + b"=======\n" + whole(theirs[other:])
            + b">>>>>>> theirs\n")
