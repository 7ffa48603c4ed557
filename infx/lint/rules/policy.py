"""Rules of fairness: the model's own computation, honest timing, real prompts, current models, documented settings."""

from __future__ import annotations

from collections.abc import Iterable

from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView
from infx.predict.deployment import same
from infx.schema.image import Pin, parse_image
from infx.schema.recipe import FixedSeqLen


class ArchitectureChanged(Rule):
    """A setting changes what the model computes.

    Why: skipping indexers, layers, experts or top-k entries lowers the model's FLOPs; what makes the same computation
    faster is welcome, less computation is not. Never waivable.
    Mend: remove it.
    """

    code, title = "R-013", "changed model architecture"
    severity, waivable = Severity.ERROR, False
    message = "{name} {how}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is not None and setting.architecture and not same(value, False) and value not in ({}, "{}"):
                    fields = {"name": name, "how": setting.architecture}
                    yield Hit(view.document.key_mark(*place), fields, at, "remove it")


class ChatTemplate(Rule):
    """A speculative recipe with real acceptance sends random tokens.

    Why: acceptance on random ids means nothing; drafts must see text through the chat template, as users send it.
    Mend: take a data set of real text (`dataset: {kind: sharegpt, …}`), or golden acceptance.
    """

    code, title = "R-014", "speculation on random tokens"
    severity, waivable = Severity.ERROR, True
    message = "drafts with real acceptance need real text through the chat template, not random tokens"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        scenario = view.recipe.scenario
        if not isinstance(scenario, FixedSeqLen) or scenario.dataset.kind != "random":
            return
        for server in view.servers:
            spec = server.resolved.speculative
            if spec is not None and spec.acceptance != "golden":
                yield Hit(view.mark("scenario"), {}, server.at)


class DistortedMeasurement(Rule):
    """A setting distorts what clients measure.

    Why: with a stream interval above 1, for instance, tokens arrive in bursts, and the gaps between them are no longer
    the engine's steps.
    Mend: remove it.
    """

    code, title = "R-015", "distorted measurement"
    severity, waivable = Severity.ERROR, True
    message = "{name}={value}: {how}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is None or not setting.distorts or same(value, False) or value == setting.default:
                    continue
                fields = {"name": name, "value": value, "how": setting.distorts}
                yield Hit(view.document.key_mark(*place), fields, at, "remove it")


class Deprecated(Rule):
    """The model, this scenario of it, or this combination (of hardware, precision, engine, method) is deprecated.

    Why: nobody waits for results of it, and GPU hours are dear.
    Mend: see MODELS.md for what is current.
    """

    code, title = "R-016", "deprecated model, scenario or combination"
    severity, waivable = Severity.ERROR, True
    message = "{what} is deprecated"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        model = view.catalog.models[view.recipe.model]
        if model.status == "deprecated":
            yield Hit(view.mark("model"), {"what": f"the model {model.key}"})
        if view.recipe.scenario.kind in model.scenarios:
            yield Hit(view.mark("scenario", "kind"), {"what": f"{view.recipe.scenario.kind} of {model.key}"})
        for server in view.servers:
            spec = server.resolved.speculative
            mine = {"scenario": view.recipe.scenario.kind, "hardware": view.recipe.hardware,
                    "precision": view.recipe.precision, "engine": view.recipe.engine,
                    "method": spec.method if spec else "none"}  # fmt: skip
            for item in model.deprecated:
                if item.axes().items() <= mine.items():
                    fields = {"what": f"{model.key} with {item.words()}"}
                    yield Hit(view.mark("model"), fields, server.at, item.why)


class UpstreamRecipe(Rule):
    """No upstream recipe is linked.

    Why: a serving configuration that wins should be documented where users look for it: in the vLLM recipes or the
    SGLang cookbook.
    Mend: open a pull request there, and link its page as `upstream-recipe`. Placeholders and local models are excepted.
    """

    code, title = "R-017", "no upstream recipe"
    severity, waivable = Severity.ERROR, True
    message = "no upstream recipe is linked"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        pin = parse_image(view.recipe.image).pin
        local = view.catalog.models[view.recipe.model].status == "local"
        if view.recipe.upstream_recipe is None and not local and pin in (Pin.DIGEST, Pin.RELEASE, Pin.NIGHTLY):
            yield Hit(view.mark("image"), {}, hint="add `upstream-recipe: https://…`")


class Secret(Rule):
    """A secret stands in a recipe.

    Why: recipes are public.
    Mend: remove it, replace it where it is used, and let the runner profile pass it by name (`pass-env`).
    """

    code, title = "R-018", "secret in a recipe"
    severity, waivable = Severity.ERROR, False
    message = "the value of {name} is a secret and must not stand in a recipe"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, _, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is not None and setting.secret:
                    hint = "let the runner profile pass it by name (`pass-env`)"
                    yield Hit(view.document.key_mark(*place), {"name": name}, at, hint)
