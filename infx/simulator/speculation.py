"""``--speculative-config`` read as the engine reads it: what it may say, and the acceptance that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infx.schema.catalog import Catalog
from infx.simulator.specdec import Acceptance, curve_rates, synthetic_rates

REJECTION = ("standard", "synthetic", "block")
RENAMED = {"num_speculative_tokens": "draft-tokens", "enable_adaptive_verification": "adaptive-verification"}


class NotAccepted(ValueError):
    """The configuration is one that the engine refuses; the message is in its words."""


def predicted_keys(config: object) -> dict[str, Any] | None:
    """The configuration under the names that features and failures speak of."""
    if not isinstance(config, dict):
        return None
    return {RENAMED.get(name, name.replace("_", "-")): value for name, value in config.items()}


def acceptance(config: object, catalog: Catalog, model: str, seed: int, chance: float) -> Acceptance | None:
    """How drafts are accepted, None without speculation; NotAccepted where the engine would refuse.

    Synthetic acceptance follows its rates or length; else the golden curve of the model, and where there is none
    each further draft is accepted with ``chance``.
    """
    if config is None:
        return None
    if not isinstance(config, dict):
        raise NotAccepted("ValidationError: 1 validation error for SpeculativeConfig: a JSON object is needed")
    drafts = config.get("num_speculative_tokens")
    if not isinstance(drafts, int) or isinstance(drafts, bool) or drafts < 1:
        raise NotAccepted(f"Value error, num_speculative_tokens must be greater than zero, got {drafts}")
    method = config.get("rejection_sample_method", "standard")
    if method not in REJECTION:
        raise NotAccepted(f"ValidationError: rejection_sample_method: Input should be one of {REJECTION}: {method!r}")
    if method == "synthetic":
        return Acceptance(_synthetic(config, drafts), seed)
    curve = _curve(catalog, model, config)
    return Acceptance(curve_rates(curve, drafts) if curve else [chance ** (at + 1) for at in range(drafts)], seed)


def _synthetic(config: Mapping[str, Any], drafts: int) -> list[float]:
    rates, length = config.get("synthetic_acceptance_rates"), config.get("synthetic_acceptance_length")
    if (rates is None) == (length is None):
        raise NotAccepted(
            "ValueError: rejection_sample_method='synthetic' needs exactly one of synthetic_acceptance_rates and "
            "synthetic_acceptance_length"
        )
    try:
        if rates is None:
            return synthetic_rates(float(length), drafts)
        if len(rates) != drafts:
            raise ValueError(f"synthetic_acceptance_rates must have {drafts} entries, got {len(rates)}")
        return list(Acceptance([float(rate) for rate in rates]).rates)
    except (ValueError, TypeError) as error:
        raise NotAccepted(f"ValueError: {error}") from None


def _curve(catalog: Catalog, model: str, config: Mapping[str, Any]) -> dict[int, float]:
    """The golden curve of a method, by drafts; that with thinking where there are two (argv does not say)."""
    found: dict[int, float] = {}
    for (drafts, method, sampling, thinking), length in sorted(catalog.golden.table(model).items(), key=str):
        if method == config.get("method") and sampling in (None, config.get("draft_sample_method")):
            found[drafts] = length if thinking == "thinking-on" else found.get(drafts, length)
    return found
