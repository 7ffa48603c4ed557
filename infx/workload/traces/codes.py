"""What can be wrong with a trace: the codes T-001 …, each with its severity and its title for docs/traces.md."""

from __future__ import annotations

from infx.findings import Finding, Mark, Severity

CODES: dict[str, tuple[Severity, str]] = {
    "T-001": (Severity.ERROR, "not JSON, or cut off"),
    "T-002": (Severity.ERROR, "a field is missing or of the wrong type"),
    "T-003": (Severity.WARNING, "a field that the format does not have"),
    "T-004": (Severity.ERROR, "a turn of unknown type"),
    "T-005": (Severity.ERROR, "blocks that do not fit the prompt's length"),
    "T-006": (Severity.ERROR, "a negative time, length or block id"),
    "T-007": (Severity.WARNING, "time runs backwards"),
    "T-008": (Severity.ERROR, "a sub-agent joins that no turn spawned"),
    "T-009": (Severity.ERROR, "a session or sub-agent without requests"),
    "T-010": (Severity.ERROR, "a session id used twice"),
    "T-011": (Severity.ERROR, "a block size or scope of ids that is not supported"),
    "T-012": (Severity.WARNING, "more lanes than sessions"),
    "T-013": (Severity.ERROR, "nothing to replay"),
    "T-014": (Severity.ERROR, "one document too large to be held"),
    "T-015": (Severity.ERROR, "no known trace format"),
    "T-016": (Severity.ERROR, "a corpus that is not the pinned one"),
    "T-017": (Severity.ERROR, "a corpus that is not at hand"),
}


def finding(code: str, mark: Mark, message: str, hint: str = "") -> Finding:
    """A finding of the trace readers."""
    return Finding(mark, code, CODES[code][0], message, hint)


def lanes_finding(lanes: int, sessions: int, path: str) -> list[Finding]:
    """T-012 when ``lanes`` exceed the ``sessions`` there are: then copies of a session run side by side."""
    if lanes <= sessions:
        return []
    message = f"{lanes} lanes over {sessions} sessions: up to {-(-lanes // sessions)} copies of a session run at once"
    return [finding("T-012", Mark(path), message, "copies share no tokens; a larger corpus would vary more")]


def context_findings(sessions: int, dropped: int, limit: int, path: str) -> list[Finding]:
    """T-013 when every session of a corpus exceeds the context limit (``sessions`` is what is left)."""
    if sessions:
        return []
    message = f"all {dropped} sessions exceed the context limit of {limit} tokens" if dropped else "no session"
    return [finding("T-013", Mark(path), message, "raise max-model-len or take a corpus of shorter sessions")]


def repeated_finding(session: str, before: str, mark: Mark) -> Finding:
    """T-010: the id ``session`` was read before, from the file ``before``; the later one is left out."""
    return finding("T-010", mark, f"session {session!r} was read before, from {before}", "ids are unique in a corpus")
