"""Why an engine died: one table of what logs say, from the most telling to the least. Pure text work."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infx.engines.loglines import clean_lines


@dataclass(frozen=True)
class Cause:
    """One kind of death: ``code`` (stable), the pattern of a line that proves it, and what to do."""

    code: str
    pattern: re.Pattern[str]
    advice: str


def _cause(code: str, pattern: str, advice: str) -> Cause:
    return Cause(code, re.compile(pattern, re.IGNORECASE), advice)


CAUSES = (
    _cause("unknown-flag", r"error: unrecognized arguments|no such option", "correct the serve key, or pin an image "
           "that knows it"),
    _cause("bad-env-value", r"Invalid value '.*' for \w+\. Valid options", "correct the value in `env`"),
    _cause("feature-refused", r"VLLM_ROCM_MONO_DECODE|mono decode .*(cannot|refus|not support)", "unset the feature, "
           "or meet the conditions that the line lists"),
    _cause("context-too-long", r"max_model_len \(\d+\) is greater than the derived", "lower max-model-len"),
    _cause("kv-too-small", r"KV cache is needed, which is larger than|No available memory for the cache blocks",
           "lower max-model-len, raise gpu-memory-utilization, or take more GPUs"),
    _cause("memory-in-use", r"Free memory on device .* (is )?less than desired", "another process holds device "
           "memory; see `infx runner check`"),
    _cause("hbm-exhausted", r"OutOfMemoryError|(HIP|CUDA) out of memory|OUT_OF_MEMORY",
           "lower gpu-memory-utilization or the batch sizes, or take more GPUs"),
    _cause("rate-limited", r"429 (Client Error|Too Many Requests)", "wait, log in, or bring the files"),
    _cause("gated-download", r"GatedRepoError|gated repo|401 Client Error", "ask for access and pass the token by name "
           "in the profile's pass-env"),
    _cause("port-in-use", r"address already in use", "start again: a port is taken anew for every start"),
    _cause("capture-fault", r"Invalid FlyDSL kernel name|(fault|error|exception).*(during|in) .*graph capture|"
           r"operation not permitted when stream is capturing|capture.*invalidated", "the kernel cannot be captured at "
           "this shape; see known failures in configs/engine-features.yaml"),
    _cause("gpu-fault", r"Memory access fault by GPU|HSA_STATUS_ERROR|illegal memory access|unspecified launch failure|"
           r"aperture violation|(HIP|CUDA) error", "a kernel faulted on the device"),
    _cause("no-device", r"No (HIP|CUDA) GPUs are available|Unable to open /dev/kfd|no CUDA-capable device",
           "give the container the devices and groups of the profile"),
    _cause("hung-collective", r"RPC call to .* timed out|Watchdog caught collective operation timeout|"
           r"sample_tokens.*timed out|(NCCL|RCCL).*timeout", "a collective did not return; look at the other ranks"),
    _cause("died-at-first-request", r"EngineCore encountered an issue|EngineDeadError", "the engine core died while "
           "it served; its own lines stand above"),
    _cause("never-initialised", r"Engine core initialization failed|EngineCore failed to start|"
           r"Server died before becoming healthy", "the cause stands above in the log"),
)


@dataclass(frozen=True)
class Verdict:
    """A classified death: ``code``, the ``line`` that proves it (empty without one) and ``advice``."""

    code: str
    line: str
    advice: str


def classify(log: str, *, exit_code: int | None = None, signal: int | None = None, out_of_memory: bool = False
             ) -> Verdict:
    """Classify a death from its log and exit state.

    The daemon's word on memory comes first, then the first cause of the table that a line of the log proves,
    then the exit state.
    """
    if out_of_memory:
        return Verdict("host-memory-exhausted", "", "the kernel killed it; give the host or the container more memory")
    lines = clean_lines(log)
    for cause in CAUSES:
        for line in lines:
            if cause.pattern.search(line):
                return Verdict(cause.code, line[:400], cause.advice)
    if signal == 9:
        return Verdict("killed-from-outside", "", "somebody or the kernel's memory killer sent SIGKILL; see dmesg")
    if signal is not None:
        return Verdict("ended-by-signal", "", f"signal {signal} ended it")
    if exit_code:
        return Verdict("exited", lines[-1][:400] if lines else "", "see the end of its log")
    return Verdict("unknown", lines[-1][:400] if lines else "", "see the end of its log")
