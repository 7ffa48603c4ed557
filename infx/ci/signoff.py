"""Owns the verdict on a sign-off: what a machine decides is decided by facts, the rest is listed as a person's word.

Pure: the same checklist, comment and facts give the same verdict. A tick never overrules a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from infx.ci.checklist import Checklist, Item, Signed
from infx.ci.commands import INSIDERS, Comment

MARKER = "<!-- infx:signoff -->"
STATUS = "infx/signoff"
"""Name of the commit status that a verdict sets."""


@dataclass(frozen=True)
class Fact:
    """What infx found about one box: ``holds`` None where it cannot decide, so that a person must."""

    holds: bool | None
    message: str


@dataclass(frozen=True)
class Decision:
    """One box: who decided it, whether it holds, and why."""

    key: str
    by: Literal["machine", "person"]
    holds: bool
    message: str


@dataclass(frozen=True)
class Verdict:
    """``refusals`` are about the comment itself; ``decisions`` are there for every box of the checklist."""

    commit: str
    signer: str
    refusals: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def passes(self) -> bool:
        return not self.refusals and all(decision.holds for decision in self.decisions)


def decide(checklist: Checklist, signed: Signed, comment: Comment, *, head: str, author: str,
           unowned: Sequence[tuple[str, tuple[str, ...]]], facts: Mapping[str, Fact]) -> Verdict:
    """The verdict on ``comment``, whose text is ``signed``, for a pull request of ``author`` whose head is ``head``.

    ``unowned``: changed files that the signer does not own, with their owners. ``facts``: by machine box.
    """
    refusals = [*_about_signer(comment, author, unowned), *_about_text(checklist, signed, head)]
    decisions = tuple(_decision(item, signed, facts.get(item.key)) for item in checklist.items)
    return Verdict(head, comment.author, tuple(refusals), decisions)


def _about_signer(comment: Comment, author: str, unowned: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    said = []
    if comment.bot:
        said.append("a bot cannot sign off")
    if comment.association not in INSIDERS:
        said.append(f"{comment.author} is an outsider ({comment.association})")
    if comment.author.lower() == author.lower():
        said.append(f"{comment.author} wrote this pull request: somebody else signs it off")
    if comment.edited:
        said.append("the comment was edited, and nobody can tell by whom: post a new one")
    for path, owners in unowned[:5]:
        said.append(f"{comment.author} does not own {path} (CODEOWNERS: {', '.join(owners) or 'nobody'})")
    if len(unowned) > 5:
        said.append(f"and {len(unowned) - 5} more files that {comment.author} does not own")
    return said


def _about_text(checklist: Checklist, signed: Signed, head: str) -> list[str]:
    said = []
    if signed.version != checklist.version:
        said.append(f"it is of version {signed.version} of the checklist, now it is version {checklist.version}: "
                    "take the new one (`infx ci checklist`)")
    if signed.commit != head:
        said.append(f"it is of commit {signed.commit[:12]}, the head is {head[:12]}: a later push voids a sign-off")
    if signed.version != checklist.version:
        return said
    wanted = {item.key: item.text for item in checklist.items}
    keys = [key for key, _ in signed.words]
    said += [f"the box {key} is missing" for key in wanted if key not in keys]
    said += [f"the box {key} comes twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    said += [f"the box {key} is not of the checklist" for key in dict.fromkeys(keys) if key not in wanted]
    said += [f"the words of the box {key} were changed" for key, text in signed.words
             if key in wanted and text != wanted[key]]
    return said


def _decision(item: Item, signed: Signed, fact: Fact | None) -> Decision:
    ticked = item.key in signed.ticked
    if item.by == "person":
        return Decision(item.key, "person", ticked, "a person's word" if ticked else "not ticked")
    if fact is None or fact.holds is None:
        why = fact.message if fact else "nothing is known"
        return Decision(item.key, "person", ticked, f"{why}; {'a person vouches' if ticked else 'not ticked'}")
    return Decision(item.key, "machine", fact.holds, fact.message)


def markdown(verdict: Verdict) -> str:
    """The verdict as a comment: the refusals, then a table of the boxes."""
    word = "accepted" if verdict.passes else "not accepted"
    lines = [f"**Sign-off by {verdict.signer} for `{verdict.commit[:12]}`: {word}.**", ""]
    lines += [f"- {item}" for item in verdict.refusals]
    lines += ["", "| box | decided by | | why |", "| --- | --- | --- | --- |"]
    for item in verdict.decisions:
        why = " ".join(item.message.split()).replace("|", "\\|")
        why = why if len(why) <= 400 else f"{why[:397]}…"
        lines.append(f"| {item.key} | {'infx' if item.by == 'machine' else 'a person'} | "
                     f"{'yes' if item.holds else '**no**'} | {why} |")
    return "\n".join([*lines, "", "A later push voids this. docs/ci.md says how each box is cleared."]) + "\n"


def status(verdict: Verdict) -> dict[str, str]:
    """The commit status for the head, as the code host takes it."""
    bad = len(verdict.refusals) + sum(not item.holds for item in verdict.decisions)
    said = f"signed off by {verdict.signer}" if verdict.passes else f"{bad} reasons against the sign-off"
    return {"state": "success" if verdict.passes else "failure", "context": STATUS, "description": said}
