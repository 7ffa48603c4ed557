"""Which steps take which kernels: rules of vllm#60397 and vllm#61573, read from configs/engine-features.yaml."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.predict.deployment import Deployment, as_count, same
from infx.predict.features import State, evaluate, failures
from infx.sources.catalog import load_catalog
from infx.sources.tree import WorkingTree

CATALOG = load_catalog(WorkingTree(Path(__file__).parents[3]))[0]
NEW = "vllm/vllm-openai-rocm:nightly-rocm100-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe"
OLD = "vllm/vllm-openai-rocm:nightly-rocm100-ac9126e58aa7bbab1856ba6593ba4d5003fea516"


def v41(tp=2, concurrency=8, env=(), serve=(), image=NEW, **more):
    return Deployment(
        model=CATALOG.models["deepseek-v4.1-flash"], hardware=CATALOG.hardware["mi355x"], image=image, tp=tp,
        concurrency=concurrency, images=CATALOG.images,
        env={"VLLM_ROCM_MONO_DECODE": "1", "VLLM_ROCM_USE_AITER": "1", **dict(env)},
        serve={"moe-backend": "aiter", **dict(serve)}, speculative={"method": "dspark", "draft-tokens": 5}, **more,
    )  # fmt: skip


def qwen(tp=1, env=(), serve=(), **more):
    return Deployment(
        model=CATALOG.models["qwen3.8-27b-mxfp4"], hardware=CATALOG.hardware["mi355x"],
        image="placeholder:vllm-61573-dense-mono", tp=tp, images=CATALOG.images,
        env={"VLLM_ROCM_MONO_DECODE": "1", **dict(env)}, serve=dict(serve), **more,
    )  # fmt: skip


def run(deployment):
    return evaluate(CATALOG.features.values(), deployment)


MONO = {"mono-decode-v41.whole", "mono-decode-v41.ffn"}


@pytest.mark.parametrize("tp", [2, 4])
@pytest.mark.parametrize(("concurrency", "engaged"), [(1, True), (8, True), (9, False), (16, False), (64, False)])
def test_v41_mono_takes_up_to_48_rows(tp, concurrency, engaged):
    # P64
    deployment = v41(tp, concurrency)
    assert deployment.rows == concurrency * 6
    took = run(deployment).step_engages(deployment.rows, False)
    assert (took >= MONO) is engaged and bool(took & MONO) is engaged


def test_a_step_with_any_prefill_is_no_mono_step():
    engagement = run(v41())
    assert not engagement.step_engages(6, True, 4096) & MONO
    assert not engagement.step_engages(0, False, 0) & MONO


def test_all_reasons_come_at_once():
    state = run(v41(tp=8, ep=8, dp=2, env={"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1", "VLLM_ROCM_USE_AITER": "0"},
                    serve={"moe-backend": "aiter_triton_mxfp4_bf16"})).features["mono-decode-v41"]  # fmt: skip
    assert state.state is State.REFUSED
    for part in ("size 2 or 4", "expert parallelism", "data parallelism", "A8W4", "USE_AITER=1", "MXFP4_BF16"):
        assert any(part in reason for reason in state.reasons), part


def test_another_gpu_refuses_and_a_partitioned_one_too():
    other = run(replace(v41(), hardware=CATALOG.hardware["mi300x"])).features["mono-decode-v41"]
    assert other.state is State.REFUSED and "gfx942" in other.reasons[0]


@pytest.mark.parametrize(
    ("image", "state"), [(NEW, State.POSSIBLE), (OLD, State.OFF), ("vllm/vllm-openai-rocm:v9.9.9", State.UNKNOWN)]
)
def test_the_image_decides(image, state):
    assert run(v41(image=image)).features["mono-decode-v41"].state is state


def test_unset_is_off_and_another_model_is_not_meant():
    off = run(v41(env={"VLLM_ROCM_MONO_DECODE": "0"})).features["mono-decode-v41"]
    assert (off.state, off.reasons) == (State.OFF, ("VLLM_ROCM_MONO_DECODE is 0, not 1",))
    assert run(v41()).features["dense-mono-qwen38"].state is State.NOT_APPLICABLE


def test_another_kv_cache_leaves_the_ffn_launch():
    engaged = run(v41(serve={"kv-cache-dtype": "bfloat16"})).step_engages(6, False)
    assert engaged & MONO == {"mono-decode-v41.ffn"}
    assert not run(v41(serve={"compilation-config": {"cudagraph_mode": "PIECEWISE"}})).step_engages(6, False) & MONO


@pytest.mark.parametrize(("tp", "default", "built"), [(1, 4, 8), (2, 8, 16)])
def test_dense_mono_row_caps(tp, default, built):
    names = {"dense-mono-qwen38.k1", "dense-mono-qwen38.k2", "dense-mono-qwen38.oproj"}
    plain = run(qwen(tp))
    assert plain.step_engages(default, False) == names
    assert plain.step_engages(default + 1, False) == set()
    k1 = "VLLM_ROCM_QWEN38_DENSE_MONO_K1_MAX_ROWS"
    apart = run(qwen(tp, env={k1: str(built)}))
    assert apart.step_engages(built, False) == names - {"dense-mono-qwen38.k2"}
    clamped = run(qwen(tp, env={k1: "99"}))
    state = clamped.features["dense-mono-qwen38"]
    assert state.state is State.CLAMPED and state.launches[0].cap == built
    assert run(qwen(tp, env={k1: "0"})).features["dense-mono-qwen38"].launches[0].cap == 1
    wrong = run(qwen(tp, env={k1: "many"})).features["dense-mono-qwen38"]
    assert wrong.state is State.REFUSED and "not an integer" in wrong.reasons[0]


def test_the_k2_switch_counts_at_tp2_alone():
    off = {"VLLM_ROCM_QWEN38_DENSE_MONO_K2": "0"}
    assert "dense-mono-qwen38.k2" in run(qwen(1, env=off)).step_engages(4, False)
    assert "dense-mono-qwen38.k2" not in run(qwen(2, env=off)).step_engages(4, False)
    oproj = run(qwen(1, env={"VLLM_ROCM_QWEN38_DENSE_MONO_OPROJ": "0"})).step_engages(4, False)
    assert oproj == {"dense-mono-qwen38.k1", "dense-mono-qwen38.k2"}


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"tp": 4}, "1 or 2"),
        ({"pp": 2}, "pipeline"),
        ({"serve": {"enable-lora": True}}, "LoRA"),
        ({"serve": {"kv-transfer-config": {"kv_connector": "x"}}}, "KV connector"),
        ({"speculative": {"method": "mtp", "draft-tokens": 1}}, "speculative"),
    ],
)
def test_dense_mono_refuses(more, part):
    state = run(qwen(**more)).features["dense-mono-qwen38"]
    assert state.state is State.REFUSED and any(part in reason for reason in state.reasons)


def test_shared_expert_overlap_ends_above_concurrency_42():
    engagement = run(v41())
    assert "shared-expert-overlap.overlap" in engagement.step_engages(42 * 6, False)
    assert "shared-expert-overlap.overlap" not in engagement.step_engages(43 * 6, False)
    wider = run(v41(env={"VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD": "1024"}))
    assert "shared-expert-overlap.overlap" in wider.step_engages(384, False)


@pytest.mark.parametrize(("tp", "tokens"), [(2, 103), (4, 205)])
def test_quick_reduce_begins_at_a_message_size(tp, tokens):
    engagement = run(v41(tp, env={"VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": "INT4"}))
    assert "quick-reduce.compressed" not in engagement.step_engages(tokens - 1, False)
    assert "quick-reduce.compressed" in engagement.step_engages(tokens, False)
    assert "quick-reduce.compressed" in engagement.step_engages(6, True, 8192)
    assert run(v41(tp)).features["quick-reduce"].state is State.OFF


def test_known_failures_are_data():
    a4w4 = {"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1"}
    bounded = {"swa-bounded-replay": False}

    def named(tp, env):
        return [item.name for item in failures(CATALOG.failures.values(), v41(tp, env=env, serve=bounded))]

    assert named(2, a4w4) == ["a4w4-tp2"]
    assert named(4, a4w4) == []
    assert named(2, {}) == []


def test_environment_of_the_image_counts():
    from infx.schema.features import ImageContents, ImageTable

    a4w4 = {"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1"}
    table = ImageTable({NEW: ImageContents(env=a4w4, has=["vllm#60397"], source="s")})
    assert run(replace(v41(), images=table)).features["mono-decode-v41"].state is State.REFUSED


def test_values_are_read_as_engines_read_them():
    assert same("TRUE", True) and same("0", False) and not same("yes", True)
    assert same("8", 8) and not same("int4", "INT4") and not same(True, 1)
    assert [as_count(value) for value in ("1k", "1K", "2m", 7, "7", "1.5k", "x", True, None)] == [
        1000, 1024, 2_000_000, 7, 7, 1500, None, None, None,
    ]  # fmt: skip


def test_an_image_without_the_feature_ignores_its_setting_whatever_else_is_wrong():
    state = run(v41(tp=8, image=OLD)).features["mono-decode-v41"]
    assert state.state is State.OFF
    assert any("lacks it" in reason for reason in state.reasons)
    assert any("size 2 or 4" in reason for reason in state.reasons)
