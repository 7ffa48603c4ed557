"""Closed-loop curves without HTTP: what a client of the real thing would see, and how it varies."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.simulator.argv import parse
from infx.simulator.deployment import resolve
from infx.simulator.kvcache import KVCache, hash_blocks, token_bytes
from infx.simulator.offline import Turn, closed_loop, replay, steady

QWEN = "amd/Qwen3.8-27B-Quark-AWQ-MXFP4"


@pytest.fixture(scope="module")
def qwen(facts):
    """Schedulers of the dense model with a KV cache of so many blocks of 16 tokens."""
    catalog, constants = facts
    flags = ["-tp", "1", "--max-model-len", "3500", "--num-gpu-blocks-override", "900"]
    server = resolve(parse(["serve", QWEN, *flags]), {"VLLM_ROCM_MONO_DECODE": "1"}, catalog, constants)

    def make(blocks: int):
        engine = server.scheduler()
        engine.cache = KVCache(blocks, 16)
        return engine

    return make


def loop(server, concurrency: int):
    requests = 4 * concurrency + 20
    return closed_loop(server.scheduler(), concurrency, itertools.repeat((4000, 200)), requests=requests)


def test_a_closed_loop_keeps_its_streams_full_and_counts_every_token(headline):
    run = closed_loop(headline(2).scheduler(), 6, itertools.repeat((3000, 100)), requests=60)
    assert len(run.last) == 60 and set(run.lane) == set(range(6))
    assert (run.output == 100).all() and (run.prompt == 3000).all() and (run.cached == 0).all()
    for lane in range(6):
        mine = run.lane == lane
        assert (run.sent[mine][1:] == run.last[mine][:-1]).all(), "the next request is sent as the last one ends"
    assert (run.sent < run.first).all() and (run.first < run.last).all()
    assert run.step_tokens.sum() >= 6000
    assert (run.step_rows % 6 == 0).all()


def test_turns_of_a_session_hit_their_own_past_and_waits_are_waited(headline):
    ids = list(range(2000))

    def session():
        for turn in range(1, 4):
            data = token_bytes(ids[: 600 * turn])
            hashes = hash_blocks(data, 128)
            yield Turn(600 * turn, 20, hashes, data[4 * 128 * len(hashes) :], key=turn, wait=0.5)

    run = replay(headline(2).scheduler(), [session()])
    assert list(run.cached) == [0, 512, 1152]
    assert run.sent[0] == 0.5
    assert run.sent[1] - run.last[0] == pytest.approx(0.5)


def test_a_duration_ends_the_run(headline):
    run = closed_loop(headline(2).scheduler(), 4, itertools.repeat((500, 50)), duration=3.0)
    assert 3.0 <= run.step_end[-1] < 3.2


def test_a_curve_rises_and_its_interactivity_falls(headline):
    points = [steady(loop(headline(2), concurrency)) for concurrency in (1, 2, 4, 8, 16, 32, 64)]
    assert np.all(np.diff([point.output_s for point in points]) > 0)
    assert np.all(np.diff([point.median_tpot for point in points]) > 0)


def test_four_gpus_answer_faster_than_two(headline):
    for streams in (1, 8, 32):
        two, four = (
            steady(loop(headline(tp), streams))
            for tp in (2, 4)
        )
        assert four.median_tpot < two.median_tpot and four.median_ttft < two.median_ttft


def test_mono_decode_changes_only_what_its_steps_are(headline):
    for concurrency, least in ((1, 1.03), (8, 1.003), (64, 0.999)):
        runs = [
            loop(headline(2, **env), concurrency)
            for env in ({"VLLM_ROCM_MONO_DECODE": "1"}, {})
        ]
        gain = steady(runs[0]).output_s / steady(runs[1]).output_s
        assert least < gain < 1.3, concurrency
        for run in runs[:1]:
            for names, rows, prompt in zip(run.step_engaged, run.step_rows, run.step_prompt, strict=True):
                engaged = any(name.startswith("mono-decode") for name in names)
                assert engaged == (0 < rows <= 48 and not prompt)


def test_the_same_lanes_give_the_same_run(headline):
    one, two = (
        closed_loop(headline(2).scheduler(), 5, iter([(900 + 7 * n, 30 + n) for n in range(60)])) for _ in range(2)
    )
    assert (one.last == two.last).all() and (one.gap == two.gap).all()


def test_a_run_without_a_steady_window_says_so(headline):
    with pytest.raises(ValueError, match="no request began"):
        steady(closed_loop(headline(2).scheduler(), 3, iter([(100, 10)] * 3)))
    with pytest.raises(ValueError, match="not every lane"):
        steady(closed_loop(headline(2).scheduler(), 3, iter([(100, 10)] * 2)))


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 300)), min_size=1, max_size=30),
    streams=st.integers(1, 9),
    blocks=st.integers(240, 900),
)
def test_quiet_steps_taken_together_are_the_steps_taken_one_by_one(qwen, lengths, streams, blocks):
    def run(fast: bool):
        server = qwen(blocks)
        source = iter(lengths)
        lanes = [(Turn(p, o, wait=0.03 * lane) for p, o in source) for lane in range(streams)]
        return replay(server, lanes, fast=fast)

    fast, slow = run(True), run(False)
    for name in ("lane", "prompt", "output", "preemptions", "step_tokens", "step_rows", "step_prompt"):
        assert (getattr(fast, name) == getattr(slow, name)).all(), name
    for name in ("sent", "first", "last", "step_end"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), rel=1e-9), name
    assert fast.step_engaged == slow.step_engaged
    assert (fast.gap * fast.gap_count).sum() == pytest.approx((slow.gap * slow.gap_count).sum())
    assert fast.gap_count.sum() == slow.gap_count.sum()


def test_a_request_waits_in_the_front_end_longer_the_more_streams_it_serves(facts):
    catalog, constants = facts
    row = constants.overheads["gfx950"]

    def first(front: int, per_stream: int, streams: int):
        kept = {**row, "front-us": front, "front-seq-us": per_stream}
        trial = replace(constants, overheads={**constants.overheads, "gfx950": kept})
        server = resolve(parse(["serve", QWEN, "--max-model-len", "9472"]), {"INFX_SIM_HARDWARE": "mi355x"}, catalog,
                         trial)  # fmt: skip
        run = closed_loop(server.scheduler(), streams, iter([(100, 50 + 7 * n) for n in range(streams * 4)]))
        return run.first - run.sent, run

    without, _ = first(0, 0, 1)
    fixed, run = first(30_000, 0, 1)
    assert (fixed - without == pytest.approx(0.030)) and (run.sent[1:] == run.last[:-1]).all()
    alone, _ = first(30_000, 10_000, 1)
    assert alone == pytest.approx(fixed), "nobody else is served"
    crowd, _ = first(0, 10_000, 4)
    quiet, _ = first(0, 0, 4)
    later = slice(4, None)  # the first four are sent to an idle server
    assert crowd[later].mean() - quiet[later].mean() == pytest.approx(0.030, abs=0.015)
