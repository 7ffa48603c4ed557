"""The paged KV cache: blocks with reference counts, a prefix cache by chained block hash, LRU of free blocks. Pure."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence


def token_bytes(tokens: Iterable[int]) -> bytes:
    """Token ids as four bytes each: what a block hash is taken of."""
    return array("I", tokens).tobytes()


def chain(previous: int, block: bytes) -> int:
    """Hash of a full block that follows the block hashed as ``previous`` (0 for the first)."""
    return hash((previous, block))


def hash_blocks(data: bytes, block_size: int, salt: int = 0) -> list[int]:
    """Chained hashes of the full blocks of a prompt (``data`` from ``token_bytes``); ``salt`` keeps prompts apart."""
    width = 4 * block_size
    hashes: list[int] = []
    last = salt
    for start in range(0, len(data) - width + 1, width):
        last = chain(last, data[start : start + width])
        hashes.append(last)
    return hashes


class KVCache:
    """``capacity`` blocks of ``block_size`` tokens. A block is free (perhaps still cached) or held by n sequences.

    Free blocks are reused in the order they became free, never-used ones first. Freeing a sequence returns its
    last block first, so that the tail of a prefix is evicted before its head.
    """

    def __init__(self, capacity: int, block_size: int, *, prefix_caching: bool = True) -> None:
        if capacity < 1 or block_size < 1:
            raise ValueError(f"a KV cache needs at least one block of one token, not {capacity} of {block_size}")
        self.capacity = capacity
        self.block_size = block_size
        self.prefix_caching = prefix_caching
        self._fresh = 0
        self._free: OrderedDict[int, None] = OrderedDict()
        self._holders: list[int] = []
        self._hash: list[int | None] = []
        self._cached: dict[int, int] = {}
        self.used = 0

    @property
    def available(self) -> int:
        """Blocks that could be handed out now."""
        return self.capacity - self.used

    @property
    def usage(self) -> float:
        """Share of blocks that sequences hold."""
        return self.used / self.capacity

    def lookup(self, hashes: Sequence[int], tokens: int) -> list[int]:
        """Cached blocks of the longest known prefix; never all of ``tokens``, for one token must be computed."""
        if not self.prefix_caching:
            return []
        found: list[int] = []
        limit = min(len(hashes), (tokens - 1) // self.block_size)
        cached = self._cached
        for index in range(limit):
            block = cached.get(hashes[index])
            if block is None:
                break
            found.append(block)
        return found

    def idle(self, blocks: Iterable[int]) -> int:
        """How many of ``blocks`` nobody holds (taking them costs free blocks)."""
        holders = self._holders
        return sum(1 for block in blocks if not holders[block])

    def share(self, blocks: Iterable[int]) -> None:
        """One more holder for each of ``blocks``."""
        for block in blocks:
            if not self._holders[block]:
                del self._free[block]
                self.used += 1
            self._holders[block] += 1

    def allocate(self, count: int) -> list[int] | None:
        """``count`` blocks of their own, or None (and nothing taken) where so many are not free."""
        if count > self.available:
            return None
        taken: list[int] = []
        for _ in range(count):
            if self._fresh < self.capacity:
                block = self._fresh
                self._fresh += 1
                self._holders.append(0)
                self._hash.append(None)
            else:
                block, _ = self._free.popitem(last=False)
                self._forget(block)
            self._holders[block] = 1
            taken.append(block)
        self.used += count
        return taken

    def publish(self, block: int, block_hash: int) -> None:
        """Make a full, computed block findable; the first block with a hash stays the cached one."""
        if self.prefix_caching and block_hash not in self._cached and self._hash[block] is None:
            self._cached[block_hash] = block
            self._hash[block] = block_hash

    def release(self, blocks: Sequence[int]) -> None:
        """One holder less for each of a sequence's blocks."""
        for block in reversed(blocks):
            self._holders[block] -= 1
            if not self._holders[block]:
                self._free[block] = None
                self.used -= 1

    def reset_prefix_cache(self) -> bool:
        """Forget all cached prefixes; refused (False) while any block is held, as the engine does."""
        if self.used:
            return False
        self._cached.clear()
        self._hash = [None] * len(self._hash)
        return True

    def _forget(self, block: int) -> None:
        block_hash = self._hash[block]
        if block_hash is not None:
            del self._cached[block_hash]
            self._hash[block] = None
