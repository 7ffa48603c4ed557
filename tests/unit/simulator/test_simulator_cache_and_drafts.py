"""KV cache blocks by hand, and acceptance rates against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.simulator.kvcache import KVCache, hash_blocks, token_bytes
from infx.simulator.specdec import Acceptance, curve_rates, synthetic_rates


def test_blocks_are_handed_out_counted_and_taken_back():
    cache = KVCache(4, 2)
    mine = cache.allocate(3)
    assert len(set(mine)) == 3 and cache.used == 3 and cache.available == 1
    assert cache.allocate(2) is None and cache.used == 3, "nothing is taken where not all can be"
    cache.share(mine[:1])
    cache.release(mine)
    assert cache.used == 1, "one block has a second holder"
    cache.release(mine[:1])
    assert cache.used == 0 and cache.usage == 0.0


def test_the_least_recently_freed_block_is_evicted_first():
    cache = KVCache(3, 1)
    for block_hash in (11, 22, 33):
        (block,) = cache.allocate(1)
        cache.publish(block, block_hash)
        cache.release([block])
    (hit,) = cache.lookup([11], 2)
    cache.share([hit])
    cache.release([hit])
    cache.allocate(1)
    assert cache.lookup([22], 2) == [] and cache.lookup([11], 2) and cache.lookup([33], 2)


def test_a_held_prefix_cannot_be_reset_and_a_free_one_can():
    cache = KVCache(2, 1)
    block = cache.allocate(1)
    cache.publish(block[0], 5)
    assert not cache.reset_prefix_cache() and cache.lookup([5], 9)
    cache.release(block)
    assert cache.reset_prefix_cache() and not cache.lookup([5], 9)


def test_without_prefix_caching_nothing_is_found():
    cache = KVCache(2, 1, prefix_caching=False)
    cache.publish(cache.allocate(1)[0], 5)
    assert cache.lookup([5], 9) == []


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40), st.integers(1, 8), st.integers(0, 39))
def test_hashes_agree_exactly_to_the_first_difference(ids, size, at):
    data = token_bytes(ids)
    hashes = hash_blocks(data, size)
    assert len(hashes) == len(ids) // size
    if at < len(ids):
        other = hash_blocks(token_bytes([*ids[:at], ids[at] ^ 1, *ids[at + 1 :]]), size)
        whole = at // size
        assert other[:whole] == hashes[:whole]
        assert all(a != b for a, b in zip(hashes[whole:], other[whole:], strict=True))
    if hashes:
        assert hash_blocks(data, size, salt=1)[0] != hashes[0]


@pytest.mark.parametrize("wrong", [(0, 4), (4, 0)])
def test_a_cache_without_room_is_refused(wrong):
    with pytest.raises(ValueError, match="at least one block"):
        KVCache(*wrong)


@pytest.mark.parametrize(
    ("length", "drafts", "rates"),
    [
        (3.51, 5, [1, 1, 0.51, 0, 0]),
        (1, 3, [0, 0, 0]),
        (4, 3, [1, 1, 1]),
        (2.25, 2, [1, 0.25]),
    ],
)
def test_a_synthetic_length_becomes_rates_as_vllm_makes_them(length, drafts, rates):
    assert synthetic_rates(length, drafts) == pytest.approx(rates)


@pytest.mark.parametrize("length", [0.9, 6.1])
def test_an_impossible_length_is_refused(length):
    with pytest.raises(ValueError, match="must be in"):
        synthetic_rates(length, 5)


def test_a_golden_curve_gives_its_own_length_at_every_number_of_drafts():
    curve = {1: 1.81, 2: 2.43, 3: 2.90, 4: 3.26, 5: 3.51}
    for drafts, length in curve.items():
        assert Acceptance(curve_rates(curve, drafts)).length == pytest.approx(length)
    beyond = curve_rates(curve, 8)
    assert all(a >= b >= 0 for a, b in zip(beyond, beyond[1:], strict=False))


@given(st.integers(0, 2**32), st.integers(1, 7), st.floats(0, 1))
def test_draws_have_the_mean_they_should(seed, drafts, share):
    acceptance = Acceptance(synthetic_rates(1 + share * drafts, drafts), seed)
    state, total = acceptance.start(seed % 97), 0
    for _ in range(4000):
        accepted, state = acceptance.draw(state, drafts)
        assert 0 <= accepted <= drafts
        total += accepted
    assert 1 + total / 4000 == pytest.approx(acceptance.length, abs=0.05)


@pytest.mark.parametrize("rates", [[0.5, 0.6], [1.2], [-0.1]])
def test_rates_that_rise_or_leave_the_unit_interval_are_refused(rates):
    with pytest.raises(ValueError, match="not increase"):
        Acceptance(rates)
