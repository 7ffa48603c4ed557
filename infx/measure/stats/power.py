"""How many engine starts a statement needs: power of superiority and equivalence for one point or a whole curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from infx.measure.stats.distributions import chi2_grid, normal_cdf, t_quantile
from infx.measure.stats.sequential import look_levels, looks

MOST_STARTS = 400

DRAWS = 20_000
"""Simulated families behind a critical value or a joint power: ±0.3 % at a power of 80 %."""

LEARNING = 0.02
"""Joint power that the rotation test loses against drawn critical values, which know how cells depend: 1 to 1.5 points
at 7 and 28 cells (bench/calibration), rounded up."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of an A/B: ``statements`` are the cells (points × metrics) that share one family.

    ``shared`` is the share of the variance that all points of a start have in common (1: one statement only).
    ``early`` says whether the A/B may stop early, which costs a little of the last look's level. ``together`` asks
    for all statements to come out right at once, which is rarer than each of them.
    """

    sd: float
    statements: int = 1
    shared: float = 0.9
    level: float = 0.05
    early: bool = False
    together: bool = False


def superiority_power(effect: float, sd: float, starts: int, critical: float) -> float:
    """P(two-sided t test with critical value ``critical`` finds ``effect`` on its own side), ``starts`` per arm."""
    df = 2 * starts - 2
    scale, weights = chi2_grid(df)
    shift = abs(effect) / (sd * math.sqrt(2.0 / starts))
    return float((weights * normal_cdf(shift - critical * scale)).sum())


def equivalence_power(
    low: float, high: float, sd: float, starts: int, critical: float, effect: float = 0.0
) -> float:
    """P(both one-sided t tests against ``low`` and ``high`` reject) when the true difference is ``effect``.

    Source: integration of the normal over the estimated spread (Phillips, 1990), by quadrature.
    """
    df = 2 * starts - 2
    scale, weights = chi2_grid(df)
    se = sd * math.sqrt(2.0 / starts)
    upper = (high - effect) / se - critical * scale
    lower = (low - effect) / se + critical * scale
    return float((weights * np.where(upper > lower, normal_cdf(upper) - normal_cdf(lower), 0.0)).sum())


def critical_value(question: Question, starts: int, *, two_sided: bool) -> float:
    """Critical t of one statement among ``question.statements`` with ``starts`` per arm, at the last look.

    One statement: Student's t. More: the level's quantile of the largest of equally correlated t statistics, drawn.
    """
    level = look_levels(looks(starts) if question.early else (starts,), question.level)[-1]
    if question.statements == 1:
        return t_quantile(1.0 - (level / 2.0 if two_sided else level), 2 * starts - 2)
    return float(_largest_t(question.statements, round(question.shared, 3), starts, level, two_sided)[-1])


@lru_cache(maxsize=512)
def _largest_t(statements: int, shared: float, starts: int, level: float, two_sided: bool) -> np.ndarray:
    """Critical values (statements,) of the largest of 1, 2, … statements: what stepping down goes through."""
    effect, spread = _drawn(statements, shared, starts)
    t = effect / spread
    largest = np.maximum.accumulate(np.abs(t) if two_sided else t, axis=1)
    return np.quantile(largest, 1.0 - level, axis=0)


@lru_cache(maxsize=8)
def _drawn(statements: int, shared: float, starts: int) -> tuple[np.ndarray, np.ndarray]:
    """(draws, statements) errors of equally correlated differences, and their estimated spreads; both in true ones."""
    df = 2 * starts - 2
    rng = np.random.default_rng(7)
    effect = math.sqrt(shared) * rng.standard_normal((DRAWS, 1)) + math.sqrt(1 - shared) * rng.standard_normal(
        (DRAWS, statements)
    )
    # sums of squares of equally correlated residuals: a common part, an own part and their cross term
    common = rng.chisquare(df, size=(DRAWS, 1))
    own = rng.chisquare(df - 1, size=(DRAWS, statements)) if df > 1 else 0.0
    along = rng.standard_normal((DRAWS, statements))
    squares = (math.sqrt(shared) * np.sqrt(common) + math.sqrt(1 - shared) * along) ** 2 + (1 - shared) * own
    return effect, np.sqrt(squares / df)


def gain_power(effect: float, question: Question, starts: int) -> float:
    """P(``effect`` (logarithm) is found on its own side) for one statement among the family, or for all together."""
    if question.statements == 1 or not question.together:
        return superiority_power(effect, question.sd, starts, critical_value(question, starts, two_sided=True))
    error, spread = _drawn(question.statements, round(question.shared, 3), starts)
    shift = abs(effect) / (question.sd * math.sqrt(2.0 / starts))
    all_found = _all_stand((shift + error) / spread, question, starts, two_sided=True)
    return max(0.0, float(all_found.mean()) - LEARNING)


def margin_power(margin: float, question: Question, starts: int) -> float:
    """P(equality within a relative ``margin`` is shown where there is no difference), as ``gain_power`` counts."""
    low, high = math.log1p(-margin), math.log1p(margin)
    if question.statements == 1 or not question.together:
        critical = critical_value(question, starts, two_sided=False)
        return equivalence_power(low, high, question.sd, starts, critical)
    error, spread = _drawn(question.statements, round(question.shared, 3), starts)
    se = question.sd * math.sqrt(2.0 / starts)
    below, above = ((high / se - error) / spread, (error - low / se) / spread)
    both = (_all_stand(below, question, starts, two_sided=False)
            & _all_stand(above, question, starts, two_sided=False))
    return max(0.0, float(both.mean()) - LEARNING)


def _all_stand(t: np.ndarray, question: Question, starts: int, *, two_sided: bool) -> np.ndarray:
    """Which rows of statistics (draws, statements) reject everywhere, stepping down from the largest."""
    level = look_levels(looks(starts) if question.early else (starts,), question.level)[-1]
    critical = _largest_t(question.statements, round(question.shared, 3), starts, level, two_sided)
    return (np.sort(t, axis=1) > critical).all(axis=1)


def starts_for_gain(gain: float, question: Question, power: float = 0.8) -> int | None:
    """Fewest starts per arm that find a relative ``gain`` (0.05: 5 %) with ``power``; None above MOST_STARTS."""
    effect = math.log1p(gain)
    return _fewest(lambda starts: gain_power(effect, question, starts) >= power)


def starts_for_margin(margin: float, question: Question, power: float = 0.8) -> int | None:
    """Fewest starts per arm that show equality within a relative ``margin`` with ``power`` when there is none."""
    return _fewest(lambda starts: margin_power(margin, question, starts) >= power)


def smallest_gain(starts: int, question: Question, power: float = 0.8) -> float | None:
    """Smallest relative gain that ``starts`` per arm find with ``power``; None below two starts."""
    if starts < 2:
        return None
    critical = critical_value(question, starts, two_sided=True)
    low, high = 0.0, 60.0 * question.sd * max(1.0, critical)
    for _ in range(40):
        middle = 0.5 * (low + high)
        found = gain_power(middle, question, starts) >= power
        low, high = (low, middle) if found else (middle, high)
    return math.expm1(high)


def _fewest(enough: Callable[[int], bool]) -> int | None:
    low, high = 1, 2
    while not enough(high):
        low, high = high, high * 2
        if low > MOST_STARTS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if high <= MOST_STARTS else None
