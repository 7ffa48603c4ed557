"""Metrics and log lines against the names of a real vLLM, and their sums against what was done."""

from __future__ import annotations

import io
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from infx.simulator.app import log as lines
from infx.simulator.app.log import Log
from infx.simulator.argv import build_parser, parse
from infx.simulator.metrics import Metrics, length_buckets
from infx.simulator.sequence import Sequence


@pytest.fixture
def driven(headline):
    """Metrics of the headline server after 30 requests, with the step results."""
    server = headline(2, VLLM_ROCM_MONO_DECODE="1", VLLM_ROCM_QUICK_REDUCE_QUANTIZATION="INT4")
    engine = server.scheduler()
    metrics = Metrics(engine, server.names[0], server.cache_info())
    for number in range(30):
        engine.add(Sequence(number, 700, 40, 0.0, hashes=list(range(5)), tail=b"", key=1))
    now, results = 0.0, []
    while engine.busy:
        result = engine.step(now)
        now = result.ended
        metrics.step(result)
        results.append(result)
    return metrics, results


def families(metrics: Metrics) -> dict:
    return {family.name: family for family in text_string_to_metric_families(metrics.render().decode())}


def value(found: dict, name: str, suffix: str = "", **labels: str) -> float:
    return sum(
        sample.value
        for sample in found[name].samples
        if sample.name == name + suffix and labels.items() <= sample.labels.items()
    )


def test_every_name_and_type_is_the_real_one(driven, real_names):
    found = families(driven[0])
    expected = real_names["metrics"]
    assert {name: found[name].type for name in expected} == expected
    own = {name for name in found if not name.startswith("vllm:")}
    assert own and all(name.startswith("infx_sim:") for name in own)
    assert {name for name in found if name.startswith("vllm:")} <= set(expected)


def test_buckets_are_the_real_ones(driven, real_names):
    found = families(driven[0])
    for name, bounds in real_names["buckets"].items():
        if name != "vllm:request_prompt_tokens":
            got = [s.labels["le"] for s in found[name].samples if s.name.endswith("_bucket")]
            assert got == [*(str(bound) for bound in bounds), "+Inf"]
    assert list(length_buckets(16384)) == real_names["buckets"]["vllm:request_prompt_tokens"]


def test_every_sample_carries_engine_and_model(driven):
    for family in families(driven[0]).values():
        for sample in family.samples:
            assert sample.labels["engine"] == "0", sample
            if family.name != "vllm:cache_config_info":
                assert sample.labels["model_name"] == "deepseek-ai/DeepSeek-V4.1-Flash"


def test_counters_add_up_to_what_was_done(driven):
    metrics, results = driven
    found = families(metrics)
    tokens = 30 * 40
    assert value(found, "vllm:generation_tokens", "_total") == tokens
    assert value(found, "vllm:prompt_tokens", "_total") == 30 * 700
    hits = value(found, "vllm:prefix_cache_hits", "_total")
    assert hits == value(found, "vllm:prompt_tokens_cached", "_total")
    assert value(found, "vllm:prompt_tokens_by_source", "_total") == 30 * 700
    assert value(found, "vllm:prompt_tokens_by_source", "_total", source="local_cache_hit") == hits
    assert value(found, "vllm:request_success", "_total", finished_reason="length") == 30
    chunks = sum(output.gap is not None for result in results for output in result.outputs)
    assert value(found, "vllm:inter_token_latency_seconds", "_count") == chunks
    assert value(found, "vllm:time_to_first_token_seconds", "_count") == 30
    assert value(found, "infx_sim:steps", "_total") == len(results)
    assert value(found, "infx_sim:step_seconds", "_total") == pytest.approx(results[-1].ended)
    drafts = value(found, "vllm:spec_decode_num_drafts", "_total")
    assert value(found, "vllm:spec_decode_num_draft_tokens", "_total") == 5 * drafts
    accepted = value(found, "vllm:spec_decode_num_accepted_tokens", "_total")
    assert value(found, "vllm:spec_decode_num_accepted_tokens_per_pos", "_total") == accepted
    decode = value(found, "vllm:request_decode_time_seconds", "_sum")
    assert value(found, "vllm:inter_token_latency_seconds", "_sum") == pytest.approx(decode)


def test_steps_with_a_prompt_never_count_as_mono(driven):
    metrics, results = driven
    for (kind, engaged), count in metrics.steps.items():
        assert count > 0
        assert kind == "decode" or "mono" not in engaged
    wide = sum(result.shape.decode_rows > 48 for result in results)
    assert wide and any("mono" not in engaged for kind, engaged in metrics.steps if kind == "decode")


def test_a_server_without_drafts_has_no_draft_counters(deploy):
    server = deploy("Qwen/Qwen3-8B", INFX_SIM_HARDWARE="h200")
    text = Metrics(server.scheduler(), "x", server.cache_info()).render().decode()
    assert "spec_decode" not in text and 'num_gpu_blocks="' in text


def test_the_log_says_what_the_real_one_says(headline, real_names):
    out = io.StringIO()
    log = Log(7, out)
    arguments = parse(["serve", "deepseek-ai/DeepSeek-V4.1-Flash", "--port", "8123", "-tp", "2"])
    server = headline(2, VLLM_ROCM_MONO_DECODE="1")
    lines.before_load(log, arguments, "infx-sim 0")
    lines.start_up(log, arguments, server, "infx-sim 0")
    lines.serving(log, "0.0.0.0", 8123)
    text = out.getvalue()
    for pattern in real_names["log"]["patterns"]:
        assert re.search(pattern, text), pattern
    assert "DSv4.1 mono decode: the whole standard backbone layers (30 of 40)" in text
    assert f"GPU KV cache size: {server.kv_tokens:,} tokens" in text
    assert server.features.proof["mono-decode-v41.whole"].endswith("layer active (decode steps of <= 48 rows)")


def test_real_flags_are_known(real_names):
    serve = build_parser()._subparsers._group_actions[0].choices["serve"]
    known = {option for action in serve._actions for option in action.option_strings}
    assert {f"--{flag}" for flag in real_names["flags"]["known"]} <= known
