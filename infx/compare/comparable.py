"""What forbids comparing two points, and what a reader must know when it does not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from infx.compare.nodes import standing_out
from infx.compare.sides import Facts, Measured, Side
from infx.schema.result import Reason

LENGTH_TOLERANCE = 0.01
"""Achieved mean lengths further apart than this are different workloads."""

LENGTHS = (("input-length-mean", "prompt"), ("output-length-mean", "output"))

_FORBIDS = {
    "recipe": "recipes", "model": "models", "precision": "precisions", "hardware": "hardware", "engine": "engines",
    "workload": "workloads", "gpus": "divisors (GPUs)", "client": "versions of the load client",
    "simulated": "simulated against measured", "quick": "quick against full",
}
"""Facts that must agree between the sides, and what to call a disagreement."""

_IDENTITY = {"fingerprint": "fingerprints", "digest": "image digests", "driver": "drivers",
             "client": "versions of the load client"}
"""Facts that must agree among the starts of one side, which would otherwise be no repeats of each other."""

_TOLD = {"image": "images", "digest": "image digests", "node": "nodes", "driver": "drivers",
         "version": "engine versions", "harness": "harness commits"}
"""Facts that may differ and are said."""


def forbidden(first: Sequence[Measured], second: Sequence[Measured]) -> list[Reason]:
    """Why two sets of starts of one point cannot be compared; empty when they can."""
    reasons = _shared_starts(first, second)
    for name, word in _FORBIDS.items():
        a, b = _values(first, name), _values(second, name)
        if a and b and a != b:
            reasons.append(Reason(code=f"other-{name}", message=_against(word, name, a, b)))
    for side, which in ((first, "first"), (second, "second")):
        for name, word in _IDENTITY.items():
            found = _values(side, name)
            if len(found) > 1:
                reasons.append(Reason(
                    code=f"mixed-{name}", message=f"the {which} side mixes {word}: {_list(found)}; "
                    "its starts are no repeats of each other (take --rerun latest, or name fewer runs)"))
    return reasons + _lengths(first, second)


def told(first: Iterable[Measured], second: Iterable[Measured]) -> list[Reason]:
    """Facts that differ between the sides without forbidding a comparison; images first."""
    first, second = list(first), list(second)
    reasons = []
    for name, word in _TOLD.items():
        a, b = _values(first, name), _values(second, name)
        if a and b and a != b:
            reasons.append(Reason(code=f"differing-{name}", message=_against(word, name, a, b)))
    for side, which in ((first, "first"), (second, "second")):
        for name in ("node", "harness"):
            found = _values(side, name)
            if len(found) > 1:
                reasons.append(Reason(code=f"several-{name}", message=f"the {which} side's starts come from "
                                      f"{len(found)} {_TOLD[name]}: {_list(found)}"))
        reasons += [Reason(code="node-stands-out", message=f"the {which} side: {mean.text}") for mean in
                    standing_out(_by_label(side))]
    both = [*first, *second]
    if any(m.facts.simulated for m in both):
        reasons.append(Reason(code="simulated", message="simulated results: they show how, not how fast"))
    if any(m.facts.unofficial for m in both):
        reasons.append(Reason(code="unofficial", message="a side was swept with relaxed rules"))
    return reasons


def _by_label(side: Iterable[Measured]) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for m in side:
        found.setdefault(m.facts.label, []).append(m)
    return found


def set_aside(side: Side) -> list[Reason]:
    """The older measurements that the policy `latest` left out, by run."""
    counts: dict[str, int] = {}
    for m in side.dropped:
        counts[m.run] = counts.get(m.run, 0) + 1
    return [Reason(code="set-aside", message=f"{count} result(s) of {run} set aside: a newer run measured "
                   "the same points (--rerun latest)") for run, count in counts.items()]


def unmatched(label: str, holder: Side, other: Side, which: str) -> Reason:
    """Why a point that only ``holder`` has is not compared; names the other layout at its concurrency, if any."""
    facts = holder.points[label][0].facts
    twins = sorted({m.facts.curve for found in other.points.values() for m in found
                    if m.facts.concurrency == facts.concurrency and m.facts.curve != facts.curve})
    if twins and not any(m.facts.curve == facts.curve for found in other.points.values() for m in found):
        return Reason(code="other-layout", message=f"layout {facts.curve} against {', '.join(twins)}")
    return Reason(code=f"only-{which}", message=f"only the {which} side has this point")


def _shared_starts(first: Sequence[Measured], second: Sequence[Measured]) -> list[Reason]:
    shared = {m.start for m in first} & {m.start for m in second}
    if not shared:
        return []
    return [Reason(code="same-starts", message=f"both sides hold the same start {_list(shared)}: "
                                               "nothing is compared with itself")]


def _lengths(first: Sequence[Measured], second: Sequence[Measured]) -> list[Reason]:
    if not all(m.facts.fixed_length or m.facts.workload is None for m in [*first, *second]):
        return []
    reasons = []
    for metric, word in LENGTHS:
        a, b = _mean(first, metric), _mean(second, metric)
        if a and b and abs(a / b - 1.0) > LENGTH_TOLERANCE:
            reasons.append(Reason(code="other-lengths", message=f"achieved {word} lengths {a:,.1f} against {b:,.1f} "
                                  f"tokens, more than {LENGTH_TOLERANCE:.0%} apart"))
    return reasons


def _mean(side: Sequence[Measured], metric: str) -> float | None:
    found = [m.values[metric].value for m in side if metric in m.values and m.values[metric].value is not None]
    return sum(found) / len(found) if found else None


def _values(side: Iterable[Measured], name: str) -> set[object]:
    return {value for m in side if (value := getattr(m.facts, name)) is not None}


def _against(word: str, name: str, a: set[object], b: set[object]) -> str:
    if name == "simulated":
        return "simulated results against measured ones"
    if name == "quick":
        return "a quick sweep against a full one"
    if name == "workload":
        return f"workloads differ: {_workloads(a, b)}"
    return f"{word} differ: {_list(a)} against {_list(b)}"


def _workloads(a: set[object], b: set[object]) -> str:
    one, other = (json.loads(str(sorted(s, key=str)[0])) for s in (a, b))
    keys = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    return "; ".join(f"{key} {one.get(key)} against {other.get(key)}" for key in keys)


def _list(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values)))


def facts_line(facts: Facts) -> str:
    """What is compared, in one line."""
    parts = [facts.recipe, facts.hardware, facts.engine, facts.precision]
    return " · ".join(part for part in parts if part)
