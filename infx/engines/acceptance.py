"""Owns how engines spell a synthetic acceptance length, those that infx does not start included.

An acceptance length (AL) counts the token that verification adds. vLLM, SGLang and ATOM take it as it is; TensorRT-LLM
counts accepted drafts alone, one less. SGLang needs its method and token mode beside it: without them it draws lengths
around another mean, or yields tokens that no draft proposed.
Sources: vLLM's SpeculativeConfig; SGLang's environment variables; TensorRT-LLM's speculative interface
(TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS); ATOM's server arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def vllm(length: float) -> dict[str, str | float]:
    """Keys of vLLM's ``--speculative-config``."""
    return {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": length}


def sglang(length: float) -> dict[str, str]:
    """Environment of SGLang."""
    return {"SGLANG_SIMULATE_ACC_LEN": f"{length:g}", "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
            "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token"}  # fmt: skip


def tensorrt_llm(length: float) -> dict[str, str]:
    """Environment of TensorRT-LLM: accepted drafts, the verified token not among them. ValueError below 1."""
    if length < 1:
        raise ValueError(f"an acceptance length of {length:g} is below 1, the token that verification adds")
    return {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": f"{round(length - 1, 6):g}"}


def atom(length: float) -> dict[str, str]:
    """Argument of ATOM's server."""
    return {"--spec-decode-acceptance-length": f"{length:g}"}


SPELLINGS: Mapping[str, Callable[[float], Mapping[str, object]]] = {
    "vllm": vllm, "sglang": sglang, "tensorrt-llm": tensorrt_llm, "atom": atom,
}
"""Engine → its settings for an acceptance length."""


def spelled(length: float) -> dict[str, str]:
    """Engine → its settings as one line, ``NAME=value``."""
    return {name: " ".join(f"{key}={value}" for key, value in spell(length).items())
            for name, spell in SPELLINGS.items()}  # fmt: skip
