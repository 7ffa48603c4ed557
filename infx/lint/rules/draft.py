"""Rules about drafts: they run as they ship, at their stored precision, through the image's own defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView
from infx.predict.deployment import same
from infx.schema.catalog import Setting


def lowers(setting: Setting, value: Any) -> bool:
    """Whether the value lowers precision: one of the listed values, or anything that switches it on."""
    if setting.lowers_when is not None:
        return any(same(value, word) for word in setting.lowers_when)
    return not (same(value, False) or same(value, setting.default))


def speculative(view: RecipeView) -> bool:
    """Whether any server of the recipe speculates."""
    return any(server.resolved.speculative is not None for server in view.servers)


class DraftPrecision(Rule):
    """A setting lowers the precision of layers that the draft runs through.

    Why: drafts are served as they ship. Lower precision moves the loss from accuracy, which evals measure, to
    acceptance, which synthetic runs hide. Process-wide settings that reach layers shared with the draft count. The
    baseline is the same image without the submission's settings, the image's own environment included.
    Mend: remove it, confine it to the target, or obtain a draft-precision waiver.
    """

    code, title = "R-005", "draft precision lowered"
    severity, waivable = Severity.ERROR, True
    message = "{name}={value} lowers {what} of {layers} layers, which the draft runs through"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if not speculative(view):
            return
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is None or setting.banned or not setting.lowers or not lowers(setting, value):
                    continue
                layers = [layer for layer in setting.reaches if layer in ("draft", "shared")]
                if layers and set(setting.lowers) - {"messages"}:
                    fields = {"name": name, "value": value, "what": " and ".join(setting.lowers),
                              "layers": " and ".join(layers)}  # fmt: skip
                    yield Hit(view.document.key_mark(*place), fields, at, "leave it unset")


class BannedSetting(Rule):
    """A setting that may never be set, in any recipe.

    Why: it was prohibited for all submissions; historical runs grant no exception, and a value inherited from the
    image counts.
    Mend: remove it; where the image sets it, switch it off.
    """

    code, title = "R-006", "banned setting"
    severity, waivable = Severity.ERROR, False
    message = "{name} is banned: {why}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        banned = {
            name: setting
            for engine in view.catalog.engines.values()
            for name, setting in engine.env.items()
            if setting.banned
        }
        for server in view.servers:
            for name, setting in banned.items():
                value = server.deployment.variable(name)
                if value is not None and not same(value, False):
                    written = name in server.resolved.env
                    place = view.place_of("env", name, server) if written else view.image_place(server)
                    yield Hit(place, {"name": name, "why": setting.banned}, server.at, "remove it")


class CompressedMessages(Rule):
    """Messages between GPUs travel in low precision.

    Why: weights and activations stay as they are, but what the ranks exchange, the draft's layers included, is
    quantised; readers must be told.
    Mend: nothing to mend; say it in the pull request.
    """

    code, title = "R-007", "compressed communication"
    severity, waivable = Severity.NOTE, False
    message = "{name}={value} {what}; say so in the pull request"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, value, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is not None and setting.disclose and lowers(setting, value):
                    fields = {"name": name, "value": value, "what": setting.disclose}
                    yield Hit(view.document.key_mark(*place), fields, at)


class UndeclaredOnDraft(Rule):
    """A speculative recipe sets an environment name of which nothing is declared.

    Why: whether it reaches the draft cannot be said.
    Mend: declare it in configs/engines/<engine>.yaml: its type, what it reaches and what it lowers.
    """

    code, title = "R-008", "undeclared setting on a speculative recipe"
    severity, waivable = Severity.WARNING, True
    message = "nothing is declared of {name}: whether it reaches the draft is unknown"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if not speculative(view) or view.engine is None:
            return
        prefixes = tuple(view.engine.env_prefixes)
        for place, name, _, at in view.written("env"):
            if view.setting("env", name) is None and not name.startswith(prefixes):
                hint = f"declare it in configs/engines/{view.recipe.engine}.yaml"
                yield Hit(view.document.key_mark(*place), {"name": name}, at, hint)


class DraftSubstituted(Rule):
    """Another checkpoint takes the place of the draft that ships with the model.

    Why: the draft that ships with the served checkpoint is the one to measure; another has another acceptance.
    Mend: leave `speculative.model` out, or name a draft whose golden curve is published.
    """

    code, title = "R-009", "draft checkpoint substituted"
    severity, waivable = Severity.ERROR, True
    message = "{draft} takes the place of {shipped}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        model = view.catalog.models[view.recipe.model]
        curves = {curve.draft for curve in view.catalog.golden.curves if curve.model == model.key}
        for server in view.servers:
            spec = server.resolved.speculative
            if spec is None or spec.model is None or spec.model in curves:
                continue
            ships = "draft-layers" in model.known
            if ships or curves - {None}:
                shipped = "the draft that ships with the model" if ships else "the drafts with golden curves"
                fields = {"draft": spec.model, "shipped": shipped}
                yield Hit(view.speculative_place(server, "model"), fields, server.at)
