"""Owns the comment on a pull request: picture, table, verdicts, claims, coverage, what is proposed. Pure; Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from infx.ci.reuse import Reuse
from infx.ci.sketch import Dots, sketch
from infx.compare.claims import Judged
from infx.compare.coverage import Coverage
from infx.compare.frontier import X_AXIS, Y_AXIS
from infx.compare.markdown import value_text
from infx.compare.sides import Measured, Side
from infx.schema.metrics import METRICS

MARKER = "<!-- infx:sweep -->"
LIMIT = 60_000
"""Characters of a comment; the host takes 65,536."""

LEFT_OUT = "_A table is left out here: the comment would be too long. The report has it._\n"
COLUMNS = (Y_AXIS, X_AXIS, "ttft-p50", "tpot-p50", "e2el-p50")


@dataclass(frozen=True)
class Shown:
    """One recipe: ``comparison`` is the Markdown of the comparison with ``before``, empty where there is none."""

    recipe: str
    before: Side | None
    after: Side
    comparison: str = ""


@dataclass(frozen=True)
class Content:
    """All that a comment tells. ``links``: words and addresses; ``proposal``: the results entries as text."""

    head: str
    reuse: Reuse
    shown: Sequence[Shown]
    claims: Sequence[tuple[str, Judged]] = ()
    lost: Sequence[tuple[str, Coverage]] = ()
    proposal: str = ""
    links: Sequence[tuple[str, str]] = ()
    marks: Sequence[str] = ()
    notes: Sequence[str] = field(default=())


def body(content: Content) -> str:
    """The comment's Markdown, cut to what the host takes: tables go first, and what is left out is said."""
    above = [_quiet(_head(content)), *(_quiet(_picture(item)) for item in content.shown)]
    below = [_quiet(_claims(content)), _quiet(_coverage(content)), _end(content)]
    room = LIMIT - sum(len(part) + 1 for part in [*above, *below]) - len(LEFT_OUT) * len(content.shown)
    tables = []
    for item in content.shown:
        table = _quiet(_table(item))
        tables.append(table if len(table) < room else LEFT_OUT)
        room -= len(table) if len(table) < room else 0
    return "\n".join(part for part in [*above, *tables, *below] if part)[:LIMIT]


def _quiet(text: str) -> str:
    """Text of run folders calls nobody: a mention needs its sign at the start of a word."""
    return re.sub(r"(?<!\w)@(?=\w)", "@\u200b", text)


def _head(content: Content) -> str:
    good = len(content.reuse.covered)
    lines = [f"### Sweep of `{content.head[:12]}`", ""]
    lines += [f"> **{mark}**" for mark in content.marks]
    if content.reuse.qualifies:
        lines.append(f"{good} point{'s' * (good != 1)} measured, to be recorded at merge.")
    else:
        lines.append("**Not to be recorded:**")
        lines.append("")
        lines += [f"- `{item.code}` {item.where}: {item.message}" for item in content.reuse.refusals[:20]]
        more = len(content.reuse.refusals) - 20
        lines += [f"- and {more} more"] if more > 0 else []
    lines += [f"> {note}" for note in content.notes]
    return "\n".join(lines) + "\n"


def _picture(item: Shown) -> str:
    """The curves as text: capitals are this change, small letters what was before, a letter a layout."""
    layouts = list(dict.fromkeys(m.facts.curve for side in (item.before, item.after) if side
                                 for found in side.points.values() for m in found))
    series = [Dots((chr(97 + index) if which == "before" else chr(65 + index)), f"{layout} {which}",
                   _points(side, layout))
              for which, side in (("before", item.before), ("now", item.after)) if side
              for index, layout in enumerate(layouts[:26])]
    drawn = sketch(series, _title(X_AXIS), _title(Y_AXIS))
    return f"**{item.recipe}**\n\n```\n{drawn}\n```\n" if drawn else f"**{item.recipe}**: no point has both figures\n"


def _points(side: Side, layout: str) -> tuple[tuple[float, float], ...]:
    found = []
    for label in side.points:
        good = side.good(label)
        figures = [(_value(m, X_AXIS), _value(m, Y_AXIS)) for m in good[-1:] if m.facts.curve == layout]
        found += [(x, y) for x, y in figures if x is not None and y is not None]
    return tuple(found)


def _value(measured: Measured, name: str) -> float | None:
    return measured.values[name].value if name in measured.values else None


def _title(name: str) -> str:
    metric = METRICS[name]
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def _table(item: Shown) -> str:
    """The comparison where there is one, else the figures as they are."""
    if item.comparison:
        return f"#### {item.recipe}\n\n{item.comparison}"
    lines = [f"#### {item.recipe}", "", "There is no earlier entry to compare with.", "",
             f"| point | status | {' | '.join(_title(name) for name in COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for label, found in sorted(item.after.points.items(), key=lambda pair: _rung(pair[1][-1])):
        last = found[-1]
        figures = [(value_text(name, value) if (value := _value(last, name)) is not None else "–") for name in COLUMNS]
        lines.append(f"| {label} | {last.status} | {' | '.join(figures)} |")
    lines += [f"| {label} | missing |{' |' * len(COLUMNS)}" for label in item.after.missing]
    return "\n".join(lines) + "\n"


def _rung(measured: Measured) -> tuple[str, int]:
    return measured.facts.curve, measured.facts.concurrency


def _claims(content: Content) -> str:
    lines = [f"- {recipe}: **{item.outcome}**: {item.sentence().partition(': ')[2]}"
             for recipe, item in content.claims]
    return "\n".join(["**Claims**", "", *lines]) + "\n" if lines else "**Claims**: none is made.\n"


def _coverage(content: Content) -> str:
    lines = [f"- {recipe}: {item.sentence()}" for recipe, item in content.lost]
    return ("\n".join(["**Coverage: points of a published curve would be lost**", "", *lines]) + "\n" if lines
            else "**Coverage**: no published point is lost.\n")


def _end(content: Content) -> str:
    parts = []
    if content.proposal:
        fits = len(content.proposal) < LIMIT // 3
        text = content.proposal if fits else "(too long for a comment: see the artefact)\n"
        parts.append("<details><summary>Results entry that merging records</summary>\n\n"
                     f"```yaml\n{text}```\n\n</details>\n")
    parts += ["; ".join(f"[{word}]({address})" for word, address in content.links) + "\n"] if content.links else []
    return "\n".join(parts)
