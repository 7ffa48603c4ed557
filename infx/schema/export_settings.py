"""Owns the part of a recipe's JSON Schema that speaks of one engine: its environment names and serve flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from infx.schema.catalog import EngineFacts, Setting

Json = dict[str, Any]

_ENV_PATTERN = {"bool": r"^\s*(0|1|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*$", "int": r"^\s*[+-]?\d+(\.0*)?\s*$"}
_SERVE_TYPES: dict[str, list[str]] = {
    "bool": ["boolean"], "int": ["integer"], "count": ["integer", "string"], "float": ["number", "string"],
    "str": ["string", "number"], "json": ["object", "array", "string"],
}


def engine_definitions(engines: Mapping[str, EngineFacts], homes: Mapping[str, Mapping[str, str]]) -> Json:
    """``vllm-env`` and ``vllm-serve`` of every engine: known names with what is known of their values."""
    made: Json = {}
    for name, facts in sorted(engines.items()):
        others = {key: item for other in engines.values() for key, item in other.env.items()}
        made[f"{name}-env"] = _environment(facts, {**others, **facts.env})
        made[f"{name}-serve"] = _serve(facts, homes.get(name, {}))
    return made


def engine_branches(engines: Iterable[str]) -> list[Json]:
    """For each engine: its definitions hold wherever a recipe of it writes env or serve."""
    branches = []
    for name in sorted(engines):
        here = {"env": {"$ref": f"#/$defs/{name}-env"}, "serve": {"$ref": f"#/$defs/{name}-serve"}}
        patch = {"properties": here}
        everywhere = {**here, "overrides": {"items": patch}, "arms": {"additionalProperties": patch}}
        condition = {"required": ["engine"], "properties": {"engine": {"const": name}}}
        branches.append({"if": condition, "then": {"properties": everywhere}})
    return branches


def _environment(facts: EngineFacts, every: Mapping[str, Setting]) -> Json:
    """Names of the engine for completion; a name with its prefix that nobody knows is refused."""
    made: Json = {"properties": {name: _variable(setting) for name, setting in sorted(facts.env.items())}}
    if facts.env_prefixes:
        prefix = f"^({'|'.join(facts.env_prefixes)})"
        known = sorted(name for name in every if name.startswith(tuple(facts.env_prefixes)))
        made["propertyNames"] = {"if": {"pattern": prefix}, "then": {"enum": known}}
    return made


def _variable(setting: Setting) -> Json:
    made: Json = _said(setting)
    if setting.choices is not None and not setting.any_case:
        made["enum"] = [*setting.choices, None]
    elif pattern := _ENV_PATTERN.get(setting.type):
        made["pattern"] = pattern
    return made


def _serve(facts: EngineFacts, homes: Mapping[str, str]) -> Json:
    """Flags in kebab-case; keys with an underscore are the same flags and are left to `infx validate`."""
    properties = {name: _flag(setting) for name, setting in sorted(facts.flags.items()) if name not in homes}
    made: Json = {"properties": properties}
    made["properties"] |= {name: {"not": {}, "description": f"Set {where} instead."} for name, where in homes.items()}
    if facts.flags:
        made |= {"patternProperties": {"_": {}}, "additionalProperties": False}
    return made


def _flag(setting: Setting) -> Json:
    made: Json = _said(setting)
    types = _SERVE_TYPES.get(setting.type)
    if setting.choices is not None and not setting.any_case:
        rest = [name for name in types or [] if name != "string"]
        made["anyOf"] = [{"enum": setting.choices}, {"type": [*rest, "null"]}]
    elif types is not None:
        made["type"] = [*types, "null"]
    return made


def _said(setting: Setting) -> Json:
    """What an editor shows beside a name."""
    words = [f"Banned: {setting.banned}." if setting.banned else "",
             f"Default: {setting.default}." if setting.default is not None else "",
             f"It {setting.architecture}." if setting.architecture else "",
             f"It {setting.distorts}." if setting.distorts else "",
             f"Needs {setting.needs}." if setting.needs else ""]
    text = " ".join(word for word in words if word)
    return {"description": text} if text else {}
