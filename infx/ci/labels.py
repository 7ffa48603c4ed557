"""Owns what a pull request's labels ask for: which points, canary, fail-fast, evals; and which of them restart a sweep.

Pure: labels and the head commit's message → Ask. Labels that are not named here are nobody's business, unless they look
like one of these: a mistyped label would start nothing and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from infx.errors import InputError
from infx.findings import did_you_mean

Points = Literal["none", "lowest", "all"]
Evals = Literal["default", "all", "only"]

SKIP = "[skip-sweep]"
"""In the head commit's message: this commit starts no sweep."""


@dataclass(frozen=True)
class Ask:
    """What labels ask for. ``points``: none, the lowest concurrency of each rung family, or all; ``why``: in words."""

    points: Points = "none"
    canary: bool = False
    fail_fast: bool = False
    evals: Evals = "default"
    fast: bool = False
    why: str = ""


PRIMARY: dict[str, Ask] = {
    "sweep-enabled": Ask("lowest"),
    "full-sweep-enabled": Ask("all", canary=True),
    "full-sweep-fail-fast": Ask("all", canary=True, fail_fast=True),
    "full-sweep-enabled-no-canary": Ask("all"),
    "full-sweep-fail-fast-no-canary": Ask("all", fail_fast=True),
}
"""Labels that start a sweep; a pull request has one of them at most."""

MODIFIERS = ("all-evals", "evals-only", "agentx-fast")
"""Labels that change a sweep and start none."""

PLAN_LABELS = (*PRIMARY, *MODIFIERS)

ELSEWHERE = {"non-canary-full-sweep-enabled": "full-sweep-enabled-no-canary"}
"""Names that other harnesses use → ours."""


def asked(labels: Iterable[str], message: str = "") -> Ask:
    """What the labels and the head commit's ``message`` ask for. Raises InputError that names every problem at once."""
    present = sorted(set(labels))
    problems = _problems(present)
    if problems:
        raise InputError("; ".join(problems), where="labels", allowed=", ".join(PLAN_LABELS),
                         hint="take the labels off that are not meant; a primary label starts the sweep again")
    primary = next((label for label in present if label in PRIMARY), None)
    if primary is None:
        idle = [label for label in present if label in MODIFIERS]
        return Ask(why=f"{', '.join(idle)} start no sweep without a primary label" if idle else "no label asks for one")
    if SKIP in message:
        return Ask(why=f"the head commit says {SKIP}")
    chosen = PRIMARY[primary]
    evals: Evals = "all" if "all-evals" in present else "only" if "evals-only" in present else "default"
    return Ask(chosen.points, chosen.canary, chosen.fail_fast, evals, "agentx-fast" in present,
               " + ".join([primary, *(label for label in present if label in MODIFIERS)]))


def restarts(before: Iterable[str], after: Iterable[str]) -> bool:
    """Whether going from one set of labels to the other changes the plan, so that a running sweep is out of date."""
    return _meaning(before) != _meaning(after)


def _meaning(labels: Iterable[str]) -> tuple[Ask | None, list[str]]:
    """What labels amount to: an Ask without its words, or the problems that forbid one."""
    present = sorted(set(labels))
    problems = _problems(present)
    if problems:
        return None, problems
    ask = asked(present)
    return Ask(ask.points, ask.canary, ask.fail_fast, ask.evals, ask.fast), []


def _problems(present: list[str]) -> list[str]:
    problems = []
    primaries = [label for label in present if label in PRIMARY]
    if len(primaries) > 1:
        problems.append(f"{' and '.join(primaries)} contradict each other: keep one")
    if "all-evals" in present and "evals-only" in present:
        problems.append("all-evals and evals-only contradict each other: keep one")
    for label in present:
        if label not in PLAN_LABELS and _looks_meant(label):
            near = f"perhaps you meant {ELSEWHERE[label]!r}" if label in ELSEWHERE else did_you_mean(label, PLAN_LABELS)
            problems.append(f"{label!r} is no label of a sweep{f' ({near})' if near else ''}")
    return problems


def _looks_meant(label: str) -> bool:
    bare = label.lower().replace("_", "-")
    return label in ELSEWHERE or "sweep" in bare or bool(did_you_mean(bare, PLAN_LABELS, cutoff=0.8))
