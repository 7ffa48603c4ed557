"""Facts with their sources: what configs/models.yaml and configs/hardware.yaml may state, each name with its unit."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from infx.schema.strict import Strict

FactValue = bool | int | float | str | list[int] | dict[str, float]

# name → unit and meaning. "by TP" tables have TP sizes as keys.
MODEL_FACTS: dict[str, str] = {
    "parameters": "count; weights of the served model without memory tables and drafter",
    "layers": "count; depth that a generated token passes",
    "prompt-layers": "count; depth that a prompt token passes, where it is less",
    "hidden": "width of the residual stream",
    "heads": "attention query heads",
    "kv-heads": "key-value heads; 1 for a shared latent",
    "head-dim": "width of a head",
    "ffn": "width of a dense feed-forward layer",
    "vocabulary": "token ids",
    "first-safe-id": "lowest id for random prompts (no special, control or image ids from here on)",
    "last-safe-id": "highest id for random prompts",
    "context": "tokens; longest sequence",
    "active-prompt": "parameters used per prompt token",
    "active-decode": "parameters used per generated token",
    "weight-bytes": "bytes of all weights that live on GPUs, memory tables left out",
    "weight-bytes-per-rank": "bytes by TP, where padding or replication makes it differ from an even split",
    "dense-bytes": "bytes that every step reads once (attention, dense or shared feed-forward, head)",
    "checkpoint-bytes": "bytes on disk",
    "experts": "routed experts of a layer",
    "experts-per-token": "routed experts that a token uses",
    "shared-experts": "experts that every token uses",
    "expert-bytes": "bytes of one routed expert of one layer, scales included",
    "engram-bytes": "bytes of the n-gram memory tables, scales included",
    "kv-bytes": "bytes of KV cache that one token of context adds, whole model",
    "kv-pool-bytes": "bytes of a rank's KV pool that one token takes, allocation and alignment included",
    "kv-shared": "true where every rank keeps the whole KV (a shared latent), false where heads split it",
    "kv-tokens-observed": "tokens of KV room that an engine reported, by layout",
    "kv-tokens-per-request-held": "tokens of KV room per request at which every published point held",
    "state-bytes": "bytes of constant state of one sequence",
    "window": "tokens of the sliding window of every layer",
    "attention-span": "tokens that a query attends to at most (sparse attention)",
    "index-bytes": "bytes of indexer keys that a decode row reads per token of context",
    "pair-flops": "FLOPs of attention per (query, context token) pair, all layers",
    "index-flops": "FLOPs of the indexer per (query, context token) pair, all layers",
    "logits-rows-bytes": "bytes of the indexer's logits workspace per row and token of max-model-len",
    "companion-bytes-per-batched-token": "bytes a rank of the indexer's other buffers per batched token",
    "reserve-bytes": "bytes a rank that activations, graphs and libraries take",
    "mono-whole-layers": "layers that mono decode runs whole",
    "mono-ffn-layers": "layers whose feed-forward alone mono decode runs",
    "linear-layers": "layers with constant state (linear attention)",
    "attention-layers": "layers with full attention",
    "draft-layers": "stages of the drafter",
    "draft-block": "tokens that one drafting pass proposes",
    "draft-parameters": "weights of the drafter",
    "draft-bytes": "bytes of the drafter that every draft pass reads, experts left out",
    "draft-expert-bytes": "bytes of one routed expert of one draft stage",
    "draft-experts": "routed experts of a draft stage",
    "draft-experts-per-token": "routed experts of a draft stage that a token uses",
    "draft-active": "parameters used per drafted row",
}

HARDWARE_FACTS: dict[str, str] = {
    "memory-bytes": "bytes of device memory that the driver reports",
    "memory-bandwidth": "bytes/s of device memory",
    "bf16-flops": "FLOP/s, dense",
    "fp8-flops": "FLOP/s, dense",
    "fp4-flops": "FLOP/s, dense",
    "link-bandwidth": "bytes/s of one GPU to its peers, one direction",
    "compute-units": "compute units or streaming multiprocessors",
    "gpus-per-node": "devices of a node",
    "board-power": "watts; limit of the board",
    "host-memory-bytes": "bytes of host memory of a node that engines may use",
}


@dataclass(frozen=True)
class Fact:
    """One stated fact; ``assumed`` where no source says it."""

    name: str
    value: FactValue
    source: str
    assumed: bool


class FactGroup(Strict):
    """Facts that one source states."""

    source: str = Field(min_length=1, description="Where the values stand, or how they were derived.")
    assumed: bool = Field(default=False, description="True where no source states them.")
    values: dict[str, FactValue] = Field(min_length=1, description="Fact name → value.")


class Stated(Strict):
    """Anything that facts are stated about."""

    facts: list[FactGroup] = Field(default_factory=list, description="Facts by source.")

    @functools.cached_property
    def known(self) -> dict[str, Fact]:
        """Every fact by name."""
        return {
            name: Fact(name, value, group.source, group.assumed)
            for group in self.facts
            for name, value in group.values.items()
        }

    def number(self, name: str, default: float | None = None) -> float:
        """A fact as a number; ``default`` where it is unknown, KeyError where there is no default either."""
        fact = self.known.get(name)
        if fact is None or isinstance(fact.value, (str, list, dict)):
            if default is None:
                raise KeyError(f"{name} is not stated")
            return default
        return float(fact.value)

    def by_tp(self, name: str, tp: int) -> float | None:
        """The entry for ``tp`` of a table by TP, or None."""
        fact = self.known.get(name)
        return fact.value.get(str(tp)) if fact is not None and isinstance(fact.value, dict) else None

    def assumed(self) -> list[str]:
        """Names of facts that no source states."""
        return sorted(name for name, fact in self.known.items() if fact.assumed)


def _checked(stated: Stated, table: dict[str, str]) -> None:
    seen: set[str] = set()
    for group in stated.facts:
        for name in group.values:
            if name not in table:
                raise ValueError(f"unknown fact {name!r}; known facts: {', '.join(sorted(table))}")
            if name in seen:
                raise ValueError(f"fact {name!r} is stated twice")
            seen.add(name)


class Deprecation(Strict):
    """A combination that is deprecated for a model: every axis that is named must match."""

    scenario: Literal["fixed-seq-len", "agentic-coding"] | None = Field(default=None, description="Kind of scenario.")
    hardware: str | None = Field(default=None, description="Device of configs/hardware.yaml.")
    precision: str | None = Field(default=None, description="Precision label of a recipe.")
    engine: str | None = Field(default=None, description="Engine.")
    method: str | None = Field(default=None, description="Drafting method; `none`: without speculation.")
    why: str = Field(min_length=1, description="Why nobody waits for it, or what took its place.")

    @model_validator(mode="after")
    def names_something(self) -> Deprecation:
        if not self.axes():
            raise ValueError("name a scenario, hardware, precision, engine or method; a whole model has a status")
        return self

    def axes(self) -> dict[str, str]:
        """The named axes with their values."""
        named = ("scenario", "hardware", "precision", "engine", "method")
        return {name: value for name in named if (value := getattr(self, name)) is not None}

    def words(self) -> str:
        """``precision fp8 on …``: the combination for people."""
        return ", ".join(f"{name} {value}" for name, value in self.axes().items())


class ModelFacts(Stated):
    """A model of configs/models.yaml; its key is the mapping's key."""

    key: str = Field(description="Key of the model; not written in the entry.")
    hub: str | None = Field(default=None, description="Name at the model hub, ORGANISATION/NAME.")
    path: str | None = Field(default=None, description="Folder of a locally made model, relative to the repository.")
    architecture: str = Field(description="Model type of the checkpoint's configuration.")
    quantization: str = Field(description="How the weights are stored, e.g. mxfp4+fp8, quark-mxfp4, bf16.")
    status: Literal["current", "deprecated", "local"] = Field(description="Whether results of it are wanted.")
    scenarios: list[Literal["fixed-seq-len", "agentic-coding"]] = Field(
        default_factory=list, description="Scenario kinds that are deprecated for it.")
    new: bool = Field(default=False, description="New architecture, excepted from the upstream-image rule.")
    deprecated: list[Deprecation] = Field(default_factory=list, description="Combinations that are deprecated.")
    notes: str | None = Field(default=None, description="Free text.")

    @model_validator(mode="after")
    def sound(self) -> ModelFacts:
        if (self.hub is None) == (self.path is None):
            raise ValueError("give `hub` or `path`, one of them")
        _checked(self, MODEL_FACTS)
        needed = {"context", "vocabulary", "first-safe-id", "last-safe-id", "layers", "hidden"}
        missing = sorted(needed - set(self.known))
        if missing:
            raise ValueError(f"facts are missing: {', '.join(missing)}")
        if not 0 <= self.token_ids[0] < self.token_ids[1] < self.number("vocabulary"):
            raise ValueError("the safe ids must lie inside the vocabulary")
        return self

    @property
    def location(self) -> str:
        """What an engine is given as model."""
        return self.hub or str(self.path)

    @property
    def context(self) -> int:
        """The longest sequence, tokens."""
        return int(self.number("context"))

    @property
    def token_ids(self) -> tuple[int, int]:
        """Lowest and highest id for random prompts, both included."""
        return int(self.number("first-safe-id")), int(self.number("last-safe-id"))


class HardwareFacts(Stated):
    """A device of configs/hardware.yaml; its key is the mapping's key."""

    key: str = Field(description="Key of the device; not written in the entry.")
    name: str = Field(description="Name for people.")
    vendor: Literal["amd", "nvidia", "none"] = Field(description="Maker of the accelerator.")
    arch: str = Field(description="Architecture: gfx950, sm_90, … or cpu.")
    new: bool = Field(default=False, description="New hardware, excepted from the upstream-image rule.")

    @model_validator(mode="after")
    def sound(self) -> HardwareFacts:
        _checked(self, HARDWARE_FACTS)
        return self

    @property
    def gpus_per_node(self) -> int:
        """Devices of a node (1 where nothing is stated)."""
        return int(self.number("gpus-per-node", 1))
