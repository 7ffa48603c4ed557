"""From argv and environment to an engine core, or the refusal that the real engine would exit with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from infx.errors import EngineError
from infx.predict.steptime import StepTimer
from infx.schema.catalog import Catalog, HardwareFacts, ModelFacts
from infx.simulator import mono
from infx.simulator.argv import Arguments
from infx.simulator.facts import GIB, Constants, device_shape, find_model, model_shape
from infx.simulator.kvcache import KVCache
from infx.simulator.scheduler import Limits, Scheduler
from infx.simulator.specdec import Acceptance, curve_rates, synthetic_rates

QUICK_REDUCE = "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION"
QUICK_REDUCE_CHOICES = ["FP", "INT8", "INT6", "INT4", "NONE"]
REJECTION = ("standard", "synthetic", "block")


class Refused(EngineError):
    """The engine would not start: ``lines`` is what it prints before it exits with status 1."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True)
class Deployment:
    """One engine as configured: names, limits, the parts of its scheduler, and what its log says at start."""

    names: tuple[str, ...]
    model: ModelFacts
    hardware: HardwareFacts
    tp: int
    limits: Limits
    block_size: int
    blocks: int
    weight_gib: float
    kv_gib: float
    prefix_caching: bool
    enforce_eager: bool
    captured_rows: int
    quick_reduce: str
    timer: StepTimer
    acceptance: Acceptance | None
    speculative: dict | None
    mono: mono.Mono | None
    warnings: tuple[str, ...]

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.blocks * self.block_size

    def cache_info(self) -> dict[str, object]:
        """Labels of vLLM's ``cache_config_info``."""
        return {
            "block_size": self.block_size,
            "enable_prefix_caching": self.prefix_caching,
            "num_gpu_blocks": self.blocks,
            "kv_cache_size_tokens": self.kv_tokens,
            "num_cpu_blocks": None,
        }

    def scheduler(self) -> Scheduler:
        """A fresh engine core."""
        cache = KVCache(self.blocks, self.block_size, prefix_caching=self.prefix_caching)
        engage = self.mono.engage if self.mono else None
        return Scheduler(self.limits, cache, self.timer, acceptance=self.acceptance, engage=engage)


def resolve(arguments: Arguments, env: Mapping[str, str], catalog: Catalog, constants: Constants) -> Deployment:
    """The deployment of a command line; ``Refused`` with the engine's own words where it would not start."""
    facts, gpu = _facts(arguments, env, catalog)
    tp = _parallel(arguments, gpu)
    limits = _limits(arguments, facts, gpu)
    speculative, acceptance = _speculative(arguments, catalog, constants, facts)
    drafts = acceptance.drafts if acceptance else 0
    quick = env.get(QUICK_REDUCE, "NONE")
    if quick not in QUICK_REDUCE_CHOICES:
        raise Refused(f"ValueError: Invalid value '{quick}' for {QUICK_REDUCE}. Valid options: {QUICK_REDUCE_CHOICES}.")
    decode, warnings = _mono(arguments, env, catalog, constants, facts, gpu, drafts)
    block_size = int(arguments["block_size"] or (128 if gpu.arch == "cpu" else 16))
    kv_scale = 0.5 if str(arguments["kv_cache_dtype"]).startswith("fp8") and not _shared(facts) else 1.0
    blocks, weight_gib, kv_gib = _memory(arguments, env, catalog, facts, gpu, limits, block_size, kv_scale)
    eager = bool(arguments["enforce_eager"])
    captured = 0 if eager else _captured_rows(arguments, limits, drafts)
    ratio, ratio_from = _compression(catalog, constants, quick, tp)
    timer = StepTimer(
        model_shape(facts, kv_scale=kv_scale), device_shape(gpu, facts.quantization), tp, constants.for_arch(gpu.arch),
        reduce_ratio=ratio, reduce_ratio_from=ratio_from, captured_rows=captured,
    )  # fmt: skip
    return Deployment(
        names=tuple(arguments["served_model_name"] or [arguments["model"]]),
        model=facts, hardware=gpu, tp=tp, limits=limits, block_size=block_size, blocks=blocks,
        weight_gib=weight_gib, kv_gib=kv_gib, prefix_caching=bool(arguments["enable_prefix_caching"]),
        enforce_eager=eager, captured_rows=captured, quick_reduce=quick, timer=timer, acceptance=acceptance,
        speculative=speculative, mono=decode, warnings=warnings,
    )  # fmt: skip


def _facts(arguments: Arguments, env: Mapping[str, str], catalog: Catalog) -> tuple[ModelFacts, HardwareFacts]:
    name = str(arguments["model"])
    facts = find_model(catalog, name)
    if facts is None:
        raise Refused(
            f"OSError: {name} is not a local folder and is not a valid model identifier listed on "
            "'https://huggingface.co/models'",
            f"infx-sim knows: {', '.join(sorted(catalog.models))}, or a folder with a config.json",
        )
    key = env.get("INFX_SIM_HARDWARE") or "mi355x"
    if key not in catalog.hardware:
        known = ", ".join(sorted(catalog.hardware))
        raise Refused(f"RuntimeError: No such GPU: INFX_SIM_HARDWARE={key}. infx-sim knows: {known}")
    try:
        model_shape(facts)
    except KeyError as error:
        raise Refused(f"RuntimeError: infx-sim lacks a fact of {facts.key} in configs/models.yaml: {error}") from None
    return facts, catalog.hardware[key]


def _shared(facts: ModelFacts) -> bool:
    return model_shape(facts).kv_shared


def _compression(catalog: Catalog, constants: Constants, codec: str, tp: int) -> tuple[float, float]:
    """(bytes sent ÷ bytes reduced, message bytes from which that holds) of an all-reduce codec."""
    feature = catalog.features.get("quick-reduce")
    floors = {}
    for launch in feature.launches.values() if feature else ():
        floors.update(launch.floor.bytes_by.get(codec, {}) if launch.floor else {})
    if str(tp) not in floors:
        return 1.0, 0.0
    return constants.quick_reduce["ratio"][codec], float(floors[str(tp)])


def _parallel(arguments: Arguments, gpu: HardwareFacts) -> int:
    tp = int(arguments["tensor_parallel_size"])
    pp, dp = int(arguments["pipeline_parallel_size"]), int(arguments["data_parallel_size"])
    if min(tp, pp, dp) < 1:
        raise Refused("ValueError: parallel sizes must be positive")
    if pp > 1 or dp > 1:
        raise Refused("NotImplementedError: infx-sim has no pipeline or data parallelism")
    if tp > gpu.gpus_per_node:
        raise Refused(
            f"ValueError: World size ({tp}) is larger than the number of available GPUs ({gpu.gpus_per_node}) in this "
            "node."
        )
    return tp


def _limits(arguments: Arguments, facts: ModelFacts, gpu: HardwareFacts) -> Limits:
    large = gpu.number("memory-bytes") >= 70 * GIB
    length = arguments["max_model_len"] or facts.context
    if length > facts.context:
        raise Refused(
            f"Value error, User-specified max_model_len ({length}) is greater than the derived max_model_len "
            f"(max_position_embeddings={facts.context} or model_max_length=None in model's config.json). To allow "
            "overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1."
        )
    tokens = arguments["max_num_batched_tokens"] or (8192 if large else 2048)
    seqs = arguments["max_num_seqs"] or (1024 if large else 256)
    if tokens < seqs:
        raise Refused(
            f"Value error, max_num_batched_tokens ({tokens}) must be greater than or equal to max_num_seqs ({seqs})."
        )
    if not arguments["enable_chunked_prefill"] and tokens < length:
        raise Refused(
            f"Value error, max_num_batched_tokens ({tokens}) is smaller than max_model_len ({length}). This "
            "effectively limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer "
            "sequences."
        )
    return Limits(int(seqs), int(tokens), int(length))


def _speculative(
    arguments: Arguments, catalog: Catalog, constants: Constants, facts: ModelFacts
) -> tuple[dict | None, Acceptance | None]:
    config = arguments["speculative_config"]
    if config is None:
        return None, None
    if not isinstance(config, dict):
        raise Refused("ValidationError: 1 validation error for SpeculativeConfig: a JSON object is needed")
    drafts = config.get("num_speculative_tokens")
    if not isinstance(drafts, int) or isinstance(drafts, bool) or drafts < 1:
        raise Refused(f"Value error, num_speculative_tokens must be greater than zero, got {drafts}")
    method = config.get("rejection_sample_method", "standard")
    if method not in REJECTION:
        raise Refused(f"ValidationError: rejection_sample_method: Input should be one of {REJECTION}, got {method!r}")
    rates, length = config.get("synthetic_acceptance_rates"), config.get("synthetic_acceptance_length")
    if method != "synthetic":
        curve = _curve(catalog, facts, config)
        chance = constants.acceptance_chance
        found = curve_rates(curve, drafts) if curve else [chance ** (at + 1) for at in range(drafts)]
        return config, Acceptance(found, int(arguments["seed"]))
    if (rates is None) == (length is None):
        raise Refused(
            "ValueError: rejection_sample_method='synthetic' needs exactly one of synthetic_acceptance_rates and "
            "synthetic_acceptance_length"
        )
    try:
        if rates is not None and len(rates) != drafts:
            raise ValueError(f"synthetic_acceptance_rates must have {drafts} entries, got {len(rates)}")
        return config, Acceptance(rates or synthetic_rates(float(length), drafts), int(arguments["seed"]))
    except (ValueError, TypeError) as error:
        raise Refused(f"ValueError: {error}") from None


def _curve(catalog: Catalog, facts: ModelFacts, config: Mapping) -> dict[int, float]:
    """The golden curve of a method, by drafts; that with thinking where there are two (argv does not say)."""
    found: dict[int, float] = {}
    for (drafts, method, sampling, thinking), length in sorted(catalog.golden.table(facts.key).items(), key=str):
        if method == config.get("method") and sampling in (None, config.get("draft_sample_method")):
            found[drafts] = length if thinking == "thinking-on" else found.get(drafts, length)
    return found


def _mono(
    arguments: Arguments, env: Mapping[str, str], catalog: Catalog, constants: Constants, facts: ModelFacts,
    gpu: HardwareFacts, drafts: int,
) -> tuple[mono.Mono | None, tuple[str, ...]]:  # fmt: skip
    if not mono.truthy(env.get(mono.FLAG)):
        return None, ()
    setup = mono.Setup(
        architecture=facts.architecture, arch=gpu.arch, tp=int(arguments["tensor_parallel_size"]),
        pp=int(arguments["pipeline_parallel_size"]), dp=int(arguments["data_parallel_size"]),
        expert_parallel=bool(arguments["enable_expert_parallel"]), eplb=bool(arguments["enable_eplb"]),
        lora=bool(arguments["enable_lora"]), kv_connector=arguments["kv_transfer_config"] is not None,
        drafts=drafts, moe_backend=str(arguments["moe_backend"]), kv_cache_dtype=str(arguments["kv_cache_dtype"]),
        piecewise=_piecewise(arguments["compilation_config"]),
    )  # fmt: skip
    reasons = mono.refusals(setup, env)
    if reasons:
        raise Refused(f"ValueError: {mono.FLAG}=1 cannot run on this deployment: {'; '.join(reasons)}.")
    return mono.build(setup, env, constants.mono, facts), ()


def _piecewise(config: object) -> bool:
    mode = config.get("cudagraph_mode") if isinstance(config, dict) else None
    return str(mode).upper() == "PIECEWISE"


def _captured_rows(arguments: Arguments, limits: Limits, drafts: int) -> int:
    sizes = arguments["cudagraph_capture_sizes"]
    if sizes:
        return max(int(size) for size in sizes)
    largest = arguments["max_cudagraph_capture_size"]
    return int(largest) if largest else min(512, limits.max_num_seqs * (1 + drafts) * 2)


def _memory(
    arguments: Arguments, env: Mapping[str, str], catalog: Catalog, facts: ModelFacts, gpu: HardwareFacts,
    limits: Limits, block_size: int, kv_scale: float,
) -> tuple[int, float, float]:  # fmt: skip
    """(blocks, weights in GiB per rank, KV room in GiB per rank)."""
    tp = int(arguments["tensor_parallel_size"])
    offload = bool((arguments["engram_config"] or {}).get("cpu_offload"))
    weights = facts.by_tp("weight-bytes-per-rank", tp) or facts.number("weight-bytes") / tp
    weights += 0.0 if offload else facts.number("engram-bytes", 0) / tp
    pool = facts.number("kv-pool-bytes", facts.number("kv-bytes", 0))
    share = pool if _shared(facts) else pool * kv_scale / tp
    bounded = catalog.images.has(env.get("INFX_SIM_IMAGE", ""), "vllm#58014")
    rows = 0 if bounded else limits.max_num_batched_tokens
    buffers = facts.number("logits-rows-bytes", 0) * rows * limits.max_model_len
    buffers += facts.number("companion-bytes-per-batched-token", 0) * limits.max_num_batched_tokens
    room = gpu.number("memory-bytes") * float(arguments["gpu_memory_utilization"]) - weights - buffers
    room -= facts.number("reserve-bytes", 0)
    if arguments["kv_cache_memory_bytes"]:
        room = float(arguments["kv_cache_memory_bytes"])
    if room <= 0:
        raise Refused(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine."
        )
    blocks = arguments["num_gpu_blocks_override"] or int(room / (share * block_size))
    if blocks * block_size < limits.max_model_len:
        raise Refused(
            f"ValueError: To serve at least one request with the models's max seq len ({limits.max_model_len}), "
            f"({limits.max_model_len * share / GIB:.2f} GiB KV cache is needed, which is larger than the available KV "
            f"cache memory ({room / GIB:.2f} GiB). Based on the available memory, the estimated maximum model length "
            f"is {blocks * block_size}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
            "initializing the engine."
        )
    return int(blocks), weights / GIB, room / GIB


def describe(config: dict | None) -> str:
    """A speculative configuration as the engine's start line shows it."""
    if config is None:
        return "None"
    shown = {"method": config.get("method"), "model": config.get("model")}
    return f"SpeculativeConfig({', '.join(f'{k}={json.dumps(v)}' for k, v in shown.items())}, " + (
        f"num_spec_tokens={config.get('num_speculative_tokens')})"
    )
