"""Deployments of the shipped facts, for the simulator's tests."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from infx.simulator.argv import parse
from infx.simulator.deployment import resolve
from infx.simulator.facts import load_facts
from infx.sources.tree import Packaged

sys.path.insert(0, str(Path(__file__).parent))  # seed_table, shared with the fit

FLASH = "deepseek-ai/DeepSeek-V4.1-Flash"
QWEN = "amd/Qwen3.8-27B-Quark-AWQ-MXFP4"
IMAGE = "vllm/vllm-openai-rocm:nightly-rocm100-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe"
SPECULATIVE = (
    '{"method":"dspark","num_speculative_tokens":5,"draft_sample_method":"probabilistic",'
    '"rejection_sample_method":"synthetic","synthetic_acceptance_length":3.51,"enable_adaptive_verification":false}'
)
HEADLINE = [
    "--no-swa-bounded-replay", "--block-size", "128", "--gpu-memory-utilization", "0.9", "--moe-backend", "aiter",
    "--max-num-batched-tokens", "16384", "--max-cudagraph-capture-size", "1024", "--speculative-config", SPECULATIVE,
]  # fmt: skip
AITER = {"VLLM_ROCM_USE_AITER": "1", "INFX_SIM_HARDWARE": "mi355x", "INFX_SIM_IMAGE": IMAGE}


@pytest.fixture(scope="session")
def facts():
    return load_facts(Packaged())


@pytest.fixture
def deploy(facts):
    """``deploy(model, *flags, **env)`` → Deployment."""
    catalog, constants = facts

    def make(model: str, *flags: str, **env: str):
        return resolve(parse(["serve", model, *flags]), env, catalog, constants)

    return make


@pytest.fixture
def headline(deploy):
    """``headline(tp, **env)``: the headline recipe's server at a tensor parallel size."""

    def make(tp: int = 2, *flags: str, **env: str):
        offload = '{"cpu_offload":%s}' % ("true" if tp == 2 else "false")
        return deploy(FLASH, *HEADLINE, "-tp", str(tp), "--engram-config", offload, *flags, **{**AITER, **env})

    return make


@pytest.fixture(scope="session")
def real_names():
    """What a real vLLM exposes, prints and accepts."""
    return tomllib.loads((Path(__file__).parent / "vllm_names.toml").read_text())
