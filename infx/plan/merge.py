"""Merging: base → overrides in order → arm, resolved for one point."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from infx.schema.recipe import Patch, Recipe, Rung, Speculative


@dataclass(frozen=True)
class Resolved:
    """What one point's server is made of, and which overrides (indices) reached it."""

    image: str
    env: dict[str, str]
    serve: dict[str, JsonValue]
    speculative: Speculative | None
    overrides: tuple[int, ...]


def resolve(recipe: Recipe, rung: Rung, concurrency: int, arm: str | None) -> Resolved:
    """Merge the base with every override whose condition matches, then with the arm. Serve keys become kebab-case."""
    state = Resolved(recipe.image, dict(recipe.env), canonical_serve(recipe.serve), recipe.speculative, ())
    for index, override in enumerate(recipe.overrides):
        if override.when.matches(tp=rung.tp, pp=rung.pp, dp=rung.dp, ep=rung.ep, concurrency=concurrency):
            state = _patched(state, override, index)
    if arm is not None:
        state = _patched(state, recipe.arms[arm], None)
    return state


def canonical_serve(serve: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """``a_b`` and ``a-b`` are one key, spelled ``a-b``."""
    return {key.replace("_", "-"): value for key, value in serve.items()}


def merge_patch(base: JsonValue, patch: JsonValue) -> JsonValue:
    """JSON merge patch (RFC 7396): mappings merge key by key, null removes, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _patched(state: Resolved, patch: Patch, index: int | None) -> Resolved:
    env = merge_patch(dict(state.env), dict(patch.env))
    serve = merge_patch(state.serve, canonical_serve(patch.serve))
    assert isinstance(env, dict) and isinstance(serve, dict)
    return Resolved(
        image=patch.image if patch.image is not None else state.image,
        env={name: str(value) for name, value in env.items()},
        serve=serve,
        speculative=patch.speculative if "speculative" in patch.model_fields_set else state.speculative,
        overrides=(*state.overrides, index) if index is not None else state.overrides,
    )
