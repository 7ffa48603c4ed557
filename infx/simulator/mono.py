"""Mono decode in the simulator: whether a deployment can run it (all reasons at once) and which steps do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infx.predict.steptime import Saving
from infx.schema.catalog import ModelFacts
from infx.simulator.scheduler import NOTHING, Engage, Engagement

FLAG = "VLLM_ROCM_MONO_DECODE"
QWEN = "VLLM_ROCM_QWEN38_DENSE_MONO_"


@dataclass(frozen=True)
class Setup:
    """What mono decode asks of a deployment."""

    architecture: str
    arch: str
    tp: int
    pp: int
    dp: int
    expert_parallel: bool
    eplb: bool
    lora: bool
    kv_connector: bool
    drafts: int
    moe_backend: str
    kv_cache_dtype: str
    piecewise: bool


def truthy(value: str | None) -> bool:
    """How the engine reads a boolean environment variable."""
    return (value or "").strip().lower() in ("1", "true")


def refusals(setup: Setup, env: Mapping[str, str]) -> list[str]:
    """Every reason why this deployment cannot run mono decode; empty where it can."""
    if setup.architecture == "deepseek_v41":
        checks = [
            (setup.arch != "gfx950", f"the GPU is {setup.arch}, not CDNA4 (gfx950)"),
            (setup.tp not in (2, 4), f"tensor parallel size is {setup.tp}, not 2 or 4"),
            (setup.expert_parallel, "expert parallelism is on"),
            (setup.eplb, "EPLB is on"),
            (setup.dp > 1, f"data parallel size is {setup.dp}"),
            (truthy(env.get("VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4")), "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4 is set"),
            (setup.moe_backend not in ("auto", "aiter"), f"MoE backend {setup.moe_backend} is not AITER_MXFP4_BF16"),
            (not truthy(env.get("VLLM_ROCM_USE_AITER")), "VLLM_ROCM_USE_AITER is not set, so no AITER MoE backend"),
        ]
    elif setup.architecture == "qwen3_5_text":
        checks = [
            (setup.arch != "gfx950", f"the GPU is {setup.arch}, not gfx950"),
            (setup.tp not in (1, 2), f"tensor parallel size is {setup.tp}, not 1 or 2"),
            (setup.pp > 1, f"pipeline parallel size is {setup.pp}"),
            (setup.lora, "LoRA is on"),
            (setup.kv_connector, "a KV connector is configured"),
            (setup.drafts > 0, f"speculative tokens are on ({setup.drafts})"),
        ]
    else:
        return [f"model type {setup.architecture} has no mono decode"]
    return [reason for wrong, reason in checks if wrong]


@dataclass(frozen=True)
class Mono:
    """The step rule and the log lines that prove it: ``lines`` by feature name, ``notes`` printed at start."""

    engage: Engage
    lines: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def build(setup: Setup, env: Mapping[str, str], constants: Mapping, facts: ModelFacts) -> Mono:
    """The rule for a deployment that can run it; ``constants``: ``mono`` of configs/simulator.yaml."""
    if setup.architecture == "deepseek_v41":
        return _deepseek(setup, constants, facts)
    return _qwen(setup, env, constants)


def _deepseek(setup: Setup, constants: Mapping, facts: ModelFacts) -> Mono:
    cap = 48
    whole, ffn = int(facts.number("mono-whole-layers")), int(facts.number("mono-ffn-layers"))
    if setup.kv_cache_dtype not in ("auto", "fp8_ds_mla"):
        whole, ffn = 0, whole + ffn
    layers = whole + ffn
    share = (whole * constants["whole-layer-share"] + ffn * constants["ffn-share"]) / layers
    engaged = Engagement(("mono",), Saving(share, constants["moe-row-us"] * 1e-6))

    def engage(rows: int, has_prompt: bool, captured: bool) -> Engagement:
        if has_prompt or rows > cap or (captured and setup.piecewise):
            return NOTHING
        return engaged

    head = "DSv4.1 mono decode"
    lines = [f"{head} FFN launch active (decode steps of <= {cap} rows)"]
    if whole:
        lines.insert(0, f"{head} layer active (decode steps of <= {cap} rows)")
    notes = (
        f"{head}: the whole standard backbone layers ({whole} of {layers})",
        f"{head}: the FFN launch for layers with an Engram, compressor or indexer of their own ({ffn} of {layers})",
    )
    return Mono(engage, {"mono": tuple(lines)}, notes)


def _qwen(setup: Setup, env: Mapping[str, str], constants: Mapping) -> Mono:
    built, default = (8, 4) if setup.tp == 1 else (16, 8)
    notes: list[str] = []
    caps = []
    for kernel in ("K1", "K2"):
        name = f"{QWEN}{kernel}_MAX_ROWS"
        asked = int(env.get(name, default))
        cap = min(max(asked, 1), built)
        if cap != asked:
            notes.append(f"{name}={asked} is outside 1..{built} and was clamped to {cap}")
        caps.append(cap)
    k2_on = setup.tp == 1 or truthy(env.get(f"{QWEN}K2", "1"))
    tables = constants["dense"]

    def engage(rows: int, has_prompt: bool, captured: bool) -> Engagement:
        if has_prompt or (captured and setup.piecewise):
            return NOTHING
        names = [name for name, cap, on in (("k1", caps[0], True), ("k2", caps[1], k2_on)) if on and rows <= cap]
        share = sum(tables[f"{name}-share"] for name in names)
        row = sum(tables[f"{name}-row-us"] for name in names) * 1e-6 / setup.tp
        return Engagement(tuple(names), Saving(share, row)) if names else NOTHING

    lines = {
        name: (f"Qwen3.8 dense mono decode {name.upper()} active (decode steps of <= {cap} rows)",)
        for name, cap in zip(("k1", "k2"), caps, strict=True)
    }
    return Mono(engage, lines, tuple(notes))
