"""Random token ids: uniform over a vocabulary without its special, control and image ids.

Consecutive or repeated ids would route mixture-of-experts layers and drafts unnaturally, so every
position is drawn independently. Standard library only: load workers import this module.
"""

from __future__ import annotations

import hashlib
import math
import random
from array import array
from collections.abc import Iterable
from functools import lru_cache


class TokenIds:
    """The ids that prompts may use: ``[first, vocabulary)`` without ``excluded``.

    ``vocabulary`` is the number of ids the model's embedding knows; ``excluded`` are special, control and
    image ids. Raises ValueError when fewer than 16 ids are left: prompts would repeat themselves.
    """

    def __init__(self, vocabulary: int, excluded: Iterable[int] = (), first: int = 0) -> None:
        banned = set(excluded)
        self.allowed = array("I", (i for i in range(first, vocabulary) if i not in banned))
        if len(self.allowed) < 16:
            raise ValueError(f"only {len(self.allowed)} of {vocabulary} ids may be used in prompts")

    def stream(self, seed: int, salt: str, *position: int) -> Draw:
        """An independent stream of draws for this (seed, salt, position): equal arguments, equal draws."""
        return Draw(self.allowed, _stream(seed, salt, *position))


def _stream(seed: int, salt: str, *position: int) -> random.Random:
    text = f"{seed}\x00{salt}\x00" + ",".join(map(str, position))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))


@lru_cache(maxsize=4)
def order_of(count: int, seed: int, salt: str, lap: int) -> tuple[int, ...]:
    """A shuffled order of ``range(count)``, by (seed, salt, lap)."""
    order = list(range(count))
    _stream(seed, salt, lap).shuffle(order)
    return tuple(order)


class Draw:
    """Draws lengths and ids from one deterministic stream."""

    def __init__(self, allowed: array[int], source: random.Random) -> None:
        self._allowed = allowed
        self._source = source

    def length(self, nominal: int, ratio: float) -> int:
        """Uniform on ``[ceil(ratio × nominal), nominal]``, at least 1."""
        lowest = max(1, math.ceil(ratio * nominal - 1e-9))
        return lowest if lowest >= nominal else self._source.randint(lowest, nominal)

    def ids(self, count: int) -> array[int]:
        """``count`` ids, uniform and independent (64 random bits an id: the modulo bias is below 1e-13)."""
        allowed = self._allowed
        size = len(allowed)
        raw = array("Q")
        raw.frombytes(self._source.randbytes(8 * count))
        return array("I", [allowed[word % size] for word in raw])
