"""Engine features as data: closed predicates over a deployment, launches with caps, known failures, images."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from infx.schema.strict import Strict

Unmet = Literal["refused", "off", "not-applicable"]


class Range(Strict):
    """An inclusive range of numbers."""

    min: float | None = Field(default=None, description="Lowest, included.")
    max: float | None = Field(default=None, description="Highest, included.")


class Predicate(Strict):
    """One closed condition: the subject named by ``of`` fulfils any of the given tests.

    Subjects: model.architecture, model.quantization, model.key, hardware.key, hardware.arch, hardware.compute-units,
    tp, pp, dp, ep, concurrency, env.NAME, serve.KEY (dots go into mappings), speculative, speculative.KEY, image.
    """

    of: str = Field(description="Subject.")
    equals: JsonValue = Field(default=None, description="Equal to this value (env: true means 1 or true).")
    in_: list[JsonValue] | None = Field(default=None, alias="in", description="One of these values.")
    not_in: list[JsonValue] | None = Field(default=None, description="Present and none of these values.")
    absent: bool | None = Field(default=None, description="true: not set; false: set.")
    range: Range | None = Field(default=None, description="A number in this range.")
    image_has: str | None = Field(default=None, description="The image contains this change, e.g. vllm#60397.")

    @model_validator(mode="after")
    def tests_something(self) -> Predicate:
        tests = self.model_fields_set & {"equals", "in_", "not_in", "absent", "range", "image_has"}
        if not tests:
            raise ValueError("give a test: equals, in, not-in, absent, range or image-has")
        if (self.of == "image") != (self.image_has is not None):
            raise ValueError("image-has goes with `of: image`")
        return self


class Requirement(Predicate):
    """A predicate with what its failure means."""

    why: str = Field(description="What is needed, as a reader should see it.")
    only_tp: list[int] | None = Field(default=None, description="Asked at these TP sizes alone; null: at all.")
    unmet: Unmet = Field(description="The engine refuses to start, leaves it off, or it is not meant.")


class Cap(Strict):
    """The most rows (or tokens) of a step: fixed, or a setting with its default and built range by TP."""

    fixed: int | None = Field(default=None, ge=1, description="A constant of the kernels.")
    env: str | None = Field(default=None, description="Setting that sets it.")
    default: int | dict[str, int] | None = Field(default=None, description="Without the setting; by TP if a table.")
    built: dict[str, int] | None = Field(default=None, description="Highest value by TP; beyond it the engine clamps.")

    @model_validator(mode="after")
    def complete(self) -> Cap:
        if (self.fixed is None) == (self.default is None):
            raise ValueError("give `fixed` or `default`, one of them")
        return self

    def default_at(self, tp: int) -> int | None:
        """The default for a TP size."""
        return self.default.get(str(tp)) if isinstance(self.default, dict) else self.default


class Floor(Strict):
    """The least message size from which a launch is used, by codec and TP, in bytes of one all-reduced activation."""

    setting: str = Field(description="Setting whose value chooses the row.")
    bytes_by: dict[str, dict[str, int]] = Field(description="Value of the setting → TP → bytes.")
    override_mb: str | None = Field(default=None, description="Setting in MiB that replaces the table.")
    element_bytes: int = Field(default=2, ge=1, description="Bytes of one reduced element.")


class Launch(Strict):
    """One kernel launch or path of a feature with its own limits."""

    title: str = Field(description="What it replaces.")
    counts: Literal["rows", "tokens"] = Field(default="rows", description="What the cap counts in a step.")
    pure_decode: bool = Field(default=True, description="Only in steps without any prefill.")
    cap: Cap | None = Field(default=None, description="Most rows or tokens of a step.")
    floor: Floor | None = Field(default=None, description="Least message size.")
    layers: str | None = Field(default=None, description="Model fact that counts the layers it serves.")
    requires: list[Requirement] = Field(default_factory=list, description="Conditions of this launch alone.")
    instead_of: str | None = Field(default=None, description="The sibling launch that runs where this one is off.")


class Feature(Strict):
    """An engine feature of configs/engine-features.yaml."""

    name: str = Field(description="Key of the feature; not written in the entry.")
    title: str = Field(description="Name for people.")
    engine: str = Field(description="Engine module.")
    source: str = Field(description="Where its rules stand.")
    applies: list[Predicate] = Field(default_factory=list, description="Deployments that the feature is about; all.")
    asked_by: list[Predicate] = Field(default_factory=list, description="Settings that switch it on; none: default on.")
    requires: list[Requirement] = Field(default_factory=list, description="What the deployment must be.")
    launches: dict[str, Launch] = Field(min_length=1, description="Its launches by short name.")
    proof: list[str] = Field(default_factory=list, description="Log lines that show it engaged.")


class KnownFailure(Strict):
    """A combination that is known to fail: recorded, not derived."""

    name: str = Field(description="Key; not written in the entry.")
    when: list[Predicate] = Field(min_length=1, description="All of these hold.")
    what: str = Field(description="What happens.")
    source: str = Field(description="Who reported it.")
    hint: str = Field(description="What to do instead.")


class ImageContents(Strict):
    """What is known to be in an image or not."""

    has: list[str] = Field(default_factory=list, description="Changes that it contains.")
    has_not: list[str] = Field(default_factory=list, description="Changes that it does not contain.")
    env: dict[str, str] = Field(default_factory=dict, description="Environment that the image sets.")
    source: str = Field(description="Who says so.")


class ImageTable:
    """Image reference → contents; nightly tags are looked up by their full commit, since hashes have no order."""

    def __init__(self, images: dict[str, ImageContents]) -> None:
        self.images = images

    def contents(self, reference: str) -> ImageContents | None:
        """The entry for a reference: itself, its digest, or the commit that ends its tag (8 digits at least)."""
        for key in (reference, *(reference.rpartition(mark)[2] for mark in "@-:")):
            if key in self.images:
                return self.images[key]
        commit = re.search(r"-([0-9a-f]{40})$", reference)
        known = [key for key in self.images if commit and re.fullmatch("[0-9a-f]{8,40}", key)]
        return next((self.images[key] for key in known if commit and commit[1].startswith(key)), None)

    def has(self, reference: str, change: str) -> bool | None:
        """True, False, or None where nothing is known."""
        found = self.contents(reference)
        if found is None or change not in [*found.has, *found.has_not]:
            return None
        return change in found.has
