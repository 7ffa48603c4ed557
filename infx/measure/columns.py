"""What is kept of every request: column names, their machine types, and the codes stored in them.

Shared by the load workers (which write ``array.array``) and ``table`` (which reads NumPy), so this
module is standard library only. Times are ``perf_counter_ns`` of the client machine; 0 = did not happen.
"""

from __future__ import annotations

from enum import IntEnum

from infx.workload.session import Phase

VERSION = 1

# name → array typecode; b/B 8 bit, i 32 bit, q/Q 64 bit, signed in lower case
COLUMNS: dict[str, str] = {
    "lane": "i",
    "session": "q",
    "stream": "i",
    "turn": "i",
    "phase": "b",
    "outcome": "b",
    "http_status": "i",
    "scheduled_ns": "q",
    "sent_ns": "q",
    "first_ns": "q",  # first read with a generated token
    "answer_ns": "q",  # first read with an answer token (not reasoning)
    "last_ns": "q",  # last read with a generated token
    "end_ns": "q",  # the response ended, failed or was cut
    "prompt_sent": "i",  # prompt tokens sent as ids; 0 when only the engine can tell
    "prompt_usage": "i",  # usage.prompt_tokens; −1 unknown
    "cached_usage": "i",  # usage.prompt_tokens_details.cached_tokens; −1 unknown
    "cached_theory": "i",
    "output_asked": "i",
    "output_exact": "b",  # 1: ignore_eos, fewer than asked is a failure
    "output_tokens": "i",  # −1 unknown
    "first_tokens": "i",  # tokens in the first token-carrying read; −1 unknown
    "count_source": "b",
    "events": "i",
    "reads": "i",
    "empty_first": "i",  # events without a token before the first token
    "reconnects": "b",
    "worker": "b",
}

# one entry per token-carrying read
RAGGED: dict[str, str] = {"read_ns": "q", "read_tokens": "i"}  # read_tokens −1: spread unknown


class Outcome(IntEnum):
    """How a request ended. Everything but OK and CUT is a failure."""

    OK = 0
    CUT = 1
    CONNECT = 2
    CONNECT_TIMEOUT = 3
    CONNECTION_LOST = 4
    TIMEOUT = 5
    HTTP_429 = 6
    HTTP_503 = 7
    HTTP_4XX = 8
    HTTP_5XX = 9
    REDIRECT = 10
    ERROR_EVENT = 11
    TRUNCATED = 12
    SHORT = 13
    NO_TOKEN = 14
    MALFORMED_EVENT = 15
    MALFORMED_HTTP = 16
    NOT_A_STREAM = 17

    @property
    def failed(self) -> bool:
        return self not in (Outcome.OK, Outcome.CUT)

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


class CountSource(IntEnum):
    """Where the number of output tokens comes from."""

    UNKNOWN = 0
    USAGE_PER_READ = 1  # cumulative usage with every token-carrying event: spread known
    USAGE_FINAL = 2  # total known, spread over reads unknown
    USAGE_FINAL_SPREAD = 3  # as many token-carrying events as tokens: one token an event
    TOKEN_IDS = 4  # the engine returned the generated ids
    RETOKENISED = 5  # text sent to the engine's tokenizer afterwards: flagged


PHASES: tuple[Phase, ...] = (Phase.MAIN, Phase.WARMUP, Phase.PRIMER)
"""The code of a phase is its place here."""
