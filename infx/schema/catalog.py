"""The catalog: engines' settings with their tags, runner labels, prices, and everything that configs/ states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, JsonValue

from infx.schema.facts import Fact, HardwareFacts, ModelFacts
from infx.schema.features import Feature, ImageTable, KnownFailure
from infx.schema.golden import Curve, GoldenCurves
from infx.schema.strict import Strict

__all__ = [
    "Catalog", "Curve", "EngineFacts", "Fact", "Feature", "GoldenCurves", "HardwareFacts", "ImageTable",
    "KnownFailure", "Label", "ModelFacts", "Price", "Setting", "Trace",
]  # fmt: skip

Layers = Literal["draft", "shared", "target", "communication"]
Lowered = Literal["weights", "activations", "kv-cache", "messages"]


Role = Literal[
    "sequence-cap", "token-budget", "context-limit", "memory-share", "capture-limit", "capture-list", "eager",
    "host-tables",
]


class Setting(Strict):
    """One environment name or serve flag of an engine."""

    type: Literal["bool", "int", "count", "float", "str", "json", "list"] = Field(
        description="Type of the value; count is an integer that may carry k, m or g."
    )
    default: JsonValue = Field(default=None, description="Value when not set; null: none, or up to the platform.")
    choices: list[str] | None = Field(default=None, description="The only values accepted.")
    any_case: bool = Field(default=False, description="Choices are compared without regard to case.")
    reaches: list[Layers] = Field(default_factory=list, description="What it acts on, where precision is concerned.")
    lowers: list[Lowered] = Field(default_factory=list, description="What it can lower the precision of.")
    lowers_when: list[str] | None = Field(default=None, description="Values that lower it; null: any that switches on.")
    drafts: bool = Field(default=False, description="Part of speculation: the baseline is taken without it.")
    banned: str | None = Field(default=None, description="Why it may never be set.")
    architecture: str | None = Field(default=None, description="How it can change the model's computation.")
    patches: str | None = Field(default=None, description="How it can replace code of the engine.")
    acceptance: str | None = Field(default=None, description="How it forces acceptance of drafts.")
    distorts: str | None = Field(default=None, description="How it distorts measurement.")
    disclose: str | None = Field(default=None, description="What a submission must say when it is set.")
    vendor: Literal["amd", "nvidia", "none"] | None = Field(default=None, description="Devices it is for; null: all.")
    role: Role | None = Field(default=None, description="What it limits, for checks that speak of it.")
    needs: str | None = Field(default=None, description="Change without which the engine does not know it.")
    secret: bool = Field(default=False, description="Its value must not stand in a recipe.")
    harness: bool = Field(default=False, description="A setting of the harness's own, not of production use.")
    note: str | None = Field(default=None, description="What it does, where the name does not say.")


class EngineFacts(Strict):
    """configs/engines/NAME.yaml: what an engine's environment and flags are."""

    key: str = Field(description="Engine module; not written in the file.")
    version: str = Field(description="Version that the lists were read from.")
    source: str = Field(description="How they were read.")
    organisation: str = Field(description="Organisation of its upstream images.")
    env_prefixes: list[str] = Field(description="Names with these prefixes must be listed.")
    env: dict[str, Setting] = Field(description="Environment names.")
    flags: dict[str, Setting] = Field(description="Serve flags, without dashes.")


class Label(Strict):
    """A runner label: a group of machines that recipes name."""

    key: str = Field(description="The label; not written in the entry.")
    hardware: list[str] = Field(description="Devices of its machines.")
    gpus_per_node: int | None = Field(default=None, ge=1, description="Devices of a node.")
    host_memory_mib: int | None = Field(default=None, ge=1, description="Host memory of a node that engines may use.")
    source: str | None = Field(default=None, description="Who says so.")


class Price(Strict):
    """What an hour of one device costs."""

    usd_per_gpu_hour: float = Field(gt=0, description="US dollars for one GPU for one hour.")
    source: str = Field(description="Who says so.")
    assumed: bool = Field(default=False, description="True where no source says it.")


class Trace(Strict):
    """A trace corpus of configs/traces.yaml."""

    key: str = Field(description="Name of the corpus; not written in the entry.")
    path: str | None = Field(default=None, description="File below the repository, when it ships.")
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$", description="Hash of the corpus, when known.")
    format: str = Field(description="Trace format of workload/traces.")
    source: str = Field(description="Where the corpus is published.")
    generator: str | None = Field(default=None, description="Generator that stands in where the corpus is not at hand.")


@dataclass(frozen=True)
class Catalog:
    """Everything that configs/ and the golden curves state, by key."""

    models: dict[str, ModelFacts] = field(default_factory=dict)
    hardware: dict[str, HardwareFacts] = field(default_factory=dict)
    engines: dict[str, EngineFacts] = field(default_factory=dict)
    features: dict[str, Feature] = field(default_factory=dict)
    failures: dict[str, KnownFailure] = field(default_factory=dict)
    images: ImageTable = field(default_factory=lambda: ImageTable({}))
    golden: GoldenCurves = field(default_factory=lambda: GoldenCurves(()))
    labels: dict[str, Label] = field(default_factory=dict)
    prices: dict[str, Price] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
