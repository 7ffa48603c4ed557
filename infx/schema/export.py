"""Owns the JSON Schemas of the files that people write and of those that a run leaves behind (draft 2020-12).

They are made from the models themselves and from the catalog's names, so that an editor completes and checks what
`infx validate` would. A schema cannot see everything: ladders that repeat a layout, images that may change, and every
rule of docs/lint.md stay with `infx validate`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from infx.schema.catalog import Catalog, EngineFacts, Label, Price, Trace
from infx.schema.changelog import ChangelogEntry
from infx.schema.export_rules import RULES
from infx.schema.export_settings import engine_branches, engine_definitions
from infx.schema.facts import HARDWARE_FACTS, MODEL_FACTS, HardwareFacts, ModelFacts
from infx.schema.features import Feature, ImageContents, KnownFailure
from infx.schema.golden import Curve
from infx.schema.plan import Plan
from infx.schema.recipe import Recipe
from infx.schema.result import PointResult, Run, Start
from infx.schema.runner import Runner

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Json = dict[str, Any]
Homes = Mapping[str, Mapping[str, str]]
"""Engine → serve key that a recipe must not set → where it belongs."""


@dataclass(frozen=True)
class Kind:
    """One kind of file: ``files`` is where it lies, ``of`` the annotation that reads it, ``group`` a name for several.

    ``given`` are fields that come from the file's name or the entry's key and are never written.
    """

    title: str
    files: str
    of: Any
    given: tuple[str, ...] = ()
    group: str = ""


KINDS: dict[str, Kind] = {
    "recipe": Kind("Recipe", "recipes/**/*.yaml", Recipe, ("key",)),
    "runner": Kind("Runner profile", "runners/*.yaml", Runner, ("name",)),
    "changelog": Kind("Changelog", "perf-changelog.yaml", list[ChangelogEntry]),
    "models": Kind("Models", "configs/models.yaml", dict[str, ModelFacts], ("key",), "configs"),
    "hardware": Kind("Hardware", "configs/hardware.yaml", dict[str, HardwareFacts], ("key",), "configs"),
    "labels": Kind("Runner labels", "configs/labels.yaml", dict[str, Label], ("key",), "configs"),
    "engine-features": Kind("Engine features", "configs/engine-features.yaml", None, ("name",), "configs"),
    "engine": Kind("Settings of an engine", "configs/engines/*.yaml", EngineFacts, ("key",), "configs"),
    "traces": Kind("Trace corpora", "configs/traces.yaml", dict[str, Trace], ("key",), "configs"),
    "price-book": Kind("Prices", "configs/price-book.yaml", dict[str, Price], (), "configs"),
    "golden-curve": Kind("Golden acceptance lengths", "infx/golden_al_distribution/*.yaml", Curve, (), "configs"),
    "plan": Kind("Plan of a run", "runs/*/plan.json", Plan, (), "results"),
    "run": Kind("Run", "runs/*/run.json", Run, (), "results"),
    "start": Kind("Engine start", "runs/*/starts/*/start.json", Start, (), "results"),
    "result": Kind("Result of a point", "runs/*/points/*/*/*/result.json", PointResult, (), "results"),
}
"""Name → kind, in the order of the documentation."""

GROUPS = tuple(dict.fromkeys(kind.group for kind in KINDS.values() if kind.group))


def names_of(word: str) -> list[str]:
    """The kinds that a word names: itself, or every kind of a group. KeyError for another word."""
    if word in KINDS:
        return [word]
    found = [name for name, kind in KINDS.items() if kind.group == word]
    if not word or not found:
        raise KeyError(word)
    return found


def schema(name: str, catalog: Catalog, homes: Homes) -> Json:
    """The JSON Schema of one kind, with the names that ``catalog`` knows. KeyError for an unknown kind."""
    kind = KINDS[name]
    made = _features() if name == "engine-features" else _plain(kind)
    definitions: Json = made.pop("$defs", {})
    root = kind.of.__name__ if isinstance(kind.of, type) else ""
    for title, definition in (*definitions.items(), (root, made)):
        _without_given(definition, kind.given)
        if title in RULES:
            definition.setdefault("allOf", []).extend(RULES[title])
    if name == "recipe":
        _named(made, definitions, catalog)
        definitions |= engine_definitions(catalog.engines, homes)
        made.setdefault("allOf", []).extend(engine_branches(catalog.engines))
    if name in _FACTS:
        _facts_of(definitions, *_FACTS[name])
    if name == "changelog":
        made["type"] = ["array", "null"]
    head = {"$schema": DIALECT, "title": kind.title, "description": f"{made.pop('description', kind.title)} "
            f"({kind.files}; made by `infx schema`)"}
    made.pop("title", None)
    return {**head, **made, **({"$defs": dict(sorted(definitions.items()))} if definitions else {})}


def _plain(kind: Kind) -> Json:
    made = TypeAdapter(kind.of).json_schema(by_alias=True, mode="validation")
    return _untitled(made)


def _features() -> Json:
    """configs/engine-features.yaml: three mappings in one file."""
    parts = {"features": Feature, "known-failures": KnownFailure, "images": ImageContents}
    definitions: Json = {}
    properties: Json = {}
    for key, model in parts.items():
        made = _untitled(TypeAdapter(dict[str, model]).json_schema(by_alias=True, mode="validation"))  # type: ignore[valid-type]
        definitions |= made.pop("$defs")
        properties[key] = {"type": ["object", "null"], **{k: v for k, v in made.items() if k != "type"}}
    return {"type": "object", "properties": properties, "additionalProperties": False, "$defs": definitions}


def _untitled(node: Any) -> Any:
    """Without pydantic's titles of fields, which only repeat the key, and without OpenAPI's discriminators.

    A mapping whose keys have a pattern takes no other keys, which pydantic's schema leaves open.
    """
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            kept[key] = {name: _untitled(item) for name, item in value.items()}
        elif key == "discriminator" or (key == "title" and isinstance(value, str)):
            continue
        else:
            kept[key] = _untitled(value)
    if "patternProperties" in kept:
        kept.setdefault("additionalProperties", False)
    return kept


def _without_given(definition: Json, given: tuple[str, ...]) -> None:
    properties = definition.get("properties", {})
    for name in given:
        if "not written in the" in properties.get(name, {}).get("description", ""):
            del properties[name]
            required = [word for word in definition.get("required", []) if word != name]
            definition["required"] = required


def _named(made: Json, definitions: Json, catalog: Catalog) -> None:
    """Names that the catalog knows, for completion; another name is an error, as it is to `infx validate`."""
    known = {"model": catalog.models, "hardware": catalog.hardware, "engine": catalog.engines, "runner": catalog.labels}
    for field, names in known.items():
        made["properties"][field] = {**made["properties"][field], "enum": sorted(names)}
    traces = definitions["AgenticCoding"]["properties"]["traces"]
    definitions["AgenticCoding"]["properties"]["traces"] = {**traces, "enum": sorted(catalog.traces)}


_FACTS = {"models": ("ModelFacts", MODEL_FACTS), "hardware": ("HardwareFacts", HARDWARE_FACTS)}


def _facts_of(definitions: Json, owner: str, table: Mapping[str, str]) -> None:
    """The names of facts with their units, in the groups of ``owner``."""
    value = definitions["FactGroup"]["properties"]["values"]["additionalProperties"]
    values = {**definitions["FactGroup"]["properties"]["values"], "additionalProperties": False,
              "properties": {name: {**value, "description": text} for name, text in table.items()}}
    definitions["FactGroup"]["properties"]["values"] = values
    assert owner in definitions


def text(document: Json) -> str:
    """A schema as its file has it."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
