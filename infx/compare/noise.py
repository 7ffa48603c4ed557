"""Stored noise floors: how far starts of one recipe differ by themselves, by metric and point, for single runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from pydantic import Field

from infx.compare.sides import Facts, Measured, Side
from infx.errors import UsageError
from infx.findings import Finding
from infx.measure.stats.starts import Spread, pooled_spread
from infx.schema.metrics import METRICS
from infx.schema.strict import Strict
from infx.sources.modelio import parse
from infx.sources.yamlio import load

PATH = "configs/noise.yaml"

HEADER = """# Noise floors: start-to-start standard deviation (relative) of one recipe's point and metric, from repeated starts
# without a change between them. `infx noise add RUN...` writes this file; docs/comparing.md says how it is used.
"""


class Floor(Strict):
    """The spread of one metric of one point between starts of the same recipe."""

    recipe: str = Field(description="Recipe key.")
    point: str = Field(description="Point without recipe and arm, e.g. tp2/c64.")
    metric: str = Field(description="Metric of the metric table.")
    sd: float = Field(ge=0, description="Standard deviation between starts, of the logarithm (0.01: 1 %).")
    df: int = Field(ge=1, description="Degrees of freedom: starts minus groups that have a mean of their own.")
    simulated: bool = Field(default=False, description="From simulated starts; never judges measured ones.")


class NoiseBook(Strict):
    """The file of floors."""

    runs: list[str] = Field(default_factory=list, description="Ids of the runs that are in it.")
    floors: list[Floor] = Field(default_factory=list, description="Floors by recipe, point and metric.")


def read_book(text: bytes, path: str) -> tuple[NoiseBook | None, list[Finding]]:
    """The floors in ``text``, or every finding about it."""
    document, findings = load(text, path)
    if document is None:
        return None, findings
    book, more = parse(document, NoiseBook)
    return book, [*findings, *more]


def render_book(book: NoiseBook) -> str:
    """The file's text: one floor a line, sorted, so that a diff shows what changed."""
    lines = [HEADER, "runs:\n" if book.runs else "runs: []\n", *(f"- {run}\n" for run in sorted(book.runs))]
    lines.append("floors:\n" if book.floors else "floors: []\n")
    for f in sorted(book.floors, key=_key):
        mark = ", simulated: true" if f.simulated else ""
        lines.append(f"- {{recipe: {f.recipe}, point: {f.point}, metric: {f.metric}, "
                     f"sd: {f.sd:.6f}, df: {f.df}{mark}}}\n")
    return "".join(lines)


def floors_of(sides: Iterable[Side], metrics: Sequence[str] | None = None) -> list[Floor]:
    """Floors from sides (one a recipe and arm), each of whose points was measured in two starts or more.

    Starts count as repeats of each other when fingerprint, digest, driver and client version agree; groups that
    differ in those have means of their own and share the spread. Values must be positive.
    """
    names = [m.name for m in METRICS.values() if m.margin and m.better != "neither"] if metrics is None else metrics
    groups: dict[tuple[str, str, bool], list[list[Measured]]] = {}
    for side in sides:
        for label in side.points:
            for group in _repeats(side.good(label)):
                facts = group[0].facts
                groups.setdefault((facts.recipe, label, bool(facts.simulated)), []).append(group)
    floors = []
    for (recipe, label, simulated), found in groups.items():
        for metric in names:
            spread = pooled_spread([v for group in found if len(v := _logs(group, metric)) > 1])
            if spread.df > 0 and spread.sd > 0:
                floors.append(Floor(recipe=recipe, point=label, metric=metric, sd=spread.sd, df=int(spread.df),
                                    simulated=simulated))
    return floors


def add(book: NoiseBook, runs: Sequence[str], floors: Iterable[Floor]) -> NoiseBook:
    """``book`` with further floors, pooled by degrees of freedom. UsageError when a run is in it already."""
    twice = sorted(set(runs) & set(book.runs))
    if twice:
        raise UsageError(f"already in the noise floors: {', '.join(twice)}", hint="a run counts once; name new runs")
    held = {_key(f): f for f in book.floors}
    for f in floors:
        old = held.get(_key(f))
        held[_key(f)] = f if old is None else _pooled([old, f], old.point)
    return NoiseBook(runs=[*book.runs, *runs], floors=list(held.values()))


def lookup(book: NoiseBook) -> Callable[[Facts, str], Spread | None]:
    """The floor that judges a point's metric: its own, else pooled over the recipe's points of that metric."""
    exact = {_key(f): Spread(f.sd, f.df) for f in book.floors}
    by_metric: dict[tuple[str, str, bool], list[Floor]] = {}
    for f in book.floors:
        by_metric.setdefault((f.recipe, f.metric, f.simulated), []).append(f)

    def floor_of(facts: Facts, metric: str) -> Spread | None:
        simulated = bool(facts.simulated)
        own = exact.get((facts.recipe, facts.label, metric, simulated))
        if own is not None:
            return own
        others = by_metric.get((facts.recipe, metric, simulated))
        if not others:
            return None
        pooled = _pooled(others, "*")
        return Spread(pooled.sd, pooled.df)

    return floor_of


def _pooled(floors: Sequence[Floor], point: str) -> Floor:
    df = sum(f.df for f in floors)
    sd = math.sqrt(sum(f.df * f.sd**2 for f in floors) / df)
    return floors[0].model_copy(update={"point": point, "sd": sd, "df": df})


def _key(f: Floor) -> tuple[str, str, str, bool]:
    return (f.recipe, f.point, f.metric, f.simulated)


def _repeats(measured: Sequence[Measured]) -> list[list[Measured]]:
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for m in measured:
        f = m.facts
        groups.setdefault((f.fingerprint, f.digest, f.driver, f.client, f.quick), []).append(m)
    return list(groups.values())


def _logs(group: Sequence[Measured], metric: str) -> np.ndarray:
    found = [m.values[metric].value for m in group if metric in m.values]
    values = [v for v in found if v is not None and v > 0]
    return np.log(np.array(values)) if values else np.empty(0)
