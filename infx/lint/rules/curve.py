"""Rules about the curve as a whole: enough points, and no point that silently falls through to a default."""

from __future__ import annotations

from collections.abc import Iterable

from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView


class FewPoints(Rule):
    """A curve has fewer than five points.

    Why: with fewer, a frontier says little between its ends; reviewers ask for five measured frontier points. Here the
    planned points are counted; `infx show` counts those on the measured frontier of throughput and E2EL.
    Mend: add concurrencies or layouts.
    """

    code, title = "R-040", "fewer than five points"
    severity, waivable = Severity.WARNING, True
    message = "the curve has {count} points; five or more are wanted"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        count = sum(len(rung.concurrencies()) for rung in view.recipe.ladder)
        if count < 5:
            yield Hit(view.mark("ladder"), {"count": count})


class FallsThrough(Rule):
    """An override covers a point's neighbours on both sides and not the point.

    Why: a table by concurrency that forgets one value leaves that point at a default that nobody chose.
    Mend: widen the override's condition, or say with an override of its own that the default is meant.
    """

    code, title = "R-041", "point falls through to the default"
    severity, waivable = Severity.WARNING, True
    message = "override {number} covers concurrency {low} and {high} of tp{tp}, and not {between}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for index, override in enumerate(view.recipe.overrides):
            for rung in view.recipe.ladder:
                ladder = sorted(rung.concurrencies())
                layout = {"tp": rung.tp, "pp": rung.pp, "dp": rung.dp, "ep": rung.ep}
                covered = [value for value in ladder if override.when.matches(**layout, concurrency=value)]
                if not covered:
                    continue
                missed = [value for value in ladder if covered[0] < value < covered[-1] and value not in covered]
                if missed:
                    fields = {"number": index + 1, "low": covered[0], "high": covered[-1], "tp": rung.tp,
                              "between": ", ".join(map(str, missed))}  # fmt: skip
                    yield Hit(view.mark("overrides", index, "when"), fields)
