"""Owns reading a changelog as entries with identities: new ones strictly, history as far as it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from infx.changelog.spans import Span, split
from infx.changelog.syntax import Entry, read_span
from infx.errors import ChangelogError
from infx.findings import Finding
from infx.schema.changelog import Provenance, Results, ResultsPoint, Retract


@dataclass(frozen=True)
class Record:
    """One entry of a file: identity, place, what it says and whether it still counts.

    ``entry`` is None where the text does not satisfy the schema (history that other rules wrote, or damage);
    ``loose`` then holds its keys as text as far as YAML gives any, and ``findings`` what is wrong.
    """

    id: str
    span: Span
    entry: Entry | None
    findings: list[Finding]
    loose: dict[str, Any] = field(default_factory=dict)
    retracted: Retract | None = None

    @property
    def keys(self) -> list[str]:
        """Recipe keys or globs that the entry names."""
        if isinstance(self.entry, Results):
            return [self.entry.recipe]
        if isinstance(self.entry, Retract):
            return []
        return list(self.entry.config_keys) if self.entry else _texts(self.loose.get("config-keys"))

    @property
    def lines(self) -> list[str]:
        """What it says, a line each."""
        if isinstance(self.entry, Results):
            return [f"results of {self.entry.run}: {len(self.entry.points)} points, "
                    f"{sum(point.status == 'ok' for point in self.entry.points)} ok"]
        if isinstance(self.entry, Retract):
            return [f"retracts {self.entry.entry}: {self.entry.reason}"]
        return list(self.entry.description) if self.entry else _texts(self.loose.get("description"))

    @property
    def link(self) -> str:
        """Its pull request, or an empty text."""
        if self.entry is not None:
            return getattr(self.entry, "pr_link", None) or ""
        return " ".join(_texts(self.loose.get("pr-link")))


def ledger(data: bytes, path: str) -> list[Record]:
    """Every entry of a file in order, retractions applied; damaged entries are there, read loosely."""
    cut = split(data)
    records = []
    for name, span in zip(cut.ids, cut.spans, strict=True):
        reading = read_span(span, path)
        loose = {} if reading.entry else _loose(span.body)
        records.append(Record(name, span, reading.entry, reading.findings, loose))
    withdrawn = {record.entry.entry: record.entry for record in records if isinstance(record.entry, Retract)}
    return [replace(record, retracted=withdrawn.get(record.id)) for record in records]


def _loose(body: bytes) -> dict[str, Any]:
    """The keys of a damaged entry with everything as text, or nothing where YAML sees no mapping."""
    try:
        value = yaml.load(body.decode("utf-8", "replace").replace("\r", ""), Loader=yaml.CBaseLoader)
    except yaml.YAMLError:
        return {}
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, dict) else {}


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list):
        return [str(item) for item in value]
    return [line.strip() for line in str(value).splitlines() if line.strip()]


@dataclass(frozen=True)
class MeasuredPoint:
    """One point for a results entry: key, fingerprint, status, headline metrics by name and hash of its file."""

    point: str
    fingerprint: str
    start: str | None
    status: str
    metrics: Mapping[str, float]
    sha256: str


@dataclass(frozen=True)
class ResultsSummary:
    """What a run folder says of itself, as far as the changelog wants to know.

    ``provenance`` is empty for a run that was measured officially, else what speaks against publishing it
    (simulated, quick, unofficial, stands-in).
    """

    run: str
    recipe: str
    runner: str
    provenance: Sequence[Provenance]
    points: Sequence[MeasuredPoint]
    harness: str | None = None


def results_entry(summary: ResultsSummary) -> Results:
    """The results entry of a run. Raises ChangelogError when it has no point to report."""
    if not summary.points:
        raise ChangelogError(f"run {summary.run} has no point that ended", hint="resume it: `infx sweep --resume RUN`")
    points = [ResultsPoint(point=item.point, fingerprint=item.fingerprint, start=item.start, status=item.status,
                           metrics=dict(item.metrics), sha256=item.sha256) for item in summary.points]
    return Results(kind="results", run=summary.run, recipe=summary.recipe, runner=summary.runner,
                   provenance=list(summary.provenance) or ["measured"], harness=summary.harness, points=points)


def publishable(entry: Results) -> bool:
    """Whether a results entry may stand in the trunk's changelog."""
    return entry.provenance == ["measured"]
