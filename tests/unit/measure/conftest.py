"""Request tables written by hand, in milliseconds."""

from array import array

import pytest

from infx.measure.columns import COLUMNS, PHASES, RAGGED, CountSource, Outcome
from infx.measure.table import RequestTable
from infx.workload.session import Phase

MS = 1_000_000


@pytest.fixture
def table_of():
    """A function from dicts to a RequestTable.

    ``sent`` and the ``reads`` [(ms, tokens), …] are in milliseconds; other keys are columns. Unless told
    otherwise a request is good, its output is the sum of its reads, and it ends with its last read.
    """

    def build(*requests: dict) -> RequestTable:
        columns = {name: array(code) for name, code in COLUMNS.items()}
        ragged = {name: array(code) for name, code in RAGGED.items()}
        counts = array("i")
        for number, given in enumerate(requests):
            request = dict(given)
            reads = request.pop("reads", [])
            sent = request.pop("sent", 0) * MS + 1
            tokens = [k for _, k in reads]
            values = dict.fromkeys(COLUMNS, 0) | {
                "lane": number, "session": number, "phase": PHASES.index(request.pop("phase", Phase.MAIN)),
                "outcome": Outcome.OK, "http_status": 200, "sent_ns": sent,
                "scheduled_ns": sent - int(request.pop("late", 0) * MS),
                "first_ns": reads[0][0] * MS + 1 if reads else 0, "answer_ns": reads[0][0] * MS + 1 if reads else 0,
                "last_ns": reads[-1][0] * MS + 1 if reads else 0,
                "end_ns": int(request.pop("end", reads[-1][0] if reads else sent / MS) * MS) + 1,
                "prompt_sent": 10, "prompt_usage": 10, "cached_usage": -1, "output_asked": sum(tokens),
                "output_tokens": sum(tokens), "first_tokens": tokens[0] if tokens else -1,
                "count_source": CountSource.USAGE_PER_READ,
            } | request  # fmt: skip
            for name, column in columns.items():
                column.append(int(values[name]))
            ragged["read_ns"].extend([int(ms * MS) + 1 for ms, _ in reads])
            ragged["read_tokens"].extend(tokens)
            counts.append(len(reads))
        batch = {name: column.tobytes() for name, column in (*columns.items(), *ragged.items())}
        return RequestTable.from_batches([{**batch, "read_counts": counts.tobytes()}])

    return build
