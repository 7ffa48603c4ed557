"""The scheduler's invariants, for any load: conservation, capacity, budget, order, exact hits, determinism."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.predict.roofline import DeviceShape, ModelShape
from infx.predict.steptime import Overheads, Saving, StepTimer
from infx.simulator.kvcache import KVCache, hash_blocks, token_bytes
from infx.simulator.scheduler import NOTHING, Engaged, Limits, Scheduler, StepResult
from infx.simulator.sequence import Sequence, output_token
from infx.simulator.specdec import Acceptance, synthetic_rates

MODEL = ModelShape(layers=4, prompt_layers=4, hidden=64, dense_bytes=1e6, active_decode=1e6, active_prompt=1e6)
DEVICE = DeviceShape(memory_bytes_s=1e9, peak_flops=1e10, link_bytes_s=1e9, memory_bytes=1e9)
OVERHEADS = Overheads(1.0, 1.0, 1.0, 1e-4, 1e-6, 1e-5, 2e-5, 1e-6, 1.0)


def scheduler(
    *, seqs=8, batched=64, blocks=64, block_size=4, model_len=256, length=None, drafts=0, seed=0, cap=None, caching=True
) -> Scheduler:
    acceptance = Acceptance(synthetic_rates(length, drafts), seed) if drafts else None

    def engage(rows: int, tokens: int, has_prompt: bool) -> Engaged:
        assert tokens >= rows
        return Engaged(("mono",), Saving(0.5)) if rows <= cap and not has_prompt else NOTHING

    return Scheduler(
        Limits(seqs, batched, model_len), KVCache(blocks, block_size, prefix_caching=caching),
        StepTimer(MODEL, DEVICE, 1, OVERHEADS), acceptance=acceptance, engage=engage if cap else None,
    )  # fmt: skip


def request(number: int, prompt: list[int] | int, output: int, arrival: float = 0.0, block_size: int = 4) -> Sequence:
    ids = list(range(number * 1000, number * 1000 + prompt)) if isinstance(prompt, int) else prompt
    data = token_bytes(ids)
    hashes = hash_blocks(data, block_size)
    return Sequence(number, len(ids), output, arrival, hashes=hashes, tail=data[4 * block_size * len(hashes) :])


def drain(engine: Scheduler, most: int = 20000) -> list[StepResult]:
    results, now = [], 0.0
    while engine.busy:
        result = engine.step(now)
        results.append(result)
        now = result.ended
        assert len(results) < most, "the load never ends"
    return results


LOADS = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 40)), min_size=1, max_size=20)
SHAPES = st.fixed_dictionaries(
    {
        "seqs": st.integers(1, 10),
        "batched": st.integers(1, 80),
        "blocks": st.integers(36, 80),
        "block_size": st.sampled_from([1, 3, 4, 16]),
        "caching": st.booleans(),
    }
)


def fits(shape: dict, prompt: int, output: int, drafts: int) -> bool:
    return prompt + output + drafts <= shape["blocks"] * shape["block_size"]


@settings(max_examples=150, deadline=None)
@given(load=LOADS, shape=SHAPES, drafts=st.integers(0, 5), fraction=st.floats(0, 1), cap=st.integers(1, 30))
def test_any_load_keeps_every_invariant(load, shape, drafts, fraction, cap):
    load = [(prompt, output) for prompt, output in load if fits(shape, prompt, output, drafts)]
    engine = scheduler(**shape, drafts=drafts, length=1 + fraction * drafts, cap=cap)
    sequences = [request(n, prompt, output, block_size=shape["block_size"]) for n, (prompt, output) in enumerate(load)]
    for sequence in sequences:
        engine.add(sequence)
    now, given_out, ended = 0.0, Counter(), []
    while engine.busy:
        result = engine.step(now)
        step = result.shape
        assert result.started == now and result.ended > now
        now = result.ended
        assert 0 < step.decode_rows + step.prompt_tokens <= shape["batched"]
        assert step.decode_seqs + step.prompt_seqs <= shape["seqs"]
        assert result.running <= shape["seqs"]
        held = Counter(block for sequence in engine.running for block in sequence.blocks)
        assert engine.cache.used == len(held) <= engine.cache.capacity
        assert result.kv_usage == engine.cache.used / engine.cache.capacity
        for sequence in engine.running:
            assert sequence.computed <= len(sequence.blocks) * shape["block_size"]
        if step.prompt_tokens or step.decode_rows > cap:
            assert result.engaged == ()
        else:
            assert result.engaged == ("mono",)
        for output in result.outputs:
            given_out[output.sequence.id] += output.tokens
            assert 1 <= output.tokens <= 1 + drafts
        ended += [sequence.id for sequence in result.finished]
    assert sorted(ended) == [sequence.id for sequence in sequences]
    assert engine.cache.used == 0
    for sequence, (prompt, output) in zip(sequences, load, strict=True):
        assert given_out[sequence.id] == sequence.generated == output
        assert sequence.finish_reason == "length"
        assert sequence.arrival <= sequence.scheduled_at < sequence.first_token_at <= sequence.finished_at
        if not sequence.preemptions:
            assert sequence.prompt_computed + sequence.cached_tokens == prompt
    assert engine.totals.generated == sum(output for _, output in load)
    assert engine.totals.preemptions == sum(sequence.preemptions for sequence in sequences)


@settings(max_examples=60, deadline=None)
@given(load=LOADS, shape=SHAPES)
def test_first_in_is_first_served(load, shape):
    load = [(prompt, output) for prompt, output in load if fits(shape, prompt, output, 0)]
    engine = scheduler(**shape)
    sequences = [request(n, prompt, output, block_size=shape["block_size"]) for n, (prompt, output) in enumerate(load)]
    for sequence in sequences:
        engine.add(sequence)
    drain(engine)
    began = [sequence.scheduled_at for sequence in sequences]
    assert began == sorted(began)


def test_a_stream_of_short_requests_does_not_starve_a_long_one():
    engine = scheduler(seqs=2, batched=8, blocks=40)
    engine.add(request(0, 4, 4))
    long = request(1, 100, 2)
    engine.add(long)
    now, number = 0.0, 2
    for _ in range(200):
        if len(engine.waiting) < 4:
            engine.add(request(number, 4, 4, now))
            number += 1
        now = engine.step(now).ended
        if long.finish_reason:
            break
    assert long.finish_reason == "length"


def test_a_chunk_shares_the_budget_with_the_decodes_and_stalls_them():
    engine = scheduler(batched=32, blocks=100)
    engine.add(request(0, 4, 30))
    first = engine.step(0.0)
    alone = engine.step(first.ended)
    engine.add(request(1, 100, 5, alone.ended))
    mixed = engine.step(alone.ended)
    assert (mixed.shape.decode_seqs, mixed.shape.prompt_tokens) == (1, 31)
    assert mixed.outputs[0].gap > 5 * alone.outputs[0].gap
    counts = [mixed.shape.prompt_tokens]
    now = mixed.ended
    for _ in range(3):
        result = engine.step(now)
        counts.append(result.shape.prompt_tokens)
        now = result.ended
    assert counts == [31, 31, 31, 7]


def test_the_youngest_is_preempted_and_finishes_with_the_right_count():
    engine = scheduler(blocks=10, block_size=4, batched=64, caching=False)
    old, young = request(0, 12, 20), request(1, 12, 20)
    engine.add(old)
    engine.add(young)
    results = drain(engine)
    assert (old.preemptions, young.preemptions) == (0, 1)
    assert sum(result.preempted for result in results) == engine.totals.preemptions == 1
    assert (old.generated, young.generated) == (20, 20)
    assert engine.totals.prompt_recomputed > 12
    assert old.finished_at < young.finished_at


def test_a_preempted_sequence_goes_before_later_arrivals():
    engine = scheduler(blocks=10, block_size=4, batched=64, caching=False, seqs=2)
    for number in range(3):
        engine.add(request(number, 12, 20))
    finished = [sequence.id for result in drain(engine) for sequence in result.finished]
    assert finished == [0, 1, 2]


@pytest.mark.parametrize(("prompt", "cached"), [(16, 12), (17, 16), (19, 16), (20, 16), (21, 20), (3, 0), (4, 0)])
def test_a_repeated_prompt_hits_all_but_its_last_token_in_whole_blocks(prompt, cached):
    engine = scheduler()
    ids = list(range(prompt))
    engine.add(request(0, ids, 1))
    drain(engine)
    again = request(1, ids, 1)
    engine.add(again)
    result = engine.step(10.0)
    assert again.cached_tokens == cached
    assert result.shape.prompt_tokens == prompt - cached
    assert (engine.totals.prefix_queries, engine.totals.prefix_hits) == (2 * prompt, cached)


def test_a_shared_prefix_hits_to_the_block_where_prompts_part():
    engine = scheduler()
    engine.add(request(0, [*range(10), *range(500, 510)], 1))
    drain(engine)
    other = request(1, [*range(10), *range(700, 710)], 1)
    engine.add(other)
    drain(engine)
    assert other.cached_tokens == 8


def test_the_next_turn_hits_the_answer_that_was_generated():
    engine = scheduler()
    first = request(0, 10, 11)
    engine.add(first)
    drain(engine)
    answer = [output_token(first.key, at) for at in range(11)]
    turn = request(1, [*range(10), *answer, 7, 7, 7, 7], 1)
    engine.add(turn)
    drain(engine)
    assert turn.cached_tokens == 20


def test_a_prefix_is_evicted_from_its_end_when_room_is_needed():
    engine = scheduler(blocks=8, block_size=4)
    ids = list(range(16))
    engine.add(request(0, ids, 1))
    drain(engine)
    engine.add(request(1, 19, 1))
    drain(engine)
    again = request(2, ids, 1)
    engine.add(again)
    drain(engine)
    assert again.cached_tokens == 12, "one of four blocks was needed and it was the last"


def test_drafts_make_rows_and_their_acceptance_makes_tokens():
    engine = scheduler(drafts=5, length=3.51, batched=600, seqs=100, blocks=6000, model_len=4096)
    for number in range(40):
        engine.add(request(number, 8, 500))
    results = drain(engine)
    decodes = [result.shape for result in results if result.shape.decode_seqs]
    assert all(shape.decode_rows == 6 * shape.decode_seqs for shape in decodes)
    totals = engine.totals
    assert totals.draft_tokens == 5 * totals.drafts
    assert 1 + totals.accepted_tokens / totals.drafts == pytest.approx(3.51, rel=0.01)
    assert totals.accepted_per_position[:2] == [totals.drafts, totals.drafts]
    assert totals.accepted_per_position[3:] == [0, 0]


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    def times(seed: int) -> list[float]:
        engine = scheduler(drafts=3, length=2.4, seed=seed, blocks=40)
        lengths = random.Random(1)
        for number in range(15):
            engine.add(request(number, lengths.randint(1, 60), lengths.randint(1, 40)))
        return [result.ended for result in drain(engine)]

    assert times(3) == times(3)
    assert times(3) != times(4)


def test_what_can_never_be_served_is_refused():
    engine = scheduler(blocks=4, block_size=4, model_len=20)
    with pytest.raises(ValueError, match="maximum model length"):
        engine.add(request(0, 15, 6))
    with pytest.raises(ValueError, match="never fit"):
        engine.add(request(0, 10, 7))
    with pytest.raises(ValueError, match="at least one"):
        engine.add(request(0, 3, 0))
    assert not engine.busy and engine.step(0.0) is None


def test_an_aborted_sequence_gives_its_blocks_back():
    engine = scheduler()
    running, waiting = request(0, 40, 10), request(1, 40, 10)
    engine.add(running)
    engine.step(0.0)
    engine.add(waiting)
    assert engine.abort(running) and engine.abort(waiting)
    assert not engine.abort(running)
    assert engine.cache.used == 0 and not engine.busy
