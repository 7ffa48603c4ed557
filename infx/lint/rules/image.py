"""Rules about the engine's image: whose it is, whether it exists, what it contains, and that it runs as shipped."""

from __future__ import annotations

from collections.abc import Iterable

from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView
from infx.predict.features import State
from infx.schema.image import Pin, parse_image

PUBLISHED = (Pin.DIGEST, Pin.RELEASE, Pin.NIGHTLY)


class UpstreamImage(Rule):
    """The image is not from the engine's upstream organisation.

    Why: results should be what any user gets from the project's own builds. Vendors that support an engine submit
    with its upstream image first.
    Mend: take `vllm/…` for vLLM or `lmsysorg/…` for SGLang. Other images need a waiver, and an upstream recipe of the
    same curve beside them (R-044). New hardware and new architectures are excepted (`new: true` in
    configs/hardware.yaml and configs/models.yaml).
    """

    code, title = "R-001", "image of another organisation"
    severity, waivable = Severity.ERROR, True
    message = "the image is from {organisation}, not from {wanted} (the engine's upstream)"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        excepted = view.catalog.hardware[view.recipe.hardware].new or view.catalog.models[view.recipe.model].new
        if view.engine is None or excepted:
            return
        for server in view.servers:
            image = parse_image(server.resolved.image)
            if image.pin in PUBLISHED and image.organisation != view.engine.organisation:
                fields = {"organisation": image.organisation or "nobody", "wanted": view.engine.organisation}
                yield Hit(view.image_place(server), fields, server.at, "file a waiver, or take the upstream image")


class Placeholder(Rule):
    """A placeholder stands for an image that does not exist yet.

    Why: the kernels that the recipe asks for are in no published image; only an engine that stands in (the simulator)
    may sweep it, and nothing of it can be published.
    Mend: pin the first image that has them when it appears.
    """

    code, title = "R-002", "placeholder image"
    severity, waivable = Severity.NOTE, False
    message = "{image} is a placeholder: the simulator alone may sweep this"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            if parse_image(server.resolved.image).pin is Pin.PLACEHOLDER:
                yield Hit(view.image_place(server), {"image": server.resolved.image}, server.at)


class ImageUnknown(Rule):
    """A feature is asked for, and nothing is recorded about whether the image has it.

    Why: nightly hashes have no order offline; without a record the feature may be silently absent.
    Mend: add the image to `images` of configs/engine-features.yaml, with a source.
    """

    code, title = "R-003", "unknown contents of an image"
    severity, waivable = Severity.WARNING, True
    message = "{feature} is asked for, and nothing is recorded about this image: {reasons}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            for state in server.engagement.features.values():
                if state.asked and state.state is State.UNKNOWN:
                    fields = {"feature": state.title, "reasons": "; ".join(state.reasons)}
                    hint = "record it in configs/engine-features.yaml"
                    yield Hit(view.image_place(server), fields, server.at, hint)


class EnginePatch(Rule):
    """A setting replaces code of the engine or loads code into it.

    Why: the pinned image must run as shipped; a patched engine is not the one that the pin names.
    Mend: remove it, or file docs/waiver/<PR>.md that says what is patched, why the shipped image cannot run this,
    the upstream pull request and the plan for removal.
    """

    code, title = "R-004", "patched engine"
    severity, waivable = Severity.ERROR, True
    message = "{name} {how}: the image would not run as shipped"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for kind in ("env", "serve"):
            for place, name, _, at in view.written(kind):
                setting = view.setting(kind, name)
                if setting is not None and setting.patches:
                    yield Hit(view.document.key_mark(*place), {"name": name, "how": setting.patches}, at)


class UpstreamBeside(Rule):
    """A recipe whose image is waived stands alone: no recipe measures the same curve on the upstream image.

    Why: a vendor's own image is comparable only beside what any user gets from the engine's project.
    Mend: add a recipe of the same model, precision, hardware and scenario with the upstream image.
    """

    code, title = "R-044", "waived image without an upstream recipe beside it"
    severity, waivable = Severity.ERROR, False
    message = "the image is waived, and no recipe has an image of {wanted} for the same curve"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.beside is None or view.engine is None:
            return
        mine, wanted = view.recipe, view.engine.organisation
        image = parse_image(mine.image)
        if image.pin not in PUBLISHED or image.organisation == wanted:
            return
        for other in view.beside:
            found = parse_image(other.image)
            same = (other.model, other.precision, other.hardware, other.scenario) == (
                mine.model, mine.precision, mine.hardware, mine.scenario)  # fmt: skip
            if other.key != mine.key and same and found.pin in PUBLISHED and found.organisation == wanted:
                return
        yield Hit(view.mark("image"), {"wanted": wanted}, hint="add the upstream recipe, or take its image here")
