"""Owns how a new entry is written: plain text composed line by line, so that no dumper ever touches the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from infx.schema.changelog import Change, Expect, Results, ResultsPoint, Retract

_ESCAPED = re.compile("[\x7f-\x9f\xad\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-._/@][A-Za-z0-9]+)*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}


def render(entry: Change | Results | Retract) -> bytes:
    """The body of an entry as UTF-8, without a final line end."""
    if isinstance(entry, Change):
        lines = _change(entry)
    elif isinstance(entry, Results):
        lines = _results(entry)
    else:
        lines = ["- kind: retract", f"  entry: {quoted(entry.entry)}", f"  reason: {quoted(entry.reason)}"]
        lines += [f"  pr-link: {entry.pr_link}"] if entry.pr_link else []
    return "\n".join(lines).encode()


def _change(entry: Change) -> list[str]:
    lines = ["- kind: change", "  config-keys:", *_items(entry.config_keys)]
    if entry.scenario_type:
        lines += ["  scenario-type:", *_items(entry.scenario_type)]
    lines += ["  description:", *(f"    - {quoted(line)}" for line in entry.description)]
    lines += [f"  pr-link: {entry.pr_link}"]
    lines += [f"  {name}: true" for name, on in (("append-only", entry.append_only), ("evals-only", entry.evals_only),
                                                ("all-evals", entry.all_evals)) if on]
    if entry.expect:
        lines += ["  expect:", *(f"    - {_claim(claim)}" for claim in entry.expect)]
    return lines


def _claim(claim: Expect) -> str:
    facts = {"points": quoted(claim.points), "metric": word(claim.metric), "verdict": word(claim.verdict)}
    facts |= {name: word(value) for name, value in (("arm", claim.arm), ("against", claim.against)) if value}
    sizes = (("margin", claim.margin), ("by", claim.by), ("within", claim.within))
    facts |= {name: number(value) for name, value in sizes if value is not None}
    return flow(facts)


def _results(entry: Results) -> list[str]:
    lines = ["- kind: results", f"  run: {quoted(entry.run)}", f"  recipe: {word(entry.recipe)}",
             f"  runner: {word(entry.runner)}", "  provenance:", *_items(entry.provenance)]
    lines += [f"  harness: {quoted(entry.harness)}"] if entry.harness else []
    return [*lines, "  points:", *(f"    - {_point(point)}" for point in entry.points)]


def _point(point: ResultsPoint) -> str:
    facts = {"point": word(point.point), "fingerprint": word(point.fingerprint)}
    facts |= {"start": quoted(point.start)} if point.start else {}
    facts["status"] = word(point.status)
    if point.metrics:
        facts["metrics"] = flow({name: number(value) for name, value in point.metrics.items()})
    return flow(facts | {"sha256": quoted(point.sha256)})


def _items(words: Iterable[str]) -> list[str]:
    return [f"    - {word(item)}" for item in words]


def flow(facts: dict[str, str]) -> str:
    """``{a: 1, b: 2}`` from rendered values."""
    return "{" + ", ".join(f"{name}: {value}" for name, value in facts.items()) + "}"


def word(text: str) -> str:
    """A name without quotes where every YAML reader takes it as text, else quoted."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else quoted(text)


def number(value: float) -> str:
    """A finite number that reads back to the same value."""
    text = repr(float(value))
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+03d}"


def quoted(text: str) -> str:
    """A double-quoted scalar on one line; what YAML would not print raw is escaped."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
