"""Rules about golden acceptance lengths: agentic throughput runs accept drafts at the public curve alone."""

from __future__ import annotations

from collections.abc import Iterable

from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView


class RealAcceptance(Rule):
    """An agentic recipe with drafts asks for real acceptance.

    Why: replayed traces do not follow the distribution that drafts were trained on; agentic throughput is measured at
    the golden acceptance length of model, thinking mode, method and draft length. Never waivable.
    Mend: leave `acceptance` out; the golden length is then filled in for each engine in its own words.
    """

    code, title = "R-010", "agentic recipe without golden acceptance"
    severity, waivable = Severity.ERROR, False
    message = "agentic throughput with drafts runs at the golden acceptance length, not at real acceptance"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.recipe.scenario.kind != "agentic-coding":
            return
        for server in view.servers:
            spec = server.resolved.speculative
            if spec is not None and spec.acceptance == "real":
                place = view.speculative_place(server, "acceptance")
                yield Hit(place, {}, server.at, "remove `acceptance: real`")


class AssumedCurve(Rule):
    """The golden curve is assumed: no public run measured it.

    Why: a result at an assumed acceptance length is not comparable; it cannot be published.
    Mend: measure the curve and add it to infx/golden_al_distribution with its provenance.
    """

    code, title = "R-011", "assumed golden curve"
    severity, waivable = Severity.WARNING, False
    message = "the golden curve of {model} is assumed; results cannot be published"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            spec = server.resolved.speculative
            if spec is None:
                continue
            found = view.catalog.golden.acceptance_length(
                view.recipe.model, spec.thinking, spec.draft_tokens, spec.method, spec.draft_sample_method
            )
            if found.assumed:
                yield Hit(view.speculative_place(server), {"model": view.recipe.model}, server.at)


class ForcedAcceptance(Rule):
    """A setting forces acceptance behind the recipe's back.

    Why: the acceptance length has one home, `speculative`; a hand-written value can differ from the golden one.
    Mend: remove it; the engine module writes the golden length in the engine's own words.
    """

    code, title = "R-012", "acceptance set by hand"
    severity, waivable = Severity.ERROR, False
    message = "{name} {how}; the golden length comes from `speculative`"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, _, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is not None and setting.acceptance:
                    fields = {"name": name, "how": setting.acceptance}
                    yield Hit(view.document.key_mark(*place), fields, at, "remove it")
