"""Speculative acceptance: how many drafts of a step are accepted, deterministic by seed. Pure.

``rates[i]`` is the unconditional probability that the first i + 1 drafts are all accepted, so the mean acceptance
length is 1 + Σ rates. A synthetic length L gives [1] × int(L − 1) + [fraction] + zeros, as vLLM does; a golden curve
(AL by number of drafts) gives rates[i] = AL(i + 1) − AL(i).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

MASK = (1 << 64) - 1


def synthetic_rates(length: float, drafts: int) -> list[float]:
    """Rates of ``synthetic_acceptance_length``; ValueError outside [1, drafts + 1]."""
    if not 1 <= length <= drafts + 1:
        raise ValueError(f"synthetic_acceptance_length must be in [1, {drafts + 1}], got {length}")
    whole = int(length - 1)
    rates = [1.0] * whole + [length - 1 - whole]
    return (rates + [0.0] * drafts)[:drafts]


def curve_rates(curve: Mapping[int, float], drafts: int) -> list[float]:
    """Rates of a golden curve; beyond its end the last step between neighbours is repeated, shrinking by its ratio."""
    lengths = [1.0]
    for count in range(1, drafts + 1):
        if count in curve:
            lengths.append(curve[count])
        else:
            step = lengths[-1] - lengths[-2] if len(lengths) > 1 else 0.0
            before = lengths[-2] - lengths[-3] if len(lengths) > 2 else 1.0
            lengths.append(lengths[-1] + step * (step / before if before else 0.0))
    rates = [min(1.0, max(0.0, high - low)) for low, high in zip(lengths, lengths[1:], strict=False)]
    return [min(rates[: index + 1]) for index in range(len(rates))]


class Acceptance:
    """Draws accepted drafts; each sequence owns a state (from ``start``) so that its draws depend on it alone."""

    def __init__(self, rates: Sequence[float], seed: int = 0) -> None:
        """``rates``: not increasing, each in [0, 1] (ValueError otherwise)."""
        if any(not 0 <= rate <= 1 for rate in rates) or any(b > a for a, b in zip(rates, rates[1:], strict=False)):
            raise ValueError(f"acceptance rates must be in [0, 1] and not increase: {list(rates)}")
        self.drafts = len(rates)
        self.rates = tuple(rates)
        self.seed = seed
        self._negated = [-rate for rate in rates]

    @property
    def length(self) -> float:
        """The mean acceptance length, 1 + Σ rates."""
        return 1.0 + sum(self.rates)

    def start(self, sequence: int) -> int:
        """Initial state for a sequence, mixed from seed and its number (splitmix64)."""
        state = (self.seed * 0x9E3779B97F4A7C15 + (sequence + 1) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        return state ^ (state >> 31)

    def draw(self, state: int, drafts: int) -> tuple[int, int]:
        """(accepted of ``drafts``, next state): one uniform u accepts the drafts whose rate is above it."""
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        uniform = (state >> 11) * 1.1102230246251565e-16
        return min(drafts, bisect_left(self._negated, -uniform)), state
