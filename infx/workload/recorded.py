"""From a trace corpus to the source of a point's requests: what fits is kept, what does not is counted."""

from __future__ import annotations

from dataclasses import dataclass

from infx.findings import Finding
from infx.workload.random import TokenIds
from infx.workload.replay import AgenticSource, RecordedSessions, ReplayOptions
from infx.workload.traces.codes import context_findings, lanes_finding
from infx.workload.traces.model import Corpus, within_context


@dataclass(frozen=True, slots=True)
class Recorded:
    """``source`` is None when an error is among the ``findings``; ``dropped`` sessions exceed the context limit."""

    source: AgenticSource | None
    kept: int
    dropped: int
    findings: list[Finding]


def recorded_source(
    ids: TokenIds, corpus: Corpus, lanes: int, options: ReplayOptions, *, context_limit: int
) -> Recorded:
    """C lanes over ``corpus``; a session with a request (prompt + answer) above ``context_limit`` is dropped whole."""
    kept, dropped = within_context(corpus.sessions, context_limit)
    found = context_findings(len(kept), dropped, context_limit, corpus.name)
    if found:
        return Recorded(None, 0, dropped, found)
    source = AgenticSource(ids, RecordedSessions(kept, options.seed), lanes, options)
    return Recorded(source, len(kept), dropped, lanes_finding(lanes, len(kept), corpus.name))
