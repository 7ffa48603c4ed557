"""What a workload asks of the load client: one request, and when it is due.

A fixed-sequence-length request is a session of one turn; an agentic session has many turns and may
have several streams (sub-agents) in flight at once. Plain dataclasses: load workers import this
module, so neither numpy nor pydantic is allowed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Why a request is sent. Only ``main`` requests are ever measured."""

    PRIMER = "primer"  # fills the prefix cache to the state in which the recorded session was found
    WARMUP = "warm-up"  # brings a lane to its steady state
    MAIN = "main"


@dataclass(slots=True)
class Request:
    """One request to an engine; exactly one of ``prompt_ids``, ``messages`` and ``text`` is set.

    ``prompt_ids``: token ids (a list or an ``array``) for the completions endpoint; ``messages``: chat
    messages, rendered by the engine's template; ``text``: a plain prompt (its token count is then the
    engine's). ``max_tokens`` output tokens are asked for, ``min_tokens`` of them at least, and with
    ``ignore_eos`` exactly ``max_tokens``: fewer is a failure. ``cached_tokens`` is how many prompt tokens
    an unbounded prefix cache would already hold when the request is sent in session order (0 for random
    prompts). ``prompt_tokens`` is the number of ids, or 0 where only the engine can tell.
    ``session`` is unique in a source, ``stream`` counts the sub-agents of a session (0 = the main one)
    and ``turn`` counts from 0 within a stream. ``need_ids`` asks the client for the generated ids, which
    ``LaneSource.finished`` then receives (engines return them with ``return_token_ids``).
    """

    lane: int
    session: int
    turn: int
    max_tokens: int
    prompt_ids: Sequence[int] | None = None
    messages: list[dict[str, object]] | None = None
    text: str | None = None
    stream: int = 0
    phase: Phase = Phase.MAIN
    min_tokens: int = 0
    ignore_eos: bool = True
    cached_tokens: int = 0
    prompt_tokens: int = 0
    need_ids: bool = False

    def __post_init__(self) -> None:
        if self.prompt_ids is not None and not self.prompt_tokens:
            self.prompt_tokens = len(self.prompt_ids)


@dataclass(slots=True)
class Due:
    """A request to send ``delay_s`` seconds after the call that returned it (0: at once)."""

    delay_s: float
    request: Request
