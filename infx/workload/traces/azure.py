"""Reader of Azure's public LLM inference traces: CSV of arrival time, prompt and answer lengths, no blocks.

Every line is a session of one turn whose prompt is shared with nobody: the trace says nothing of prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from infx.findings import Finding, Mark
from infx.workload.traces.codes import finding
from infx.workload.traces.model import ROOT, BlockTree, Session, Stream, Turn

HEADER = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
BLOCK = 64  # only how finely prompts are drawn
_LARGEST = 1 << 31


def sessions(lines: Iterable[bytes], path: str) -> Iterator[Session | Finding]:
    """One session a line, in the order of the file; ``lines`` begin behind the header."""
    tree, first, before = BlockTree(), None, None
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        mark = Mark(path, number, 1)
        cells = line.decode("utf-8", "replace").strip().split(",")
        if len(cells) != len(HEADER):
            yield finding("T-002", mark, f"{len(cells)} fields, not {len(HEADER)}", "is the file complete?")
            continue
        try:
            at = datetime.fromisoformat(cells[0][:26]).timestamp()
            tokens, answer = int(cells[1]), int(cells[2])
        except ValueError as error:
            yield finding("T-002", mark, f"not a time and two integers: {error}")
            continue
        if not 1 <= tokens < _LARGEST or not 0 <= answer < _LARGEST:
            yield finding("T-006", mark, f"lengths {tokens} and {answer}: a prompt has 1 token at least")
            continue
        first = at if first is None else first
        if before is not None and at < before:
            yield finding("T-007", mark, f"time {cells[0]} is before the line before it")
        before = at
        turn = Turn(ROOT, tokens, max(1, answer))
        yield Session(f"{path}#{number - 1}", BLOCK, (Stream("main", (turn,)),), tree, start_s=max(0.0, at - first))
