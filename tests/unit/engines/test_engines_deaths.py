"""Deaths by the line that proves them. Lines are written here after what engines print."""

from __future__ import annotations

import pytest

from infx.engines.deaths import CAUSES, classify

CORPUS = {
    "vllm: error: unrecognized arguments: --max-num-batched-tokns 16": "unknown-flag",
    "ValueError: Invalid value 'int4' for VLLM_ROCM_QUICK_REDUCE_QUANTIZATION. Valid options: ['FP', 'INT4'].":
        "bad-env-value",
    "Value error, User-specified max_model_len (999999) is greater than the derived max_model_len (40960)":
        "context-too-long",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.": "kv-too-small",
    "ValueError: To serve at least one request (36.0 GiB KV cache is needed, which is larger than the available":
        "kv-too-small",
    "ValueError: Free memory on device cuda:3 (14.66/178.36 GiB) on startup is less than desired GPU memory":
        "memory-in-use",
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 12.95 GiB.": "hbm-exhausted",
    "429 Too Many Requests: you have reached your 'api' rate limit.": "rate-limited",
    "OSError: You are trying to access a gated repo.": "gated-download",
    "OSError: [Errno 98] Address already in use": "port-in-use",
    "ValueError: Invalid FlyDSL kernel name: flydsl_moe1_afp4": "capture-fault",
    "Memory access fault by GPU node-5 (Agent handle: 0x1aa00000) on address 0x7f00. Reason: Unknown.": "gpu-fault",
    "Queue 0x7f Aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed": "gpu-fault",
    "RuntimeError: No HIP GPUs are available": "no-device",
    "TimeoutError: RPC call to sample_tokens timed out.": "hung-collective",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.": "died-at-first-request",
    "RuntimeError: Engine core initialization failed. See root cause above.": "never-initialised",
}


@pytest.mark.parametrize(("line", "code"), CORPUS.items(), ids=CORPUS.values())
def test_a_line_proves_its_cause(line, code):
    verdict = classify(f"INFO start\n(EngineCore pid=7) ERROR {line}\nINFO end\n", exit_code=1)
    assert verdict.code == code and line[:60] in verdict.line and verdict.advice


def test_every_cause_has_a_line():
    assert {cause.code for cause in CAUSES} - {"feature-refused"} == set(CORPUS.values())


def test_the_root_cause_wins_over_what_follows_from_it():
    log = "ERROR Engine core initialization failed. See root cause above.\nValueError: No available memory for the " \
          "cache blocks.\n"
    assert classify(log).code == "kv-too-small"


def test_exit_state_where_the_log_is_silent():
    assert classify("INFO fine\n", signal=9).code == "killed-from-outside"
    assert classify("INFO fine\n", signal=11).code == "ended-by-signal"
    assert classify("INFO fine\n", exit_code=3).code == "exited"
    assert classify("HIP out of memory", out_of_memory=True).code == "host-memory-exhausted"
    assert classify("", exit_code=0).code == "unknown"
