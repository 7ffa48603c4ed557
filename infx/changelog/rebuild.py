"""Owns rebuilding a branch's changelog: the trunk's bytes, then the branch's own entries, found in its own commits."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from infx.changelog.merge import HIDING, twin
from infx.changelog.spans import Span, Split, join, split
from infx.changelog.syntax import check_bytes, read_span


@dataclass(frozen=True)
class Rebuilt:
    """The new bytes, the branch's entries in them, and texts that were left out with the reason."""

    data: bytes
    own: list[bytes]
    left_out: list[tuple[str, bytes]] = field(default_factory=list)


def rebuild(trunk: bytes, steps: Sequence[tuple[bytes, bytes]], head: bytes) -> Rebuilt:
    """The trunk's bytes followed by what a branch added in ``steps``.

    A step is one plain commit (no merge): the file before and after it, oldest first; the last may be the working copy
    against the last commit. ``head`` is the file as it is now: sound entries of it that neither the trunk nor a step
    knows are named as left out, not lost silently.
    """
    base = Counter(split(trunk).bodies)
    own: list[bytes] = []
    left_out: list[tuple[str, bytes]] = []
    repeats: Counter[bytes] = Counter()
    for before, after in steps:
        old, new = Counter(split(before).bodies), Counter(split(after).bodies)
        inherited = old - Counter(own)
        _follow(split(before), split(after), base, own, left_out)
        repeats |= Counter({body: inherited[body] for body in new - old if inherited[body]})
    kept = _not_landed(own, list((base - repeats).elements()))
    known = Counter(split(trunk).bodies) + Counter(own) + Counter(body for _, body in left_out)
    for span in split(head).spans:
        if known[span.body]:
            known[span.body] -= 1
        else:
            left_out.append(("made by a merge, not by a commit of this branch", span.body))
    return Rebuilt(join(trunk, kept, len(trunk)), kept, left_out)


def _not_landed(own: Sequence[bytes], landed: list[bytes]) -> list[bytes]:
    """What of ``own`` is not among ``landed``, the trunk's entries without those that the branch repeats on purpose."""
    kept = []
    for body in own:
        same = twin(body, landed)
        if same is None:
            kept.append(body)
        else:
            landed.remove(same)
    return kept


def _follow(old: Split, new: Split, base: Counter[bytes], own: list[bytes],
            left_out: list[tuple[str, bytes]]) -> None:
    """Carry one commit's additions, edits and removals over to the branch's own entries."""
    matcher = difflib.SequenceMatcher(None, old.bodies, new.bodies, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        was, now = list(old.bodies[i1:i2]), list(new.spans[j1:j2])
        paired = min(len(was), len(now))
        for body, span in zip(was[:paired], now[:paired], strict=True):
            if body in own:
                own[own.index(body)] = span.body
            elif base[body]:
                left_out.append((_why(span, new) or "it stands in the place of an entry of the trunk", span.body))
            else:
                _take(span, new, own, left_out)
        for body in was[paired:]:
            if body in own:
                own.remove(body)
        for span in now[paired:]:
            _take(span, new, own, left_out)


def _take(span: Span, new: Split, own: list[bytes], left_out: list[tuple[str, bytes]]) -> None:
    why = _why(span, new)
    if why:
        left_out.append((why, span.body))
    else:
        own.append(span.body)


def _why(span: Span, whole: Split) -> str:
    """Why an entry cannot be carried over as it is, or an empty text."""
    found = check_bytes(whole.data, span.start, span.body_end, "entry") + read_span(span, "entry").findings
    hiding = sorted(item for item in found if item.code in HIDING)
    return f"{hiding[0].code} {hiding[0].message}" if hiding else ""
