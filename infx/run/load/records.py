"""Ended requests as columns of machine numbers: nothing of a request outlives it as an object."""

from __future__ import annotations

from array import array

from infx.measure.columns import COLUMNS, PHASES, RAGGED, CountSource, Outcome
from infx.run.load.decode import Response
from infx.workload.session import Request

_PHASE_CODE = {phase: code for code, phase in enumerate(PHASES)}
Batch = dict[str, bytes]
"""Column name → the bytes of its array; ``read_counts`` holds the number of ragged entries a request."""


class Records:
    """The records of one worker; ``take`` hands them over and forgets them."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self.texts: dict[int, str] = {}  # row → text of a response whose tokens nobody counted
        self.errors: dict[str, str] = {}  # outcome label → the first message of its kind
        self._rows = 0
        self._clear()

    def __len__(self) -> int:
        return len(self._columns["lane"])

    def _clear(self) -> None:
        self._columns = {name: array(code) for name, code in COLUMNS.items()}
        self._ragged = {name: array(code) for name, code in RAGGED.items()}
        self._read_counts = array("i")

    def take(self) -> Batch:
        """Everything since the last ``take``, as bytes by column."""
        batch = {name: column.tobytes() for name, column in (*self._columns.items(), *self._ragged.items())}
        batch["read_counts"] = self._read_counts.tobytes()
        self._clear()
        return batch

    def add(
        self,
        request: Request,
        response: Response,
        *,
        scheduled_ns: int,
        sent_ns: int,
        end_ns: int,
        status: int,
        reads: int,
        reconnects: int,
        failure: Outcome | None,
        message: str,
    ) -> Outcome:
        """Store one ended request and say how it ended (``failure`` None: its response judges)."""
        source = response.close()
        outcome = failure
        if outcome is None:
            outcome = response.outcome_at_end(request.max_tokens, request.ignore_eos)
        elif outcome is not Outcome.CUT and response.error:
            outcome = Outcome.ERROR_EVENT
        if outcome.failed:
            self.errors.setdefault(outcome.label, message or response.error_text)
        if outcome is Outcome.OK and source is CountSource.UNKNOWN and response.text:
            self.texts[self._rows] = "".join(response.text)
        values = {
            "lane": request.lane, "session": request.session, "stream": request.stream, "turn": request.turn,
            "phase": _PHASE_CODE[request.phase], "outcome": outcome, "http_status": status,
            "scheduled_ns": scheduled_ns, "sent_ns": sent_ns, "first_ns": response.first_ns,
            "answer_ns": response.answer_ns, "last_ns": response.last_ns, "end_ns": end_ns,
            "prompt_sent": request.prompt_tokens, "prompt_usage": response.prompt, "cached_usage": response.cached,
            "cached_theory": request.cached_tokens, "output_asked": request.max_tokens,
            "output_exact": request.ignore_eos, "output_tokens": response.count,
            "first_tokens": response.read_tokens[0] if response.read_tokens else -1, "count_source": source,
            "events": response.events, "reads": reads, "empty_first": response.empty_first,
            "reconnects": reconnects, "worker": self._worker,
        }  # fmt: skip
        for name, column in self._columns.items():
            column.append(values[name])
        self._ragged["read_ns"].extend(response.read_ns)
        self._ragged["read_tokens"].extend(response.read_tokens)
        self._read_counts.append(len(response.read_ns))
        self._rows += 1
        return outcome
