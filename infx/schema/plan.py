"""The plan: servers, points and blocks, resolved; a run's lock file and the contract of every runner."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from infx.schema.recipe import Dataset, Speculative, Stop
from infx.schema.settings import Parallel, ServerConfig
from infx.schema.strict import Strict


class FixedWorkload(Strict):
    """Closed loop of single-turn requests."""

    kind: Literal["fixed-seq-len"] = Field(description="Kind of workload.")
    isl: int = Field(ge=1, description="Prompt tokens.")
    osl: int = Field(ge=1, description="Output tokens.")
    dataset: Dataset = Field(description="Source of prompts.")
    dataset_hash: str | None = Field(default=None, description="sha256 of the data set's bytes, when it is a file.")


class AgenticWorkload(Strict):
    """Lanes of multi-turn sessions."""

    kind: Literal["agentic-coding"] = Field(description="Kind of workload.")
    traces: str = Field(description="Corpus name, or generator:NAME.")
    trace_hash: str | None = Field(
        default=None, description="sha256 of the corpus: as pinned, else as found when the sweep was planned.")
    duration_s: float = Field(gt=0, description="Measured window, seconds.")
    idle_cap_s: float = Field(gt=0, description="Cap on a session tree's idle time, seconds.")
    warmup_turns: int = Field(ge=0, description="Turns a lane runs before its turns count.")
    max_prompt_tokens: int | None = Field(default=None, description="Cap on a prompt's tokens; null: context limit.")
    answers: Literal["recorded", "live"] = Field(
        default="recorded", description="Answers that next prompts carry: the trace's, or what the engine generated.")


Workload = Annotated[FixedWorkload | AgenticWorkload, Field(discriminator="kind")]


class Point(Strict):
    """One measurement to make: key `recipe[@arm]/tp2[-ep2]/c64`."""

    key: str = Field(description="Stable printable key.")
    arm: str | None = Field(description="Arm, or null for the base.")
    server: str = Field(description="Id of the server it needs.")
    parallel: Parallel = Field(description="Layout.")
    concurrency: int = Field(ge=1, description="Streams or lanes in flight.")
    workload: Workload = Field(description="What is asked of the engine.")
    stop: Stop = Field(description="Stop rule.")
    speculative: Speculative | None = Field(default=None, description="Speculation of this point.")
    acceptance_length: float | None = Field(default=None, description="Golden AL that a synthetic run must achieve.")
    overrides: list[int] = Field(default_factory=list, description="Indices of the recipe's overrides that reach it.")
    context_limit: int = Field(ge=1, description="Longest request that its server takes, tokens.")
    fingerprint: str = Field(description="Fingerprint of its declared facts.")


class Block(Strict):
    """Points that share one engine start, in the order they are visited."""

    id: str = Field(description="Stable printable id.")
    server: str = Field(description="Id of the server.")
    points: list[str] = Field(min_length=1, description="Point keys, in order.")


class Plan(Strict):
    """One recipe, expanded; it holds all that a runner needs."""

    format_version: int = Field(description="Format of the run folder.")
    recipe: str = Field(description="Recipe key.")
    source: str = Field(description="Tree that the recipe was read from.")
    label: str = Field(description="Runner label that the recipe asks for.")
    hardware: str = Field(description="Hardware key.")
    engine: str = Field(description="Engine module.")
    model: str = Field(description="Model key.")
    precision: str = Field(description="Weight precision label.")
    quick: bool = Field(default=False, description="Shortened: never publishable.")
    unofficial: bool = Field(default=False, description="Rules relaxed: never publishable.")
    token_ids: tuple[int, int] = Field(strict=False, description="Lowest and highest token id safe for random prompts.")
    servers: dict[str, ServerConfig] = Field(description="Servers by id.")
    points: list[Point] = Field(description="Points, in order.")
    blocks: list[Block] = Field(description="Blocks, in order.")
    assumed: list[str] = Field(default_factory=list, description="Facts without a source that enter this plan.")
    recipe_text: dict[str, JsonValue] = Field(default_factory=dict, description="The recipe as read.")

    def point(self, key: str) -> Point:
        """The point with this key; KeyError when there is none."""
        for point in self.points:
            if point.key == key:
                return point
        raise KeyError(key)
