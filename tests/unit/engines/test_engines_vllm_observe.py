"""Reading a vLLM log back: verified, mismatch or unreadable, with the line. The log is written here."""

from __future__ import annotations

from infx.engines.readback import same, wanted_flags
from infx.engines.vllm.observe import effective, features, observe, server_pid

LOG = """(APIServer pid=77) INFO 12-01 [utils.py:240] non-default args: {'model_tag': 'org/m', 'port': 8011, \
'model': 'org/m', 'max_model_len': 2048, 'enforce_eager': True, 'max_num_seqs': 16, 'moe_backend': 'aiter', \
'served_model_name': ['m'], 'engram_config': {'cpu_offload': True, 'more': 1}}
(APIServer pid=77) INFO 12-01 [model.py:2152] Using max model len 2048
(APIServer pid=77) INFO 12-01 [scheduler.py:307] Chunked prefill is enabled with max_num_batched_tokens=512.
(APIServer pid=77) WARNING 12-01 [envs.py:1] Unknown vLLM environment variable detected: VLLM_TYPO
(EngineCore pid=78) INFO 12-01 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='org/m', \
speculative_config=SpeculativeConfig(method='ngram', model=None, num_spec_tokens=5), dtype=torch.bfloat16, \
tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, quantization=None, kv_cache_dtype=auto, \
enforce_eager=True, enable_prefix_caching=True
(EngineCore pid=78) INFO 12-01 [kv.py:1710] GPU KV cache size: 783,568 tokens
"""
ARGV = ["serve", "org/m", "--served-model-name", "m", "--tensor-parallel-size", "2", "--max-model-len", "2048",
        "--max-num-seqs", "16", "--max-num-batched-tokens", "512", "--enforce-eager", "--engram-config",
        '{"cpu_offload":true}', "--moe-backend", "aiter"]


def verdicts(argv=ARGV, env=None, environ=None, log=LOG):
    return {item.name: (item.verdict, item.found) for item in observe(log, argv, env or {}, environ)}


def test_what_was_asked_is_verified_with_its_value():
    found = verdicts()
    assert {name: verdict for name, (verdict, _) in found.items()} == dict.fromkeys(
        ["served-model-name", "tensor-parallel-size", "max-model-len", "max-num-seqs", "max-num-batched-tokens",
         "enforce-eager", "engram-config", "moe-backend", "model"], "verified")
    assert found["max-num-batched-tokens"] == ("verified", 512)


def test_every_silent_change_is_a_mismatch():  # P27
    for flag, value in (("--max-num-seqs", "8"), ("--max-num-batched-tokens", "256"), ("--max-model-len", "4096"),
                        ("--tensor-parallel-size", "4"), ("--moe-backend", "triton"),
                        ("--engram-config", '{"cpu_offload":false}')):
        argv = [*ARGV]
        argv[argv.index(flag) + 1] = value
        assert verdicts(argv)[flag[2:]][0] == "mismatch", flag
    assert verdicts(["serve", "org/other", *ARGV[2:]])["model"] == ("mismatch", "org/m")


def test_what_no_line_shows_is_never_verified():
    assert verdicts([*ARGV, "--block-size", "128"])["block-size"][0] == "unreadable"
    assert {verdict for verdict, _ in verdicts(log="nothing\n").values()} == {"unreadable"}


def test_environment():
    env = {"A": "1", "B": "2", "VLLM_TYPO": "1"}
    found = verdicts(env=env, environ={"A": "1", "B": "3", "VLLM_TYPO": "1"})
    assert found["env A"] == ("verified", "1") and found["env B"] == ("mismatch", "3")
    assert found["env VLLM_TYPO"] == ("mismatch", "unknown to this engine")
    assert verdicts(env={"A": "1"}, environ={})["env A"] == ("mismatch", None)
    assert verdicts(env={"A": "1"})["env A"] == ("unreadable", None)


def test_effective_settings_and_pid():
    found = effective(LOG)
    assert (found["kv-cache-tokens"], found["draft-tokens"], found["quantization"], found["version"]) == (
        783568, 5, None, "0.32.0")
    assert server_pid(LOG) == 77 and server_pid("x") is None


def test_a_claimed_feature_needs_its_line():
    env = {"VLLM_ROCM_MONO_DECODE": "1"}
    proof = "INFO DSv4.1 mono decode layer active (decode steps of <= 48 rows)\n"
    (item,) = features(proof, env)
    assert item.verdict == "verified" and "48 rows" in item.evidence
    (item,) = features("INFO DSv4.1 mono decode off for some layers: x\n", env)
    assert item.verdict == "unreadable"
    assert features(proof, {}) == []


def test_flags():
    words = ["--a", "1", "--no-b", "--c", "x", "y", "--d"]
    assert wanted_flags(words) == {"a": 1, "b": False, "c": ["x", "y"], "d": True}
    assert same(0.9, 0.9) and same(1, 1.0) and not same(True, 1) and same({"x": 1}, {"x": 1, "y": 2})
