"""The recipe as written: what is pinned, what is swept, and how points differ."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from infx.schema.strict import Strict

Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=1_000_000, strict=False)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ArmName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]


class ConcurrencyRange(Strict):
    """A doubling ladder: from, 2 × from, … and always `to` itself."""

    from_: Positive = Field(alias="from", description="First concurrency.")
    to: Positive = Field(description="Last concurrency, included even when doubling misses it.")

    @model_validator(mode="after")
    def ascending(self) -> ConcurrencyRange:
        if self.from_ > self.to:
            raise ValueError(f"`from` ({self.from_}) is above `to` ({self.to})")
        return self

    def values(self) -> list[int]:
        """The ladder, ascending."""
        ladder, current = [], self.from_
        while current < self.to:
            ladder.append(current)
            current *= 2
        return [*ladder, self.to]


class Dataset(Strict):
    """Where prompts come from when they are not random token ids."""

    kind: Literal["random", "jsonl", "sharegpt"] = Field(description="Source of prompts.")
    path: str | None = Field(default=None, description="File of prompts, relative to the repository; not for random.")

    @model_validator(mode="after")
    def path_where_needed(self) -> Dataset:
        if (self.path is None) != (self.kind == "random"):
            raise ValueError("`path` is needed for jsonl and sharegpt, and refused for random")
        return self


class FixedSeqLen(Strict):
    """Requests of one fixed prompt and output length."""

    kind: Literal["fixed-seq-len"] = Field(description="Kind of scenario.")
    isl: Positive = Field(description="Prompt tokens of a request.")
    osl: Positive = Field(description="Output tokens of a request.")
    dataset: Dataset = Field(default=Dataset(kind="random"), description="Source of prompts.")


class AgenticCoding(Strict):
    """Coding-agent sessions replayed at a concurrency of live sessions (lanes)."""

    kind: Literal["agentic-coding"] = Field(description="Kind of scenario.")
    traces: str = Field(min_length=1, description="Name of a trace corpus in configs/traces.yaml.")
    duration_s: Seconds = Field(description="Length of the measured window, seconds.")
    idle_cap_s: Seconds = Field(default=300.0, description="Cap on a session tree's idle time, seconds.")
    warmup_turns: int = Field(default=10, ge=0, le=1000, description="Turns a lane runs before its turns count.")
    answers: Literal["recorded", "live"] = Field(
        default="recorded", description="What a next prompt carries: the trace's answer, or what the engine generated.")


Scenario = Annotated[FixedSeqLen | AgenticCoding, Field(discriminator="kind")]


class Speculative(Strict):
    """Speculative decoding as the recipe claims it."""

    method: str = Field(min_length=1, description="Drafting method, e.g. dspark, mtp, eagle3, ngram.")
    draft_tokens: int = Field(ge=1, le=64, description="Draft tokens a step.")
    model: str | None = Field(default=None, description="Draft checkpoint, when it is not part of the model.")
    thinking: Literal["thinking-on", "thinking-off"] = Field(default="thinking-off", description="Thinking mode.")
    draft_sample_method: Literal["greedy", "probabilistic"] | None = Field(default=None, description="Draft sampling.")
    rejection_sample_method: Literal["standard", "block"] | None = Field(
        default=None, description="Verification of drafts in real-acceptance runs."
    )
    adaptive_verification: bool | None = Field(default=None, description="Adaptive verification (dspark).")
    acceptance: Literal["golden", "real"] | None = Field(
        default=None,
        description="golden (synthetic at the golden curve) or real; default: golden for agentic-coding, else real.",
    )


class KvOffload(Strict):
    """KV cache offload."""

    tier: Literal["dram"] = Field(description="Where KV blocks go.")
    backend: str = Field(min_length=1, description="Offload backend, e.g. lmcache.")
    version: str | None = Field(default=None, description="Version of the backend.")
    dram_utilization: float = Field(gt=0, le=1, strict=False, description="Share of the host DRAM budget.")


class Rung(Strict):
    """One parallel layout and its concurrency ladder."""

    tp: Positive = Field(description="Tensor-parallel size.")
    pp: Positive = Field(default=1, description="Pipeline-parallel size.")
    dp: Positive = Field(default=1, description="Data-parallel size.")
    ep: Positive = Field(default=1, description="Expert-parallel size.")
    concurrency: list[Positive] | ConcurrencyRange = Field(description="Concurrencies: a list, or {from, to} doubling.")

    @model_validator(mode="after")
    def a_ladder(self) -> Rung:
        if isinstance(self.concurrency, list):
            if not self.concurrency:
                raise ValueError("the concurrency ladder is empty")
            if len(set(self.concurrency)) != len(self.concurrency):
                twice = sorted({c for c in self.concurrency if self.concurrency.count(c) > 1})
                raise ValueError(f"duplicate concurrency {', '.join(map(str, twice))}")
        return self

    def concurrencies(self) -> list[int]:
        """The ladder as written, a range expanded."""
        return self.concurrency.values() if isinstance(self.concurrency, ConcurrencyRange) else list(self.concurrency)


class Bounds(Strict):
    """An inclusive range of concurrency in a condition."""

    min: Positive | None = Field(default=None, description="Lowest concurrency, included.")
    max: Positive | None = Field(default=None, description="Highest concurrency, included.")

    @model_validator(mode="after")
    def not_empty(self) -> Bounds:
        if self.min is None and self.max is None:
            raise ValueError("give `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` ({self.min}) is above `max` ({self.max})")
        return self


class When(Strict):
    """Which points an override reaches: every named axis must match; no axis means every point."""

    tp: Positive | list[Positive] | None = Field(default=None, description="Tensor-parallel sizes.")
    pp: Positive | list[Positive] | None = Field(default=None, description="Pipeline-parallel sizes.")
    dp: Positive | list[Positive] | None = Field(default=None, description="Data-parallel sizes.")
    ep: Positive | list[Positive] | None = Field(default=None, description="Expert-parallel sizes.")
    concurrency: Positive | list[Positive] | Bounds | None = Field(
        default=None, description="Concurrencies: one, a list, or {min, max}."
    )

    def matches(self, *, tp: int, pp: int, dp: int, ep: int, concurrency: int) -> bool:
        """True when every named axis matches."""
        axes = ((self.tp, tp), (self.pp, pp), (self.dp, dp), (self.ep, ep), (self.concurrency, concurrency))
        return all(_axis_matches(wanted, value) for wanted, value in axes)


def _axis_matches(wanted: int | list[int] | Bounds | None, value: int) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, Bounds):
        return (wanted.min is None or value >= wanted.min) and (wanted.max is None or value <= wanted.max)
    return value in wanted if isinstance(wanted, list) else value == wanted


class Patch(Strict):
    """A change to the base: given keys replace, mappings merge key by key, null removes."""

    image: str | None = Field(default=None, description="Another image.")
    env: dict[EnvName, str | None] = Field(default_factory=dict, description="Environment; null removes a name.")
    serve: dict[str, JsonValue] = Field(default_factory=dict, description="Serve arguments; null removes a key.")
    speculative: Speculative | None = Field(default=None, description="Another speculation; null removes it.")


class Override(Patch):
    """A patch for the points that a condition names."""

    when: When = Field(description="Which points it reaches.")


class Stop(Strict):
    """When a point has been measured well enough."""

    min_requests: Positive = Field(default=64, description="Measured requests a point needs at least.")
    window_s: Seconds = Field(default=60.0, description="Seconds that the window is open at least.")
    cap_s: Seconds = Field(default=1200.0, description="Seconds after which the window closes in any case.")
    half_width: float | None = Field(
        default=None, gt=0, lt=1, strict=False,
        description="Relative half-width of throughput and median TPOT to reach before the cap; null: fixed minimum.",
    )
    failure_share: float = Field(
        default=0.0, ge=0, le=1, strict=False, description="Share of failed requests above which a point is invalid."
    )
    percentiles: list[float] = Field(default_factory=lambda: [50.0, 90.0], description="Percentiles that must have n.")


class Recipe(Strict):
    """A recipe file; its key is the file's stem."""

    key: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="File stem; not written in the file.")
    image: str = Field(min_length=1, description="Pinned engine: an immutable image reference, or pypi:NAME==VERSION.")
    model: str = Field(min_length=1, description="Key of a model in configs/models.yaml.")
    precision: Literal["fp4", "fp8", "int4", "int8", "bf16", "fp16"] = Field(description="Weight precision label.")
    hardware: str = Field(min_length=1, description="Key of a device in configs/hardware.yaml.")
    engine: str = Field(min_length=1, description="Engine module: vllm or sglang.")
    runner: str = Field(min_length=1, description="Runner label; profiles say which labels they serve.")
    upstream_recipe: str | None = Field(default=None, pattern=r"^https://\S+$", description="Upstream recipe.")
    scenario: Scenario = Field(description="What is asked of the engine.")
    speculative: Speculative | None = Field(default=None, description="Speculative decoding.")
    kv_offload: KvOffload | None = Field(default=None, description="KV cache offload.")
    env: dict[EnvName, str] = Field(default_factory=dict, description="Environment of the engine; values are strings.")
    serve: dict[str, JsonValue] = Field(default_factory=dict, description="Serve arguments without dashes.")
    ladder: list[Rung] = Field(min_length=1, description="Layouts with their concurrency ladders.")
    overrides: list[Override] = Field(default_factory=list, description="Patches by condition, in order.")
    arms: dict[ArmName, Patch] = Field(default_factory=dict, description="Named variants of the whole recipe.")
    stop: Stop = Field(default=Stop(), description="Stop rule of fixed-seq-len points, failure limit of all.")
    notes: str | None = Field(default=None, description="Free text for readers.")
