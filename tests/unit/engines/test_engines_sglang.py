"""SGLang's argv word by word, its environment, and its log read back."""

from __future__ import annotations

import pytest

from infx.engines import ENGINES
from infx.engines.protocol import OffloadFacts, ServerFacts
from infx.schema.recipe import Speculative

ENGINE = ENGINES["sglang"]
LOG = """[2026-11-20 10:00:00] server_args=ServerArgs(model_path='org/m', tp_size=2, dp_size=1, \
mem_fraction_static=0.85, max_running_requests=None, context_length=4096, \
api_key='sk-planted', disable_radix_cache=False, \
lora=Ref(name='a', size=3), device=Kind.GPU, served_model_name='m', enable_metrics=True)
[2026-11-20 10:00:09 TP0] Capture cuda graph bs [1, 2, 4]
[2026-11-20 10:00:10 TP0] max_total_num_tokens=430080, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=128, context_len=4096, available_gpu_mem=12.10 GB
[2026-11-20 10:00:11] INFO:     Started server process [4711]
"""


def facts(**changes):
    base = {"model_path": "org/m", "served_name": "m", "tp": 2, "pp": 1, "dp": 1, "ep": 1, "serve": {},
            "speculative": None, "acceptance_length": None}
    return ServerFacts(**{**base, **changes})


def spec(**changes):
    return Speculative.model_validate({"method": "eagle3", "draft-tokens": 5, **changes})


def test_plain_argv():
    assert ENGINE.argv(facts()) == ["--model-path", "org/m", "--served-model-name", "m", "--tp-size", "2",
                                    "--enable-metrics"]
    assert ENGINE.program == ("python3", "-m", "sglang.launch_server")
    assert ENGINE.listen("127.0.0.1", 8000) == ["--host", "127.0.0.1", "--port", "8000"]


def test_layouts_and_every_kind_of_value():
    serve = {"mem-fraction-static": 0.85, "disable-radix-cache": True, "enable-mixed-chunk": False,
             "json-model-override-args": {"a": 1}, "cuda-graph-bs": [1, 2], "served-model-name": "m"}
    assert ENGINE.argv(facts(pp=2, dp=4, ep=8, serve=serve))[4:] == [
        "--tp-size", "2", "--pp-size", "2", "--dp-size", "4", "--ep-size", "8", "--enable-metrics",
        "--cuda-graph-bs", "1", "2", "--disable-radix-cache", "--json-model-override-args", '{"a":1}',
        "--mem-fraction-static", "0.85"]
    assert ENGINE.gpus(tp=2, pp=2, dp=4, ep=8) == 16


@pytest.mark.parametrize(("asked", "serve", "words"), [
    (spec(model="org/draft"), {}, ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "org/draft",
                                   "--speculative-num-steps", "5", "--speculative-eagle-topk", "1",
                                   "--speculative-num-draft-tokens", "6"]),
    (spec(method="mtp"), {"speculative-eagle-topk": 4},
     ["--speculative-algorithm", "NEXTN", "--speculative-num-steps", "5", "--speculative-num-draft-tokens", "6",
      "--speculative-eagle-topk", "4"]),
    (spec(method="ngram"), {}, ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "5"]),
])
def test_speculation(asked, serve, words):
    assert ENGINE.argv(facts(speculative=asked, serve=serve))[7:] == words


def test_synthetic_acceptance_is_environment():
    assert ENGINE.env(facts(speculative=spec())) == {}
    assert ENGINE.env(facts(speculative=spec(), acceptance_length=3.51)) == {
        "SGLANG_SIMULATE_ACC_LEN": "3.51", "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
        "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token"}


def test_offload_is_whole_gigabytes_a_rank():
    assert ENGINE.offloads["hicache"](OffloadFacts(budget_gb=1001, tp=4, pp=1, dp=2)) == {
        "enable-hierarchical-cache": True, "hicache-size": 125}


def test_read_back_verifies_and_catches():
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "org/m", "--tp-size", "4", "--enable-metrics",
            "--context-length", "4096", "--max-running-requests", "256", "--page-size", "64", "--port", "1"]
    seen = {item.name: (item.found, item.verdict) for item in ENGINE.observe(LOG, argv, {"A": "1"}, {"A": "2"})}
    assert seen == {
        "model-path": ("org/m", "verified"), "tp-size": (2, "mismatch"), "enable-metrics": (True, "verified"),
        "context-length": (4096, "verified"), "max-running-requests": (128, "mismatch"),
        "page-size": (None, "unreadable"), "env A": ("2", "mismatch")}
    assert ENGINE.server_pid(LOG) == 4711


def test_effective_has_defaults_and_no_secret():
    found = ENGINE.effective(LOG)
    assert found["kv-cache-tokens"] == 430080 and found["chunked-prefill-size"] == 8192
    assert found["disable-radix-cache"] is False and found["capture-sizes"] == "[1, 2, 4]"
    assert found["lora"] == {"name": "a", "size": 3} and found["device"] == "Kind.GPU"
    assert "api-key" not in found and "sk-planted" not in str(found)


def test_an_unreadable_log_verifies_nothing():
    assert ENGINE.effective("server_args=ServerArgs(a=") == {}
    assert [item.verdict for item in ENGINE.observe("", ["--tp-size", "2"], {}, None)] == ["unreadable"]
