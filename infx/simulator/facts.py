"""What the simulator knows: models and devices of the catalog in the shape that step times need, and its constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath

from infx.errors import InputError
from infx.findings import errors
from infx.predict.roofline import DeviceShape, ModelShape
from infx.predict.steptime import Overheads
from infx.schema.catalog import Catalog, HardwareFacts, ModelFacts
from infx.sources.catalog import load_catalog
from infx.sources.tree import Tree
from infx.sources.yamlio import load

CONSTANTS = "configs/simulator.yaml"
GIB = 2.0**30


@dataclass(frozen=True)
class Constants:
    """configs/simulator.yaml; the fields are its sections."""

    overheads: Mapping[str, Mapping]
    quick_reduce: Mapping
    launches: Mapping[str, Mapping]
    acceptance_chance: float
    layer_launches: Mapping[str, float]

    def for_arch(self, arch: str, model: str = "") -> Overheads:
        """Overheads of a GPU architecture (``other`` where it has no row of its own) for a model's architecture."""
        row = self.overheads.get(arch) or self.overheads["other"]
        names = {field.name for field in fields(Overheads)}
        found: dict[str, float] = {}
        for key, value in row.items():
            name = key.replace("-", "_")
            if name.endswith("_us"):
                found[name[:-3]] = value * 1e-6
            elif name in names:
                found[name] = value
        scale = self.layer_launches.get(model, 1.0)
        found["launch_graph"] *= scale
        found["launch_mixed"] *= scale
        return Overheads(**found)


def load_facts(tree: Tree) -> tuple[Catalog, Constants]:
    """Catalog and constants of a repository; InputError where a file of configs/ is wrong."""
    catalog, findings = load_catalog(tree)
    document, more = load(tree.read_bytes(CONSTANTS), CONSTANTS)
    wrong = errors([*findings, *more])
    if wrong or document is None:
        raise InputError("configs/ cannot be read", where=CONSTANTS, hint="\n".join(str(one) for one in wrong[:5]))
    raw = document.value
    chance = raw["acceptance-chance"]["default"]
    return catalog, Constants(raw["overheads"], raw["quick-reduce"], raw["launches"], chance, raw["layer-launches"])


def find_model(catalog: Catalog, name: str, config: Mapping | None = None) -> ModelFacts | None:
    """A model by key, hub name or path, or counted from ``config`` (a config.json); None where all that fails."""
    for facts in catalog.models.values():
        if name in (facts.key, facts.hub, facts.path):
            return facts
        if facts.path and PurePath(name).parts[-len(PurePath(facts.path).parts) :] == PurePath(facts.path).parts:
            return facts
    return from_config(PurePath(name).name, config) if config else None


def model_shape(facts: ModelFacts, *, kv_scale: float = 1.0) -> ModelShape:
    """The facts that a step's time depends on; ``kv_scale`` for a KV cache in fewer bits. KeyError where one lacks."""
    number = facts.number
    layers = int(number("layers"))
    span = int(number("attention-span", 0)) or None
    kv = number("kv-bytes") if span is None else layers * _latent_bytes(facts)
    return ModelShape(
        layers=layers,
        prompt_layers=int(number("prompt-layers", layers)),
        hidden=int(number("hidden")),
        dense_bytes=number("dense-bytes"),
        active_decode=number("active-decode"),
        active_prompt=number("active-prompt", number("active-decode")),
        expert_bytes=number("expert-bytes", 0),
        experts=int(number("experts", 0)),
        experts_per_token=int(number("experts-per-token", 0)),
        kv_bytes=kv * kv_scale,
        attention_span=span,
        index_bytes=number("index-bytes", 0),
        state_bytes=2.0 * number("state-bytes", 0),
        pair_flops=number("pair-flops", 0),
        index_flops=number("index-flops", 0),
        kv_shared=_flag(facts, "kv-shared"),
        draft_layers=int(number("draft-layers", 0)),
        draft_bytes=number("draft-bytes", 0),
        draft_expert_bytes=number("draft-expert-bytes", 0),
        draft_experts=int(number("draft-experts", 0)),
        draft_experts_per_token=int(number("draft-experts-per-token", 0)),
        draft_active=number("draft-active", 0),
    )


def _latent_bytes(facts: ModelFacts) -> float:
    """Bytes that sparse attention reads per attended token and layer: the FP8 latent, 64 bf16 positions, scales."""
    return facts.number("head-dim") + 72.0


def _flag(facts: ModelFacts, name: str) -> bool:
    fact = facts.known.get(name)
    return bool(fact and fact.value)


def device_shape(facts: HardwareFacts, quantization: str) -> DeviceShape:
    """One GPU. AMD nodes are a full mesh, so a pair has one of its links; elsewhere a pair has the whole port."""
    peak = facts.number("bf16-flops") if quantization == "bf16" else facts.number("fp8-flops", 0)
    return DeviceShape(
        memory_bytes_s=facts.number("memory-bandwidth"),
        peak_flops=peak or facts.number("bf16-flops"),
        link_bytes_s=facts.number("link-bandwidth") / max(1, facts.gpus_per_node - 1 if facts.vendor == "amd" else 1),
        memory_bytes=facts.number("memory-bytes"),
        mesh=facts.vendor == "amd",
    )


def from_config(key: str, config: Mapping) -> ModelFacts:
    """A dense decoder in 16-bit weights, counted from its Hugging Face config.json."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    head = config.get("head_dim") or hidden // heads
    body = layers * (hidden * head * (2 * heads + 2 * kv_heads) + 3 * hidden * config["intermediate_size"])
    table = config["vocab_size"] * hidden
    kv = 4 * layers * kv_heads * head
    values = {
        "layers": layers, "hidden": hidden, "vocabulary": config["vocab_size"], "first-safe-id": 0,
        "last-safe-id": config["vocab_size"] - 1, "context": config.get("max_position_embeddings", 32768),
        "weight-bytes": 2 * (body + 2 * table), "dense-bytes": 2 * (body + table), "active-decode": body + table,
        "active-prompt": body, "kv-bytes": kv, "kv-pool-bytes": kv, "pair-flops": 4 * heads * head * layers,
    }  # fmt: skip
    return ModelFacts.model_validate(
        {
            "key": key, "path": key, "architecture": config.get("model_type", "unknown"), "quantization": "bf16",
            "status": "local", "facts": [{"source": "config.json", "assumed": True, "values": values}],
        }
    )  # fmt: skip
