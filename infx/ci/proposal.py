"""Owns the results entries that a sweep proposes: one a recipe, of all its run folders together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from infx.changelog.entries import ResultsSummary, results_entry
from infx.changelog.record import summary
from infx.ci.reuse import Reuse
from infx.errors import ChangelogError
from infx.results.load import LoadedRun
from infx.schema.changelog import Results
from infx.schema.plan import Plan


def proposed(wanted: Sequence[Plan], runs: Sequence[LoadedRun], reuse: Reuse, name: str = "") -> list[Results]:
    """The results entries of a qualifying sweep, in the order of ``wanted``.

    A sweep has a run folder a job, so an entry joins those of its recipe: its run is ``name``, else the folder's own
    id, else the first one's with how many more. Only results that stand for a wanted point enter. Raises
    ChangelogError where ``reuse`` does not qualify.
    """
    if not reuse.qualifies:
        raise ChangelogError("results that do not qualify are not proposed\n"
                             + "\n".join(f"  {item}" for item in reuse.refusals))
    entries = []
    for recipe in dict.fromkeys(plan.recipe for plan in wanted):
        points = [point.key for plan in wanted if plan.recipe == recipe for point in plan.points]
        order = {key: index for index, key in enumerate(points)}
        chosen = {(item.run, item.point, item.start) for item in reuse.covered if item.point in order}
        mine = sorted((run for run in runs if any(item[0] == run.run.id for item in chosen)),
                      key=lambda run: run.run.id)
        if mine:
            entries.append(results_entry(_joined([_only(run, chosen) for run in mine], order, name)))
    return entries


def _only(run: LoadedRun, chosen: set[tuple[str, str, str]]) -> ResultsSummary:
    made = summary(run)
    points = [point for point in made.points if (made.run, point.point, point.start) in chosen]
    if len(made.points) == len(points):
        return made
    return replace(made, points=points)


def _joined(parts: Sequence[ResultsSummary], order: dict[str, int], name: str) -> ResultsSummary:
    several = len(parts) > 1  # starts are numbered within a run folder
    points = sorted((replace(point, start=f"{part.run}:{point.start}") if several else point
                     for part in parts for point in part.points), key=lambda point: order[point.point])
    first = parts[0]
    own = first.run if len(parts) == 1 else f"{first.run}+{len(parts) - 1}"
    return ResultsSummary(
        run=f"{name}-{first.recipe}" if name else own, recipe=first.recipe, runner=_words(p.runner for p in parts),
        provenance=[], points=points, harness=_words(p.harness or "" for p in parts) or None)


def _words(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))
