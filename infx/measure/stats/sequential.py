"""Looking at results before all starts are in, and paying for it: levels that a fixed schedule of looks may spend."""

from __future__ import annotations

import math

EXPONENT = 4.0
"""Of the power family of spending functions: little is spent early, so that the last look keeps 80 % and more."""


def looks(starts: int) -> tuple[int, ...]:
    """Numbers of starts per arm after which an A/B of ``starts`` starts per arm is looked at; the last is all.

    A third and two thirds of the way, never before three starts per arm: with fewer there is hardly a spread to
    speak of.
    """
    early = {max(3, math.ceil(starts / 3)), math.ceil(2 * starts / 3)}
    return (*sorted(n for n in early if 3 <= n <= 2 * starts / 3), starts)


def spent(share: float, level: float = 0.05, exponent: float = EXPONENT) -> float:
    """Error spent when ``share`` of the starts are in: level × share^exponent (Kim and DeMets, Biometrika 74, 1987)."""
    return level * min(max(share, 0.0), 1.0) ** exponent


def look_levels(schedule: tuple[int, ...], level: float = 0.05) -> tuple[float, ...]:
    """Nominal level of each look of ``schedule``: what the spending function adds since the look before.

    They sum to ``level``, so that the chance of any false statement at any look is at most ``level`` whatever the
    statistic and however looks depend on each other (the union bound, which no joint distribution has to back).
    """
    total = schedule[-1]
    marks = [0.0, *(spent(n / total, level) for n in schedule)]
    return tuple(after - before for before, after in zip(marks, marks[1:], strict=False))
