"""Step times and rooflines, worked by hand for a model small enough to do so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.predict.roofline import DeviceShape, ModelShape, StepShape, limit, touched, work
from infx.predict.steptime import Overheads, Saving, StepTimer

DENSE = ModelShape(
    layers=10, prompt_layers=10, hidden=100, dense_bytes=1e9, active_decode=1e9, active_prompt=0.8e9, kv_bytes=1000,
    state_bytes=5e5, pair_flops=1e4,
)  # fmt: skip
EXPERTS = replace(DENSE, prompt_layers=5, expert_bytes=1e6, experts=8, experts_per_token=2)
DEVICE = DeviceShape(memory_bytes_s=1e12, peak_flops=1e14, link_bytes_s=1e10, memory_bytes=1e11, mesh=True)
OVER = Overheads(
    weight_share=0.5, kv_share=0.4, compute_share=0.5, host=1e-3, host_seq=1e-5, launch_graph=1e-5, launch_mixed=5e-5,
    reduce_latency=1e-6, link_share=0.5,
)  # fmt: skip
DECODE = StepShape(decode_seqs=2, decode_rows=2, decode_context=3000.0)


def test_a_dense_decode_reads_weights_contexts_and_states():
    assert work(DENSE, 1, DECODE) == (1e9, 3000 * 1000 + 2 * 5e5, 2 * 1e9 * 2, 0.0)
    assert work(DENSE, 2, DECODE) == (5e8, 2e6, 2e9, 2 * 100 * 20 * 2)


def test_a_shared_latent_is_read_whole_by_every_rank():
    assert work(replace(DENSE, kv_shared=True), 2, DECODE).kv_bytes == 4e6


def test_sparse_attention_stops_at_its_span_and_the_index_does_not():
    sparse = replace(DENSE, attention_span=100, index_bytes=2.0, state_bytes=0.0)
    assert work(sparse, 1, DECODE).kv_bytes == 200 * 1000 + 3000 * 2


def test_a_prompt_costs_its_own_parameters_and_its_pairs():
    step = StepShape(prompt_tokens=100, prompt_pairs=100 * 50.0, prompt_seqs=1)
    assert work(DENSE, 1, step).flops == 2 * 0.8e9 * 100 + 5000 * 1e4


@pytest.mark.parametrize(("tokens", "expected"), [(0, 0), (1, 2), (2, 3.5), (1000, 8)])
def test_expected_experts(tokens, expected):
    assert touched(8, 2, tokens) == pytest.approx(expected)


def test_prompt_tokens_touch_experts_of_their_own_layers_only():
    prompt = StepShape(prompt_tokens=1000, prompt_seqs=1)
    assert work(EXPERTS, 1, prompt).weight_bytes == pytest.approx(1e9 + 5 * 8 * 1e6)
    ends = prompt._replace(prompt_ends=1)
    assert work(EXPERTS, 1, ends).weight_bytes == pytest.approx(1e9 + 5 * 8 * 1e6 + 5 * 2 * 1e6)
    assert work(EXPERTS, 1, StepShape(2, 2)).weight_bytes == pytest.approx(1e9 + 10 * 3.5 * 1e6)


def test_the_limit_names_what_binds():
    memory = limit(DENSE, DEVICE, 1, DECODE)
    assert (memory.bound, memory.seconds) == ("memory", pytest.approx(1.004e-3))
    assert memory.tokens_s_gpu == pytest.approx(2 / 1.004e-3)
    prompt = limit(DENSE, DEVICE, 1, StepShape(prompt_tokens=10000, prompt_seqs=1))
    assert (prompt.bound, prompt.seconds) == ("compute", pytest.approx(0.16))
    slow = replace(DEVICE, link_bytes_s=1e5)
    assert limit(DENSE, slow, 2, DECODE).bound == "link"


def test_a_mesh_uses_a_link_for_every_peer_and_a_port_is_shared():
    assert DEVICE.sent(100.0, 2) == 100.0 and DEVICE.sent(100.0, 4) == 50.0
    port = replace(DEVICE, mesh=False)
    assert port.sent(100.0, 2) == 100.0 and port.sent(100.0, 4) == 150.0


def test_a_decode_step_is_the_sum_of_its_terms():
    timer = StepTimer(DENSE, DEVICE, 1, OVER)
    assert timer.seconds(DECODE) == pytest.approx(1e-3 + 2e-5 + 1e9 / 0.5e12 + 4e6 / 0.4e12 + 10 * 1e-5)


def test_two_ranks_halve_the_bytes_and_pay_for_all_reduces():
    timer = StepTimer(DENSE, DEVICE, 2, OVER)
    reduces = 20 * 1e-6 + 20 * 400 / 0.5e10
    assert timer.seconds(DECODE) == pytest.approx(1e-3 + 2e-5 + 0.5e9 / 0.5e12 + 2e6 / 0.4e12 + 1e-4 + reduces)


def test_compression_begins_at_its_message_size():
    plain = StepTimer(DENSE, DEVICE, 2, OVER)
    above = StepTimer(DENSE, DEVICE, 2, OVER, reduce_ratio=0.25, reduce_ratio_from=400)
    below = StepTimer(DENSE, DEVICE, 2, OVER, reduce_ratio=0.25, reduce_ratio_from=401)
    sent = 20 * 400 / 0.5e10
    assert plain.seconds(DECODE) - above.seconds(DECODE) == pytest.approx(0.75 * sent)
    assert below.seconds(DECODE) == plain.seconds(DECODE)


def test_more_rows_than_were_captured_and_any_prompt_cost_more_launches():
    timer = StepTimer(DENSE, DEVICE, 1, OVER, captured_rows=2)
    assert timer.captured(DECODE) and not timer.captured(DECODE._replace(decode_rows=3))
    mixed = DECODE._replace(prompt_tokens=1, prompt_seqs=1)
    assert not timer.captured(mixed)
    uncaptured = StepTimer(DENSE, DEVICE, 1, OVER, captured_rows=1)
    assert uncaptured.seconds(DECODE) - timer.seconds(DECODE) == pytest.approx(10 * 4e-5)


def test_a_saving_takes_launches_away_and_adds_rows():
    timer = StepTimer(DENSE, DEVICE, 1, OVER)
    saved = timer.seconds(DECODE) - timer.seconds(DECODE, Saving(0.6, 0.1, 1e-6))
    assert saved == pytest.approx(10 * 1e-5 * 0.6 + 0.1 * 1e9 / 0.5e12 - 2e-6)


def test_drafting_adds_its_stages():
    model = replace(
        EXPERTS, draft_layers=3, draft_bytes=1e8, draft_expert_bytes=1e6, draft_experts=4, draft_experts_per_token=4,
        draft_active=1e8,
    )  # fmt: skip
    plain, drafting = work(model, 1, DECODE), work(model, 1, DECODE._replace(drafting=True))
    assert drafting.weight_bytes - plain.weight_bytes == pytest.approx(1e8 + 3 * 4 * 1e6)
    assert drafting.flops - plain.flops == 2 * 1e8 * 2


@given(st.integers(1, 300), st.integers(0, 300), st.integers(0, 8192), st.sampled_from([1, 2, 4]))
def test_more_work_never_takes_less_time(rows, more, prompt, tp):
    timer = StepTimer(EXPERTS, DEVICE, tp, OVER, captured_rows=512)
    step = StepShape(rows, rows, 100.0 * rows, prompt, prompt * 50.0, min(prompt, 1))
    larger = step._replace(decode_seqs=rows + more, decode_rows=rows + more, decode_context=100.0 * (rows + more))
    assert timer.seconds(larger) >= timer.seconds(step) > 0
    assert timer.seconds(step) >= limit(EXPERTS, DEVICE, tp, step).seconds
