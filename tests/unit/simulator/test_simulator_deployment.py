"""From the command line and environment to an engine, with the refusals of the real one."""

from __future__ import annotations

import json
import re

import pytest

from infx.simulator.deployment import Refused
from infx.simulator.facts import find_model, from_config, model_shape
from infx.simulator.mono import NOTHING

FLASH = "deepseek-ai/DeepSeek-V4.1-Flash"
QWEN = "amd/Qwen3.8-27B-Quark-AWQ-MXFP4"
MONO = {"VLLM_ROCM_MONO_DECODE": "1"}
QWEN_MONO = {**MONO, "INFX_SIM_HARDWARE": "mi355x", "INFX_SIM_IMAGE": "placeholder:vllm-61573-dense-mono"}
SYNTHETIC = {"num_speculative_tokens": 2, "rejection_sample_method": "synthetic"}


def test_the_headline_command_becomes_its_limits(headline):
    server = headline(2)
    assert (server.limits.max_num_seqs, server.limits.max_num_batched_tokens) == (1024, 16384)
    assert (server.limits.max_model_len, server.block_size, server.captured_rows) == (1048576, 128, 1024)
    assert server.acceptance.length == pytest.approx(3.51) and server.acceptance.drafts == 5
    assert server.kv_tokens % 128 == 0 and server.kv_tokens > 7_000_000
    assert headline(4).kv_tokens > server.kv_tokens


def test_without_synthetic_acceptance_the_golden_curve_is_used(headline):
    real = json.dumps(
        {"method": "dspark", "num_speculative_tokens": 3, "draft_sample_method": "probabilistic",
         "rejection_sample_method": "block"}
    )  # fmt: skip
    assert headline(2, "--speculative-config", real).acceptance.length == pytest.approx(2.90)


def test_a_method_without_a_curve_has_a_stated_chance(deploy):
    config = '{"method":"ngram","num_speculative_tokens":2}'
    server = deploy("Qwen/Qwen3-8B", "--speculative-config", config, INFX_SIM_HARDWARE="h200")
    assert server.acceptance.length == pytest.approx(1 + 0.6 + 0.36)


def names(server, rows: int, has_prompt: bool = False) -> set[str]:
    found = server.features.engage(rows, rows, has_prompt).names
    return {name.split(".")[1] for name in found if "mono" in name}


@pytest.mark.parametrize(("rows", "engaged"), [(6, True), (48, True), (49, False), (54, False)])
def test_mono_decode_runs_up_to_48_rows_without_any_prompt(headline, rows, engaged):
    server = headline(2, **MONO)
    assert names(server, rows) == ({"whole", "ffn"} if engaged else set())
    assert names(server, rows, has_prompt=True) == set()
    assert names(headline(2), rows) == set()


def test_piecewise_graphs_and_another_kv_dtype_keep_mono_off_in_part(headline):
    assert names(headline(2, "--compilation-config", '{"cudagraph_mode":"PIECEWISE"}', **MONO), 6) == set()
    assert names(headline(2, "--kv-cache-dtype", "bfloat16", **MONO), 6) == {"ffn"}


def test_an_image_without_the_change_ignores_the_variable(headline):
    old = "vllm/vllm-openai-rocm:nightly-rocm100-ac9126e58aa7bbab1856ba6593ba4d5003fea516"
    server = headline(2, **MONO, INFX_SIM_IMAGE=old)
    assert names(server, 6) == set()
    assert "Unknown vLLM environment variable detected: VLLM_ROCM_MONO_DECODE" in server.features.warnings


@pytest.mark.parametrize(
    ("tp", "caps", "rows", "engaged"),
    [
        (1, {}, 4, {"k1", "k2", "oproj"}),
        (1, {}, 5, set()),
        (2, {}, 8, {"k1", "k2", "oproj"}),
        (2, {}, 9, set()),
        (1, {"K1": "8", "K2": "8"}, 8, {"k1", "k2", "oproj"}),
        (1, {"K1": "8"}, 8, {"k1", "oproj"}),
        (1, {"K2": "99"}, 8, {"k2"}),
        (1, {"K2": "99"}, 9, set()),
    ],
)
def test_the_dense_kernels_have_caps_of_their_own(deploy, tp, caps, rows, engaged):
    env = {f"VLLM_ROCM_QWEN38_DENSE_MONO_{kernel}_MAX_ROWS": cap for kernel, cap in caps.items()}
    server = deploy(QWEN, "-tp", str(tp), "--max-model-len", "9472", **QWEN_MONO, **env)
    assert names(server, rows) == engaged
    assert any("clamped to 8" in text for text in server.features.warnings) == ("99" in caps.values())


def test_an_engaged_step_is_shorter_than_a_stock_one(headline):
    with_mono, without = headline(2, **MONO), headline(2)
    for rows in (6, 12, 24, 48):
        saving = with_mono.features.engage(rows, rows, False).saving
        assert saving.launch > 0
        shape = _decode(rows)
        assert with_mono.timer.seconds(shape, saving) < without.timer.seconds(shape)


def _decode(rows: int):
    from infx.predict.roofline import StepShape

    return StepShape(rows // 6, rows, rows * 1e4, drafting=True)


def test_nothing_engages_nothing(deploy):
    server = deploy("Qwen/Qwen3-8B", INFX_SIM_HARDWARE="h200")
    assert server.features.engage(4, 4, False) == NOTHING


@pytest.mark.parametrize(
    ("flags", "env", "said"),
    [
        (["-tp", "8"], MONO, r"tensor parallel size 2 or 4; tp is 8"),
        (["-tp", "2", "--enable-expert-parallel"], MONO, r"no expert parallelism"),
        (["-tp", "2"], {**MONO, "VLLM_ROCM_USE_AITER": "0"}, r"VLLM_ROCM_USE_AITER=1"),
        (["-tp", "2", "--moe-backend", "triton"], MONO, r"AITER_MXFP4_BF16 MoE backend"),
        (["-tp", "2"], {**MONO, "INFX_SIM_HARDWARE": "mi300x"}, r"CDNA4 \(gfx950\)"),
        (["-tp", "2"], {"VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": "int4"}, r"^ValueError: Invalid value 'int4' for VLLM_"),
        (["-tp", "2"], {"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1"}, r"fault during graph capture at TP2"),
        (["-tp", "2", "--swa-bounded-replay"], {}, r"bounded replay faults on ROCm"),
        (["-tp", "16"], {}, r"World size \(16\) is larger than the number of available GPUs \(8\)"),
        (["-tp", "2", "-dp", "2"], {}, r"no pipeline or data parallelism"),
        (["-tp", "2", "--max-model-len", "2000000"], {}, r"is greater than the derived max_model_len"),
        (["-tp", "2", "--max-num-batched-tokens", "512"], {}, r"greater than or equal to max_num_seqs \(1024\)"),
        (["-tp", "2", "--no-enable-chunked-prefill"], {}, r"is smaller than max_model_len"),
        (["-tp", "1"], {}, r"No available memory for the cache blocks"),
        (["-tp", "2", "--num-gpu-blocks-override", "100"], {}, r"To serve at least one request .* 12800\. Try"),
    ],
)
def test_what_the_engine_refuses_is_refused_in_its_words(deploy, headline, flags, env, said):
    with pytest.raises(Refused) as stopped:
        headline(2, *flags, **env)
    assert any(re.search(said, line) for line in stopped.value.lines), stopped.value.lines


def test_all_reasons_are_named_at_once(headline):
    with pytest.raises(Refused) as stopped:
        headline(2, "-tp", "8", "--enable-eplb", "--moe-backend", "triton", **MONO)
    text = " ".join(stopped.value.lines)
    assert all(part in text for part in ("2 or 4", "load balancing", "MoE backend"))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (SYNTHETIC, "exactly one of"),
        ({**SYNTHETIC, "synthetic_acceptance_length": 2, "synthetic_acceptance_rates": [0.5, 0.5]}, "exactly one of"),
        ({**SYNTHETIC, "synthetic_acceptance_length": 4}, "in \\[1, 3\\]"),
        ({**SYNTHETIC, "synthetic_acceptance_rates": [0.5]}, "2 entries"),
        ({**SYNTHETIC, "synthetic_acceptance_rates": [0.1, 0.5]}, "not increase"),
        ({"num_speculative_tokens": 0}, "greater than zero"),
        ({"num_speculative_tokens": 2, "rejection_sample_method": "magic"}, "rejection_sample_method"),
        ([], "JSON object"),
    ],
)
def test_a_wrong_speculative_config_is_refused(deploy, config, said):
    with pytest.raises(Refused, match=said):
        deploy("Qwen/Qwen3-8B", "--speculative-config", json.dumps(config), INFX_SIM_HARDWARE="h200")


@pytest.mark.parametrize(("name", "env"), [("no/such", {}), ("Qwen/Qwen3-8B", {"INFX_SIM_HARDWARE": "tpu"})])
def test_an_unknown_model_or_device_is_refused_with_what_is_known(deploy, name, env):
    with pytest.raises(Refused, match="infx-sim knows"):
        deploy(name, **env)


def test_a_local_model_is_found_by_its_folder(facts):
    catalog, _ = facts
    assert find_model(catalog, "/somewhere/.engines/models/tiny-bf16").key == "tiny-bf16"
    assert find_model(catalog, "deepseek-v4.1-flash").hub == FLASH


def test_a_configuration_counts_as_the_catalog_does(facts):
    """Qwen3-8B's config.json against the facts that the catalog states for it."""
    catalog, _ = facts
    config = {
        "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 40960,
    }  # fmt: skip
    counted, stated = model_shape(from_config("x", config)), model_shape(catalog.models["qwen3-8b"])
    for name in ("dense_bytes", "active_decode", "active_prompt", "kv_bytes", "pair_flops"):
        assert getattr(counted, name) == pytest.approx(getattr(stated, name), rel=2e-3), name


def test_an_fp8_cache_doubles_the_room_and_halves_what_is_read(deploy):
    flags = ("-tp", "1", "--max-model-len", "9472")
    plain = deploy(QWEN, *flags, INFX_SIM_HARDWARE="mi355x")
    halved = deploy(QWEN, *flags, "--kv-cache-dtype", "fp8", INFX_SIM_HARDWARE="mi355x")
    assert halved.kv_tokens == pytest.approx(2 * plain.kv_tokens, rel=1e-4)
    assert halved.timer.model.kv_bytes == plain.timer.model.kv_bytes / 2


def test_the_cpu_build_takes_its_room_from_its_variable(deploy):
    flags = ("--max-model-len", "2048", "--enforce-eager")
    server = deploy("tiny-bf16", *flags, INFX_SIM_HARDWARE="cpu", VLLM_CPU_KVCACHE_SPACE="1")
    assert server.kv_tokens == pytest.approx(2**30 / 512, rel=1e-3)
    assert (server.captured_rows, server.block_size) == (0, 128)
