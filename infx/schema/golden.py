"""Golden acceptance lengths: public curves with their provenance, and the exact look-up that recipes use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from infx.schema.strict import Strict

Thinking = Literal["thinking-on", "thinking-off"]


class Provenance(Strict):
    """Where a curve was measured and how."""

    source: str = Field(description="Who published it, where.")
    run: str | None = Field(default=None, pattern=r"^https://\S+$", description="The run that measured it.")
    dataset: str = Field(description="Prompts.")
    sampling: str = Field(description="Sampling parameters as stated.")
    output_len: int | None = Field(default=None, ge=1, description="Output tokens a request.")
    engine: str = Field(description="Engine that measured it.")
    hardware: str = Field(description="Device that measured it.")
    chat_template: dict[str, str] = Field(default_factory=dict, description="Chat template arguments by mode, as JSON.")


class Curve(Strict):
    """One curve file: acceptance length by thinking mode for 1, 2, … draft tokens."""

    model: str = Field(description="Model as the catalog names it.")
    method: str = Field(description="Drafting method.")
    draft: str | None = Field(default=None, description="Draft checkpoint or head, where a model has several.")
    draft_sample_method: Literal["greedy", "probabilistic"] | None = Field(
        default=None, description="How drafts were sampled; null: the engine's default of that time."
    )
    rejection_sample_method: Literal["standard", "block"] | None = Field(
        default=None, description="How drafts were verified; null: the engine's default of that time."
    )
    sampling_source: str | None = Field(default=None, description="Who says so, when the curve's header does not.")
    assumed: bool = Field(default=False, description="An assumed curve blocks publishing.")
    provenance: Provenance = Field(description="Where it comes from.")
    curves: dict[Thinking, list[float]] = Field(min_length=1, description="Acceptance length for 1, 2, … drafts.")

    @model_validator(mode="after")
    def possible(self) -> Curve:
        for mode, values in self.curves.items():
            for drafts, value in enumerate(values, start=1):
                if not 1 <= value <= drafts + 1:
                    raise ValueError(f"{mode}: {value} at {drafts} drafts is outside 1…{drafts + 1}")
        return self


@dataclass(frozen=True)
class AcceptanceLength:
    """A looked-up acceptance length: ``value`` or, where there is none, the ``reason``."""

    value: float | None
    reason: str | None = None
    source: str = ""
    assumed: bool = False


class GoldenCurves:
    """Every curve; look-ups are exact in model, thinking mode, method and draft sampling."""

    def __init__(self, curves: Iterable[Curve]) -> None:
        self.curves = tuple(curves)

    def acceptance_length(
        self,
        model: str,
        thinking: str,
        draft_tokens: int,
        method: str,
        sampling: str | None,
        draft: str | None = None,
    ) -> AcceptanceLength:
        """The golden acceptance length, or why there is none. ``sampling`` is the draft sample method."""
        here = [curve for curve in self.curves if curve.model == model]
        if not here:
            return AcceptanceLength(None, f"no golden curve of {model}")
        for wanted, name, of in (
            (method, "method", lambda curve: curve.method),
            (sampling, "draft-sample-method", lambda curve: curve.draft_sample_method),
        ):
            fitting = [curve for curve in here if of(curve) == wanted]
            if not fitting:
                known = ", ".join(sorted({str(of(curve) or "engine default") for curve in here}))
                asked = wanted or "engine default"
                return AcceptanceLength(None, f"the golden curves of {model} have {name} {known}, not {asked}")
            here = fitting
        if draft is not None:
            here = [curve for curve in here if curve.draft == draft]
        if len(here) != 1:
            drafts = ", ".join(sorted(str(curve.draft) for curve in self.curves if curve.model == model))
            return AcceptanceLength(None, f"name the draft; {model} has curves for {drafts}")
        return _at(here[0], thinking, draft_tokens)

    def table(self, model: str) -> dict[tuple[int, str, str | None, str], float]:
        """Every unambiguous value of a model by (draft tokens, method, draft sampling, thinking mode)."""
        found: dict[tuple[int, str, str | None, str], list[float]] = {}
        for curve in self.curves:
            if curve.model == model:
                for mode, values in curve.curves.items():
                    for drafts, value in enumerate(values, start=1):
                        key = (drafts, curve.method, curve.draft_sample_method, mode)
                        found.setdefault(key, []).append(value)
        return {key: values[0] for key, values in found.items() if len(values) == 1}


def _at(curve: Curve, thinking: str, draft_tokens: int) -> AcceptanceLength:
    values = dict(curve.curves).get(thinking)  # type: ignore[call-overload]
    if values is None:
        return AcceptanceLength(None, f"the golden curve of {curve.model} has no {thinking}")
    if not 1 <= draft_tokens <= len(values):
        return AcceptanceLength(None, f"the golden curve of {curve.model} has 1 to {len(values)} drafts")
    source = f"{curve.provenance.source}, {thinking}, {draft_tokens} drafts"
    return AcceptanceLength(values[draft_tokens - 1], None, source, curve.assumed)
