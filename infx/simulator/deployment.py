"""From argv and environment to an engine core, or the refusal that the real engine would exit with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infx.errors import EngineError
from infx.predict import deployment as predicted
from infx.predict.capture import capture_sizes
from infx.predict.defaults import max_model_len, max_num_batched_tokens, max_num_seqs
from infx.predict.features import RUNS, Engagement, evaluate, failures
from infx.predict.memory import Budget, budget
from infx.predict.steptime import StepTimer
from infx.schema.catalog import Catalog, HardwareFacts, ModelFacts
from infx.simulator import mono
from infx.simulator.argv import Arguments
from infx.simulator.facts import GIB, Constants, device_shape, find_model, model_shape
from infx.simulator.flags import FLAGS
from infx.simulator.kvcache import KVCache
from infx.simulator.scheduler import Limits, Scheduler
from infx.simulator.specdec import Acceptance
from infx.simulator.speculation import NotAccepted, acceptance, predicted_keys

QUICK_REDUCE = "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION"
QUICK_REDUCE_CHOICES = ["FP", "INT8", "INT6", "INT4", "INT3", "NONE"]


class Refused(EngineError):
    """The engine would not start: ``lines`` is what it prints before it exits with status 1."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True)
class Deployment:
    """One engine as configured: names, limits, the parts of its scheduler, and what its log says at start."""

    names: tuple[str, ...]
    facts: predicted.Deployment
    limits: Limits
    block_size: int
    blocks: int
    memory: Budget
    prefix_caching: bool
    captured_rows: int
    quick_reduce: str
    timer: StepTimer
    acceptance: Acceptance | None
    features: mono.Features

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
        return Scheduler(self.limits, cache, self.timer, acceptance=self.acceptance, engage=self.features.engage)


def resolve(
    arguments: Arguments, env: Mapping[str, str], catalog: Catalog, constants: Constants, config: Mapping | None = None
) -> Deployment:
    """The deployment of a command line; ``Refused`` with the engine's own words where it would not start.

    ``config``: the config.json of a local model folder, where MODEL is one that the catalog does not know.
    """
    model, hardware = _facts(arguments, env, catalog, config)
    facts = _predicted(arguments, env, catalog, model, hardware)
    _check_parallel(facts)
    quick = facts.variable(QUICK_REDUCE) or "NONE"
    if quick not in QUICK_REDUCE_CHOICES:
        raise Refused(f"ValueError: Invalid value '{quick}' for {QUICK_REDUCE}. Valid options: {QUICK_REDUCE_CHOICES}.")
    limits = _limits(arguments, facts)
    config = arguments["speculative_config"]
    try:
        accepted = acceptance(config, catalog, model.key, int(arguments["seed"]), constants.acceptance_chance)
    except NotAccepted as error:
        raise Refused(str(error)) from None
    engagement = evaluate(catalog.features.values(), facts)
    refused = mono.refusals(engagement)
    if refused:
        raise Refused(*(f"ValueError: {text}." for text in refused))
    known = failures(catalog.failures.values(), facts)
    if known:
        raise Refused(*(f"RuntimeError: {failure.what} ({failure.source})" for failure in known))
    block_size = int(arguments["block_size"] or (128 if hardware.arch == "cpu" else 16))
    room = budget(facts)
    sizes = capture_sizes(facts)
    captured = sizes[-1] if sizes else 0
    return Deployment(
        names=tuple(arguments["served_model_name"] or [arguments["model"]]),
        facts=facts, limits=limits, block_size=block_size,
        blocks=_blocks(arguments, env, facts, room, limits, block_size), memory=room,
        prefix_caching=bool(arguments["enable_prefix_caching"]), captured_rows=captured, quick_reduce=quick,
        timer=_timer(facts, engagement, constants, quick, captured), acceptance=accepted,
        features=mono.build(engagement, facts, constants.launches),
    )  # fmt: skip


def _facts(
    arguments: Arguments, env: Mapping[str, str], catalog: Catalog, config: Mapping | None
) -> tuple[ModelFacts, HardwareFacts]:
    name = str(arguments["model"])
    facts = find_model(catalog, name, config)
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


def _predicted(
    arguments: Arguments, env: Mapping[str, str], catalog: Catalog, model: ModelFacts, hardware: HardwareFacts
) -> predicted.Deployment:
    serve = {}
    for flag, (_, default) in FLAGS.items():
        value = arguments[flag.replace("-", "_")]
        if value != default:
            serve[flag] = value
    image = env.get("INFX_SIM_IMAGE", "")
    tp, dp = int(arguments["tensor_parallel_size"]), int(arguments["data_parallel_size"])
    return predicted.Deployment(
        model=model, hardware=hardware, image=image, tp=tp, pp=int(arguments["pipeline_parallel_size"]), dp=dp,
        ep=tp * dp if arguments["enable_expert_parallel"] else 1, env=env, serve=serve,
        speculative=predicted_keys(arguments["speculative_config"]),
        images=catalog.images if image else mono.NewestImage(),
    )  # fmt: skip


def _check_parallel(facts: predicted.Deployment) -> None:
    if min(facts.tp, facts.pp, facts.dp) < 1:
        raise Refused("ValueError: parallel sizes must be positive")
    if facts.pp > 1 or facts.dp > 1:
        raise Refused("NotImplementedError: infx-sim has no pipeline or data parallelism")
    gpus = facts.hardware.gpus_per_node
    if facts.tp > gpus:
        raise Refused(
            f"ValueError: World size ({facts.tp}) is larger than the number of available GPUs ({gpus}) in this node."
        )


def _limits(arguments: Arguments, facts: predicted.Deployment) -> Limits:
    length, context = max_model_len(facts), facts.model.context
    tokens, seqs = max_num_batched_tokens(facts), max_num_seqs(facts)
    if length > context:
        raise Refused(
            f"Value error, User-specified max_model_len ({length}) is greater than the derived max_model_len "
            f"(max_position_embeddings={context} or model_max_length=None in model's config.json). To allow "
            "overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1."
        )
    if min(length, tokens, seqs) < 1:
        raise Refused("Value error, max_model_len, max_num_batched_tokens and max_num_seqs must be positive.")
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
    return Limits(seqs, tokens, length)


def _timer(
    facts: predicted.Deployment, engagement: Engagement, constants: Constants, codec: str, captured: int
) -> StepTimer:
    """Step times; an all-reduce is compressed from the size at which QuickReduce is used, if it is."""
    ratio = ratio_from = 0.0
    feature = engagement.features.get("quick-reduce")
    for launch in feature.launches if feature and feature.state in RUNS else ():
        if launch.state in RUNS and launch.floor is not None:
            ratio = constants.quick_reduce["ratio"][codec]
            ratio_from = launch.floor * facts.model.number("hidden") * 2.0
    scale = 0.5 if str(facts.serve.get("kv-cache-dtype", "auto")) in ("fp8", "fp8_e4m3", "fp8_e5m2") else 1.0
    return StepTimer(
        model_shape(facts.model, kv_scale=scale), device_shape(facts.hardware, facts.model.quantization), facts.tp,
        constants.for_arch(facts.hardware.arch, facts.model.architecture),
        reduce_ratio=ratio or 1.0, reduce_ratio_from=ratio_from, captured_rows=captured,
    )  # fmt: skip


def _blocks(
    arguments: Arguments, env: Mapping[str, str], facts: predicted.Deployment, room: Budget, limits: Limits, size: int
) -> int:
    """KV blocks: what memory leaves, or what a flag (or the CPU build's variable) says."""
    tokens = room.kv_tokens
    if tokens is None:
        missing = ", ".join(room.unknown) or "kv-pool-bytes"
        raise Refused(f"RuntimeError: infx-sim lacks facts of {facts.model.key}: {missing}")
    stated = arguments["kv_cache_memory_bytes"] or 0
    if facts.hardware.arch == "cpu" and not stated:
        stated = float(env.get("VLLM_CPU_KVCACHE_SPACE") or 0) * GIB
    per_token = room.left / tokens if tokens else facts.model.number("kv-pool-bytes")
    if stated:
        tokens = int(float(stated) / per_token)
    blocks = int(arguments["num_gpu_blocks_override"] or tokens // size)
    if blocks < 1:
        raise Refused(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine."
        )
    longest = limits.max_model_len
    if blocks * size < longest:
        raise Refused(
            f"ValueError: To serve at least one request with the models's max seq len ({longest}), "
            f"({longest * per_token / GIB:.2f} GiB KV cache is needed, which is larger than the available KV cache "
            f"memory ({blocks * size * per_token / GIB:.2f} GiB). Based on the available memory, the estimated maximum "
            f"model length is {blocks * size}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` "
            "when initializing the engine."
        )
    return blocks
