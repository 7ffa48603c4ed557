"""Owns what rules look at: a recipe with its document, expanded to the distinct servers of base and arms."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from infx.engines import ENGINES
from infx.findings import Mark
from infx.plan.merge import Resolved, canonical_serve, resolve
from infx.plan.offload import Dram, dram_of, with_offload
from infx.predict.defaults import predictable
from infx.predict.deployment import Deployment
from infx.predict.features import Engagement, evaluate
from infx.predict.memory import Budget, budget
from infx.schema.catalog import Catalog, EngineFacts, Setting
from infx.schema.recipe import FixedSeqLen, Patch, Recipe, Rung
from infx.sources.document import Document, Step

Written = tuple[tuple[Step, ...], str, Any, str]


@dataclass(frozen=True)
class ServerView:
    """One distinct server of a recipe: an arm, a rung, what is resolved for it, and the concurrencies it serves."""

    arm: str | None
    rung: int
    layout: Rung
    resolved: Resolved
    concurrencies: tuple[int, ...]
    deployment: Deployment
    engine: str
    catalog: Catalog = field(repr=False, compare=False)

    @functools.cached_property
    def at(self) -> str:
        """``@arm tp2``: where it stands, for messages."""
        extra = [f"{name}{size}" for name in ("pp", "dp", "ep") if (size := getattr(self.layout, name)) != 1]
        return (f"@{self.arm} " if self.arm else "") + "-".join([f"tp{self.layout.tp}", *extra])

    def at_concurrency(self, concurrency: int) -> Deployment:
        """The deployment at one concurrency."""
        return replace(self.deployment, concurrency=concurrency)

    @functools.cached_property
    def engagement(self) -> Engagement:
        """Feature states (they do not depend on the concurrency)."""
        mine = [item for item in self.catalog.features.values() if item.engine == self.engine]
        return evaluate(mine, self.deployment)

    @functools.cached_property
    def memory(self) -> Budget:
        """The memory budget at the largest concurrency."""
        return budget(self.at_concurrency(max(self.concurrencies)))

@dataclass(frozen=True)
class RecipeView:
    """A recipe as rules see it. The recipe's names (model, hardware, label, engine) are known to the catalog.

    ``beside``: the repository's recipes, where the recipe's image is waived; None: they were not looked at.
    """

    recipe: Recipe
    document: Document
    catalog: Catalog
    beside: tuple[Recipe, ...] | None = field(default=None, compare=False)

    @functools.cached_property
    def servers(self) -> tuple[ServerView, ...]:
        """Distinct servers of the base and of every arm, in order."""
        return tuple(self._servers())

    @property
    def engine(self) -> EngineFacts | None:
        """Settings of the recipe's engine, where configs/engines has them."""
        return self.catalog.engines.get(self.recipe.engine)

    @property
    def dram(self) -> Dram | None:
        """Host memory behind KV offload, where the label states it."""
        return dram_of(self.catalog.labels.get(self.recipe.runner))

    @property
    def longest(self) -> int | None:
        """Tokens of the longest request, where the scenario says it."""
        scenario = self.recipe.scenario
        return scenario.isl + scenario.osl if isinstance(scenario, FixedSeqLen) else None

    def gpus(self, rung: Rung) -> int:
        """GPUs of a rung's layout."""
        return ENGINES[self.recipe.engine].gpus(tp=rung.tp, pp=rung.pp, dp=rung.dp, ep=rung.ep)

    def setting(self, kind: str, name: str) -> Setting | None:
        """The declared setting: of this engine, or for environment names of any engine."""
        mine = self.catalog.engines.get(self.recipe.engine)
        if kind != "env":
            return None if mine is None else mine.flags.get(name)
        if mine is not None and name in mine.env:
            return mine.env[name]
        return next((item.env[name] for item in self.catalog.engines.values() if name in item.env), None)

    def mark(self, *steps: Step) -> Mark:
        """A place in the recipe file."""
        return self.document.mark(*steps)

    def written(self, kind: str) -> tuple[Written, ...]:
        """Every (place, canonical name, value, where) of ``env`` or ``serve``, patches included; nulls left out."""
        return self._all_written[kind]

    @functools.cached_property
    def _all_written(self) -> dict[str, tuple[Written, ...]]:
        return {kind: tuple(self._write(kind)) for kind in ("env", "serve")}

    def _write(self, kind: str) -> Iterator[Written]:
        for place, patch, where in self._patches():
            for name, value in (patch.env if kind == "env" else patch.serve).items():
                if value is not None:
                    yield (*place, kind, name), _canonical(kind, name), value, where

    def place_of(self, kind: str, name: str, server: ServerView) -> Mark:
        """Where the value of a setting in ``server`` was written; the rung's place where nothing wrote it."""
        for place, patch, _ in reversed(list(self._patches())):
            reaches = place[:1] == ("arms",) and place[1] == server.arm
            reaches |= place[:1] == ("overrides",) and place[1] in server.resolved.overrides
            if place and not reaches:
                continue
            for key in patch.env if kind == "env" else patch.serve:
                if _canonical(kind, key) == name:
                    return self.document.key_mark(*place, kind, key)
        return self.mark("ladder", server.rung)

    def place_of_role(self, role: str, server: ServerView) -> Mark:
        """Where the flag with a role was written; the rung's place where nothing wrote it."""
        return self.place_of("serve", self.role(role), server)

    def role(self, role: str) -> str:
        """The engine's name of the flag with a role; the role itself where the engine has none."""
        flags = self.engine.flags if self.engine else {}
        return next((name for name, setting in flags.items() if setting.role == role), role)

    def image_place(self, server: ServerView) -> Mark:
        """Where the image of ``server`` was written."""
        for place, patch, _ in reversed(list(self._patches())):
            mine = not place or (place[0] == "arms" and place[1] == server.arm)
            mine |= bool(place) and place[0] == "overrides" and place[1] in server.resolved.overrides
            if mine and patch.image is not None:
                return self.mark(*place, "image")
        return self.mark("image")

    def speculative_place(self, server: ServerView, *steps: Step) -> Mark:
        """Where the speculation of ``server`` was written, or a key of it."""
        for place, patch, _ in reversed(list(self._patches())):
            mine = not place or (place[0] == "arms" and place[1] == server.arm)
            mine |= bool(place) and place[0] == "overrides" and place[1] in server.resolved.overrides
            if mine and patch.speculative is not None:
                return self.mark(*place, "speculative", *steps)
        return self.mark("speculative")

    def _patches(self) -> Iterable[tuple[tuple[Step, ...], Patch | Recipe, str]]:
        yield (), self.recipe, ""
        for index, override in enumerate(self.recipe.overrides):
            yield ("overrides", index), override, f"override {index + 1}"
        for name, arm in self.recipe.arms.items():
            yield ("arms", name), arm, f"@{name}"

    def _predictable(self, serve: dict[str, Any]) -> dict[str, Any]:
        """``serve`` with every flag that has a role also under the name that predictions read."""
        flags = self.engine.flags if self.engine else {}
        return predictable(serve, {name: setting.role for name, setting in flags.items()})

    def _servers(self) -> Iterator[ServerView]:
        model, hardware = self.catalog.models[self.recipe.model], self.catalog.hardware[self.recipe.hardware]
        for arm in (None, *self.recipe.arms):
            for index, rung in enumerate(self.recipe.ladder):
                groups: dict[tuple[int, ...], tuple[Resolved, list[int]]] = {}
                for concurrency in rung.concurrencies():
                    resolved = resolve(self.recipe, rung, concurrency, arm)
                    groups.setdefault(resolved.overrides, (resolved, []))[1].append(concurrency)
                for resolved, concurrencies in groups.values():
                    spec = resolved.speculative
                    serve = with_offload(canonical_serve(resolved.serve), self.recipe, rung, self.dram)
                    deployment = Deployment(
                        model=model, hardware=hardware, image=resolved.image, tp=rung.tp, pp=rung.pp, dp=rung.dp,
                        ep=rung.ep, env=resolved.env, serve=self._predictable(serve), images=self.catalog.images,
                        speculative=spec.model_dump(by_alias=True, exclude_none=True) if spec else None,
                    )  # fmt: skip
                    yield ServerView(
                        arm, index, rung, resolved, tuple(concurrencies), deployment, self.recipe.engine, self.catalog
                    )


def _canonical(kind: str, name: str) -> str:
    return name if kind == "env" else name.replace("_", "-")
