"""Token ids behind blocks: what a replayed prompt consists of, and what an unbounded cache holds of it.

Standard library only: load workers import this module.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

from infx.workload.random import TokenIds
from infx.workload.traces.model import BlockTree, common_length


class SessionPrompts:
    """Prompts of one run of one session: equal paths give equal tokens, everything else is independent.

    ``salt`` must differ between runs of a session that shall share nothing. Tokens are drawn by hash from
    (seed, salt, block id), so any prompt can be built first. A part of a block that has no id of its own
    (the end of a prompt) is drawn from (seed, salt, stream, turn) and is shared with nobody.
    """

    def __init__(self, ids: TokenIds, tree: BlockTree, block_size: int, *, seed: int, salt: str) -> None:
        self._allowed = ids.allowed
        self._tree = tree
        self._block_size = block_size
        self._key = f"{seed}\x00{salt}\x00".encode()
        self._last: dict[int, _Last] = {}
        self._live: dict[int, array[int]] = {}
        self._held: dict[int, int] = {}

    def build(self, stream: int, turn: int, leaf: int, length: int) -> tuple[array[int], int]:
        """The prompt of ``length`` tokens that ends at ``leaf``, and how many of its first tokens were sent before.

        The count knows the prompts built so far and the answers given to ``answered``.
        """
        path = self._tree.path(leaf)
        last = self._last.get(stream)
        keep = common_length(last.path, path) if last else 0
        held = self._held_tokens(path, length)
        if last and last.answer is not None and keep == len(last.path) and length >= len(last.prompt):
            prompt = last.prompt + last.answer
            held = max(held, min(length, len(prompt) - 1))  # the last generated token was never computed
            first = len(last.prompt) // self._block_size
            prompt = self._fill(prompt[:length], path, length, stream, turn)
            for index in range(first, min(len(path), length // self._block_size)):
                self._live[path[index]] = prompt[index * self._block_size : (index + 1) * self._block_size]
        else:
            known = last.prompt[: keep * self._block_size] if last else array("I")
            prompt = self._fill(known, path, length, stream, turn)
        self._hold(path, length)
        self._last[stream] = _Last(path, prompt)
        return prompt, held

    def answered(self, stream: int, output_ids: Sequence[int]) -> None:
        """Let the stream's next prompt carry ``output_ids`` in place of the recorded answer."""
        last = self._last[stream]
        self._last[stream] = _Last(last.path, last.prompt, array("I", output_ids))

    def _fill(self, prompt: array[int], path: list[int], length: int, stream: int, turn: int) -> array[int]:
        size = self._block_size
        while len(prompt) < length:
            index, offset = divmod(len(prompt), size)
            part = min(size, length - index * size)
            named = index < len(path)
            block = self._block(path[index]) if named else self._draw(f"t{stream},{turn},{index}", part)
            prompt.extend(block[offset:part])
        return prompt

    def _block(self, node: int) -> array[int]:
        live = self._live.get(node)
        return live if live is not None else self._draw(f"b{self._tree.block(node)}", self._block_size)

    def _draw(self, what: str, count: int) -> array[int]:
        words = array("Q")
        words.frombytes(hashlib.shake_128(self._key + what.encode()).digest(8 * count))
        allowed, size = self._allowed, len(self._allowed)
        return array("I", [allowed[word % size] for word in words])

    def _held_tokens(self, path: list[int], length: int) -> int:
        total, size, held = 0, self._block_size, self._held
        for node in path:
            tokens = held.get(node, 0)
            total += tokens
            if tokens < size:
                break
        return min(total, length)

    def _hold(self, path: list[int], length: int) -> None:
        size, held = self._block_size, self._held
        for index in range(len(path) - 1, -1, -1):
            tokens = min(size, length - index * size)
            if held.get(path[index], 0) == size:
                break  # whatever held this block held all before it
            held[path[index]] = max(tokens, held.get(path[index], 0))


class _Last:
    """What a stream sent last: its path, its prompt and, where answers are live, what came back."""

    __slots__ = ("path", "prompt", "answer")

    def __init__(self, path: list[int], prompt: array[int], answer: array[int] | None = None) -> None:
        self.path = path
        self.prompt = prompt
        self.answer = answer


def cached_tokens(held: int, prompt_tokens: int, cache_block: int) -> int:
    """Prompt tokens that a prefix cache of blocks of ``cache_block`` tokens answers when ``held`` were sent before.

    Whole blocks only, and never the last token of the prompt: its logits have to be computed (vLLM,
    ``max_cache_hit_length = num_tokens - 1``).
    """
    return min(held, prompt_tokens - 1) // cache_block * cache_block
