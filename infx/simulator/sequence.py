"""One request inside the scheduler: its lengths, its place in the KV cache, its times. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Sequence as Many

from infx.simulator.kvcache import chain, token_bytes

VOCABULARY = 4096


def output_token(key: int, position: int) -> int:
    """The token that a prompt with ``key`` is answered with at ``position`` (any fixed function will do)."""
    return (key + position * 40503) % VOCABULARY


class Sequence:
    """``hashes``: chained hashes of the prompt's full blocks (None: never cached); ``tail``: the bytes of the rest.

    ``computed`` counts tokens whose KV is in the cache, ``generated`` tokens given out. Times are virtual seconds,
    None until they happen. ``key`` names the prompt's text: equal prompts are answered with equal tokens.
    """

    __slots__ = (
        "id", "prompt_tokens", "max_tokens", "hashes", "tail", "key", "arrival", "stop_at",
        "computed", "generated", "blocks", "published", "decoding", "draws",
        "scheduled_at", "first_token_at", "last_token_at", "finished_at", "finish_reason",
        "cached_tokens", "prompt_computed", "preemptions", "sink",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        prompt_tokens: int,
        max_tokens: int,
        arrival: float,
        *,
        hashes: Many[int] | None = None,
        tail: bytes = b"",
        key: int = 0,
        stop_at: int | None = None,
    ) -> None:
        """``stop_at``: output tokens after which the model ends by itself (finish reason ``stop``)."""
        self.id = number
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.hashes = None if hashes is None else list(hashes)
        self.tail = tail
        self.key = key
        self.arrival = arrival
        self.stop_at = stop_at
        self.computed = 0
        self.generated = 0
        self.blocks: list[int] = []
        self.published = 0
        self.decoding = False
        self.draws = 0
        self.scheduled_at: float | None = None
        self.first_token_at: float | None = None
        self.last_token_at: float | None = None
        self.finished_at: float | None = None
        self.finish_reason: str | None = None
        self.cached_tokens = 0
        self.prompt_computed = 0
        self.preemptions = 0
        self.sink: object = None

    @property
    def total(self) -> int:
        """Prompt and generated tokens."""
        return self.prompt_tokens + self.generated

    @property
    def limit(self) -> int:
        """Output tokens at which the sequence ends."""
        return self.max_tokens if self.stop_at is None else min(self.max_tokens, self.stop_at)

    def extend_hashes(self, block_size: int) -> None:
        """Hash the next full block, of which at least one token was generated."""
        assert self.hashes is not None
        start = len(self.hashes) * block_size
        head = self.tail if start <= self.prompt_tokens else b""
        first = max(start, self.prompt_tokens)
        made = token_bytes(output_token(self.key, at - self.prompt_tokens) for at in range(first, start + block_size))
        self.hashes.append(chain(self.hashes[-1] if self.hashes else 0, head + made))
