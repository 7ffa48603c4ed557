"""vLLM's argv, word by word."""

from __future__ import annotations

from infx.engines.protocol import ServerFacts
from infx.engines.vllm import ENGINE
from infx.schema.recipe import Speculative

SPEC = Speculative.model_validate({"method": "dspark", "draft-tokens": 5, "thinking": "thinking-on",
                                   "draft-sample-method": "probabilistic", "rejection-sample-method": "block",
                                   "adaptive-verification": False})


def facts(**changes):
    base = {"model_path": "org/m", "served_name": "m", "tp": 2, "pp": 1, "dp": 1, "ep": 1, "serve": {},
            "speculative": None, "acceptance_length": None}
    return ServerFacts(**{**base, **changes})


def test_plain():
    assert ENGINE.argv(facts()) == ["serve", "org/m", "--served-model-name", "m", "--tensor-parallel-size", "2"]


def test_every_kind_of_value_in_key_order():
    serve = {"max-model-len": 1048576, "language-model-only": True, "swa-bounded-replay": False,
             "gpu-memory-utilization": 0.9, "engram-config": {"cpu_offload": True}, "moe-backend": "aiter",
             "served-model-name": "m", "compile-sizes": [1, 2]}
    assert ENGINE.argv(facts(serve=serve))[6:] == [
        "--compile-sizes", "1", "2", "--engram-config", '{"cpu_offload":true}', "--gpu-memory-utilization", "0.9",
        "--language-model-only", "--max-model-len", "1048576", "--moe-backend", "aiter", "--no-swa-bounded-replay"]


def test_speculation_synthetic_and_real():
    real = ENGINE.argv(facts(speculative=SPEC))
    assert real[6:] == ["--speculative-config",
                        '{"method":"dspark","num_speculative_tokens":5,"draft_sample_method":"probabilistic",'
                        '"rejection_sample_method":"block","enable_adaptive_verification":false}']
    synthetic = ENGINE.argv(facts(speculative=SPEC, acceptance_length=3.51))  # P63: the length is in the argv
    assert synthetic[7] == ('{"method":"dspark","num_speculative_tokens":5,"draft_sample_method":"probabilistic",'
                            '"rejection_sample_method":"synthetic","synthetic_acceptance_length":3.51,'
                            '"enable_adaptive_verification":false}')


def test_layouts_and_gpus():
    argv = ENGINE.argv(facts(tp=2, pp=2, dp=4, ep=8))
    assert argv[4:] == ["--tensor-parallel-size", "2", "--pipeline-parallel-size", "2", "--data-parallel-size", "4",
                        "--enable-expert-parallel"]
    assert ENGINE.gpus(tp=2, pp=2, dp=4, ep=8) == 16


def test_listen():
    assert ENGINE.listen("127.0.0.1", 8000) == ["--host", "127.0.0.1", "--port", "8000"]
