"""What vLLM takes where a recipe sets nothing: sizes by device memory, and how it expands graph capture sizes.

Source: vLLM 0.32.0, vllm/engine/arg_utils.py and vllm/config/vllm.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infx.predict.deployment import Deployment, as_count, as_number

GIB = 2**30


def max_num_seqs(deployment: Deployment) -> int:
    """Sequences that may run at once: the flag, or 1024 from 70 GiB of device memory, 256 below, 128 × ranks on CPU."""
    asked = as_count(deployment.serve.get("max-num-seqs"))
    if asked is not None:
        return asked
    if deployment.hardware.arch == "cpu":
        return 128 * deployment.tp * deployment.pp
    return 1024 if deployment.hardware.number("memory-bytes", 0) >= 70 * GIB else 256


def max_num_batched_tokens(deployment: Deployment) -> int:
    """Tokens of a step: the flag, or 16,384 from 160 GiB of device memory, 8,192 from 70, 2,048 below."""
    asked = as_count(deployment.serve.get("max-num-batched-tokens"))
    if asked is not None:
        return asked
    if deployment.hardware.arch == "cpu":
        return 2048 * deployment.tp * deployment.pp
    memory = deployment.hardware.number("memory-bytes", 0)
    return 16384 if memory >= 160 * GIB else 8192 if memory >= 70 * GIB else 2048


def max_model_len(deployment: Deployment) -> int:
    """Longest sequence: the flag, or the model's context."""
    asked = as_count(deployment.serve.get("max-model-len"))
    return asked if asked is not None and asked > 0 else deployment.model.context


def memory_utilization(deployment: Deployment) -> float:
    """Share of device memory that the engine may take: the flag, or 0.92."""
    asked = as_number(deployment.serve.get("gpu-memory-utilization"))
    return 0.92 if asked is None else asked


_BY_ROLE = {
    "sequence-cap": "max-num-seqs", "token-budget": "max-num-batched-tokens", "context-limit": "max-model-len",
    "memory-share": "gpu-memory-utilization", "capture-limit": "max-cudagraph-capture-size",
    "capture-list": "cudagraph-capture-sizes", "eager": "enforce-eager",
}


def predictable(serve: Mapping[str, Any], roles: Mapping[str, str | None]) -> dict[str, Any]:
    """``serve`` with every flag that has a role also under the name that predictions read; defaults stay vLLM's."""
    named = {_BY_ROLE[role]: serve[name] for name, role in roles.items() if role in _BY_ROLE and name in serve}
    return {**serve, **named}
