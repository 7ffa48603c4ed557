"""Checks of one recipe against itself and the catalog's names: what must hold before it can be expanded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from infx.engines import ENGINES
from infx.findings import Finding, did_you_mean
from infx.plan.codes import finding
from infx.plan.merge import canonical_serve, resolve
from infx.schema.image import Pin, parse_image
from infx.schema.recipe import FixedSeqLen, Patch, Recipe
from infx.sources.document import Document, Step


@dataclass(frozen=True)
class Names:
    """What a recipe may name: models with their context limits, hardware, labels with their hardware, corpora."""

    models: Mapping[str, int]
    hardware: Collection[str]
    labels: Mapping[str, Collection[str]]
    traces: Collection[str]


def check_recipe(recipe: Recipe, document: Document, names: Names) -> list[Finding]:
    """Every finding about a recipe that its schema cannot see, with its place."""
    found = [*_unknown_names(recipe, document, names), *_images(recipe, document)]
    if recipe.engine in ENGINES:
        found += _homes(recipe, document)
        found += _length(recipe, document, names)
    found += [*_points_twice(recipe, document), *_overrides(recipe, document), *_arms(recipe, document)]
    return sorted([*found, *_null_removals(recipe, document)])


def _unknown_names(recipe: Recipe, document: Document, names: Names) -> Iterable[Finding]:
    asked = [("model", recipe.model, names.models, "P-001"), ("hardware", recipe.hardware, names.hardware, "P-002"),
             ("runner", recipe.runner, names.labels, "P-003"), ("engine", recipe.engine, ENGINES, "P-004")]
    for field, value, known, code in asked:
        if value not in known:
            yield finding(document.mark(field), code, f"unknown {field} {value!r}; known: {', '.join(sorted(known))}",
                          did_you_mean(value, known))
    if recipe.runner in names.labels and recipe.hardware in names.hardware:
        has = names.labels[recipe.runner]
        if has and recipe.hardware not in has:
            yield finding(document.mark("hardware"), "P-014",
                          f"the label {recipe.runner!r} has {', '.join(sorted(has))}, not {recipe.hardware!r}")
    if recipe.scenario.kind == "agentic-coding" and recipe.scenario.traces not in names.traces:
        known = sorted(names.traces)
        yield finding(document.mark("scenario", "traces"), "P-015",
                      f"unknown trace corpus {recipe.scenario.traces!r}; known: {', '.join(known)}",
                      did_you_mean(recipe.scenario.traces, known))


def _patches(recipe: Recipe) -> Iterable[tuple[tuple[Step, ...], Patch]]:
    for index, override in enumerate(recipe.overrides):
        yield ("overrides", index), override
    for name, arm in recipe.arms.items():
        yield ("arms", name), arm


def _images(recipe: Recipe, document: Document) -> Iterable[Finding]:
    written = [(("image",), recipe.image)]
    written += [((*place, "image"), patch.image) for place, patch in _patches(recipe) if patch.image is not None]
    for place, text in written:
        pin = parse_image(text).pin
        if pin is Pin.MUTABLE:
            yield finding(document.mark(*place), "P-011", f"the image {text!r} can change under its name",
                          "pin a digest, a release tag or a nightly tag with its full commit")
        elif pin is Pin.MALFORMED:
            yield finding(document.mark(*place), "P-011", f"{text!r} is not an image reference",
                          "write REPOSITORY:TAG, REPOSITORY@sha256:…, pypi:NAME==VERSION or placeholder:WHY")


def _homes(recipe: Recipe, document: Document) -> Iterable[Finding]:
    homes = ENGINES[recipe.engine].homes
    places: list[tuple[tuple[Step, ...], Mapping[str, object]]] = [(("serve",), recipe.serve)]
    places += [((*place, "serve"), patch.serve) for place, patch in _patches(recipe)]
    for place, serve in places:
        for key in serve:
            if key.replace("_", "-") in homes:
                yield finding(document.key_mark(*place, key), "P-005",
                              f"the serve key {key!r} has another home", f"set {homes[key.replace('_', '-')]} instead")


def _length(recipe: Recipe, document: Document, names: Names) -> Iterable[Finding]:
    scenario = recipe.scenario
    if not isinstance(scenario, FixedSeqLen) or recipe.model not in names.models:
        return
    wanted = scenario.isl + scenario.osl
    model_limit = names.models[recipe.model]
    for rung, concurrency in _ladder(recipe):
        resolved = resolve(recipe, recipe.ladder[rung], concurrency, None)
        said = ENGINES[recipe.engine].context_limit(resolved.serve)
        limit = min(model_limit, said) if said else model_limit
        if wanted > limit:
            yield finding(document.mark("scenario", "isl"), "P-013",
                          f"{scenario.isl} + {scenario.osl} = {wanted} tokens do not fit {limit}")
            return


def _ladder(recipe: Recipe) -> Iterable[tuple[int, int]]:
    for index, rung in enumerate(recipe.ladder):
        for concurrency in rung.concurrencies():
            yield index, concurrency


def _points_twice(recipe: Recipe, document: Document) -> Iterable[Finding]:
    seen: set[tuple[int, ...]] = set()
    for index, concurrency in _ladder(recipe):
        rung = recipe.ladder[index]
        identity = (rung.tp, rung.pp, rung.dp, rung.ep, concurrency)
        if identity in seen:
            yield finding(document.mark("ladder", index), "P-007",
                          f"tp {rung.tp} at concurrency {concurrency} is in the ladder already", "remove one of them")
        seen.add(identity)


def _overrides(recipe: Recipe, document: Document) -> Iterable[Finding]:
    for index, override in enumerate(recipe.overrides):
        reached = any(
            override.when.matches(tp=recipe.ladder[rung].tp, pp=recipe.ladder[rung].pp, dp=recipe.ladder[rung].dp,
                                  ep=recipe.ladder[rung].ep, concurrency=concurrency)
            for rung, concurrency in _ladder(recipe))
        if not reached:
            yield finding(document.mark("overrides", index, "when"), "P-006",
                          "this override matches no point of the ladder", "correct `when`, or remove the override")


def _arms(recipe: Recipe, document: Document) -> Iterable[Finding]:
    for name in recipe.arms:
        differs = any(
            _without_origin(recipe, rung, concurrency, name) != _without_origin(recipe, rung, concurrency, None)
            for rung, concurrency in _ladder(recipe))
        if not differs:
            yield finding(document.key_mark("arms", name), "P-008", f"the arm {name!r} changes nothing",
                          "remove it, or correct its keys")


def _without_origin(recipe: Recipe, rung: int, concurrency: int, arm: str | None) -> tuple[object, ...]:
    resolved = resolve(recipe, recipe.ladder[rung], concurrency, arm)
    return resolved.image, resolved.env, resolved.serve, resolved.speculative


def _null_removals(recipe: Recipe, document: Document) -> Iterable[Finding]:
    """Nulls that remove nothing at any point: usually a misspelt key."""
    for key, value in recipe.serve.items():
        if value is None:
            yield finding(document.mark("serve", key), "P-010", f"null in the base: {key!r} has nothing to remove",
                          "remove the key")
    env = {*recipe.env, *(name for _, patch in _patches(recipe) for name, value in patch.env.items() if value)}
    serve = {*canonical_serve(recipe.serve),
             *(key for _, patch in _patches(recipe) for key, value in canonical_serve(patch.serve).items()
               if value is not None)}
    for place, patch in _patches(recipe):
        for field, known, keys in (("env", env, patch.env), ("serve", serve, patch.serve)):
            for key, value in keys.items():
                if value is None and (key.replace("_", "-") if field == "serve" else key) not in known:
                    yield finding(document.key_mark(*place, field, key), "P-010",
                                  f"{field} has no {key!r} to remove", did_you_mean(key, known))
