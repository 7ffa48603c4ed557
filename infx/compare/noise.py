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

POOLED = "*"
"""The point of a floor that is pooled over all points of its recipe."""

OWN_DF = 3
"""Degrees of freedom from which a point's own floor is taken instead of the one pooled over its recipe's points."""

HEADER = """# Noise floors: relative standard deviation between starts of a recipe, by metric and point, from repeats
# without a change between them. `infx noise add RUN...` writes this file; docs/comparing.md says how it is used.
"""


class Floor(Strict):
    """The spread of one metric of one point between starts of the same recipe."""

    recipe: str = Field(description="Recipe key.")
    point: str = Field(description="Point without recipe and arm, e.g. tp2/c64; * for all points pooled.")
    metric: str = Field(description="Metric of the metric table.")
    sd: float = Field(ge=0, description="Standard deviation between starts, of the logarithm (0.01: 1 %).")
    df: int = Field(ge=1, description="Degrees of freedom; fewer than all points' together when they share starts.")
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
        lines.append(f"- {{recipe: {f.recipe}, point: {_word(f.point)}, metric: {f.metric}, "
                     f"sd: {f.sd:.6f}, df: {f.df}{mark}}}\n")
    return "".join(lines)


def floors_of(sides: Iterable[Side], metrics: Sequence[str] | None = None) -> list[Floor]:
    """Floors from sides (one a recipe and arm), each of whose points was measured in two starts or more.

    Starts count as repeats of each other when fingerprint, digest, driver and client version agree; groups that
    differ in those have means of their own and share the spread. Values must be positive. The point ``*`` is the
    spread pooled over a recipe's points.
    """
    names = [m.name for m in METRICS.values() if m.margin and m.better != "neither"] if metrics is None else metrics
    groups: dict[tuple[str, str, bool], list[list[Measured]]] = {}
    for side in sides:
        for label in side.points:
            for group in _repeats(side.good(label)):
                facts = group[0].facts
                groups.setdefault((facts.recipe, label, bool(facts.simulated)), []).append(group)
    floors = []
    pools: dict[tuple[str, bool, str], list[dict[str, float]]] = {}
    for (recipe, label, simulated), found in groups.items():
        for metric in names:
            logs = [v for group in found if len(v := _logs(group, metric)) > 1]
            pools.setdefault((recipe, simulated, metric), []).extend(logs)
            spread = pooled_spread([np.array(list(v.values())) for v in logs])
            if spread.df > 0 and spread.sd > 0:
                floors.append(Floor(recipe=recipe, point=label, metric=metric, sd=spread.sd, df=int(spread.df),
                                    simulated=simulated))
    for (recipe, simulated, metric), logs in pools.items():
        spread = pooled_over_points(logs)
        if spread.df >= 1 and spread.sd > 0:
            floors.append(Floor(recipe=recipe, point=POOLED, metric=metric, sd=spread.sd, df=int(spread.df),
                                simulated=simulated))
    return floors


def pooled_over_points(columns: Sequence[dict[str, float]]) -> Spread:
    """The spread over several points, each a mapping start → log value; points of one start are no fresh evidence.

    Degrees of freedom of points that share their starts are those of the sum of correlated squares, (n − 1) ×
    trace(S)² ÷ trace(S²) for the covariance S of points over starts (Satterthwaite 1946), and the largest of the
    points' own where some start lacks a point. Groups of points without a common start add up.
    """
    squares = nominal = effective = 0.0
    for cluster in _clusters(columns):
        rows = [np.array(list(column.values())) for column in cluster]
        squares += sum(float(((row - row.mean()) ** 2).sum()) for row in rows)
        nominal += sum(len(row) - 1 for row in rows)
        if all(column.keys() == cluster[0].keys() for column in cluster):
            table = np.array([[column[start] for start in cluster[0]] for column in cluster])
            table = table - table.mean(axis=1, keepdims=True)
            gram = table.T @ table
            both = float((gram * gram).sum())
            share = float(np.trace(gram)) ** 2 / both if both > 0 else 1.0
            effective += (table.shape[1] - 1) * share
        else:
            effective += max(len(row) - 1 for row in rows)
    return Spread(math.sqrt(squares / nominal), math.floor(effective + 1e-9)) if nominal else Spread(math.nan, 0)


def _clusters(columns: Sequence[dict[str, float]]) -> list[list[dict[str, float]]]:
    clusters: list[tuple[set[str], list[dict[str, float]]]] = []
    for column in columns:
        starts, members = set(column), [column]
        for other in [c for c in clusters if c[0] & starts]:
            clusters.remove(other)
            starts |= other[0]
            members = other[1] + members
        clusters.append((starts, members))
    return [members for _, members in clusters]


def add(book: NoiseBook, runs: Sequence[str], floors: Iterable[Floor]) -> NoiseBook:
    """``book`` with further floors, pooled by degrees of freedom. UsageError when a run is in it already."""
    twice = sorted(set(runs) & set(book.runs))
    if twice:
        raise UsageError(f"already in the noise floors: {', '.join(twice)}", hint="a run counts once; name new runs")
    held = {_key(f): f for f in book.floors}
    for f in floors:
        old = held.get(_key(f))
        held[_key(f)] = f if old is None else _pooled([old, f])
    return NoiseBook(runs=[*book.runs, *runs], floors=sorted(held.values(), key=_key))


def lookup(book: NoiseBook) -> Callable[[Facts, str], Spread | None]:
    """The floor that judges a point's metric: its own from OWN_DF on, else the one pooled over the recipe's points."""
    held = {_key(f): Spread(f.sd, f.df) for f in book.floors if f.df >= OWN_DF or f.point == POOLED}

    def floor_of(facts: Facts, metric: str) -> Spread | None:
        simulated = bool(facts.simulated)
        own = held.get((facts.recipe, facts.label, metric, simulated))
        return own or held.get((facts.recipe, POOLED, metric, simulated))

    return floor_of


def _pooled(floors: Sequence[Floor]) -> Floor:
    df = sum(f.df for f in floors)
    sd = math.sqrt(sum(f.df * f.sd**2 for f in floors) / df)
    return floors[0].model_copy(update={"sd": sd, "df": df})


def _word(point: str) -> str:
    return f'"{point}"' if point == POOLED else point


def _key(f: Floor) -> tuple[str, str, str, bool]:
    return (f.recipe, f.point, f.metric, f.simulated)


def _repeats(measured: Sequence[Measured]) -> list[list[Measured]]:
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for m in measured:
        f = m.facts
        groups.setdefault((f.fingerprint, f.digest, f.driver, f.client, f.quick), []).append(m)
    return list(groups.values())


def _logs(group: Sequence[Measured], metric: str) -> dict[str, float]:
    found = {m.start: m.values[metric].value for m in group if metric in m.values}
    return {start: math.log(v) for start, v in found.items() if v is not None and v > 0}
