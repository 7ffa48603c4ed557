"""Owns what a JSON Schema adds to the models' fields: the conditions that validators of schema/ hold, said again.

A condition that JSON Schema cannot say (an order of two numbers, a repeated fact) is left to `infx validate`.
"""

from __future__ import annotations

from typing import Any

from infx.schema.changelog import LINK, PLACEHOLDER
from infx.schema.metrics import METRICS

Json = dict[str, Any]

_NOTHING: Json = {"type": "null"}
_SOMETHING: Json = {"not": {"type": "null"}}


def _has(name: str, value: Json = _SOMETHING) -> Json:
    return {"required": [name], "properties": {name: value}}


def _lacks(name: str) -> Json:
    return {"properties": {name: _NOTHING}}


def _exactly_when(name: str, condition: Json) -> Json:
    """``name`` is given where the condition holds, and refused elsewhere."""
    return {"if": condition, "then": _has(name), "else": _lacks(name)}


def _one_of(first: str, second: str) -> Json:
    return _exactly_when(first, _lacks(second))


_TESTS = ("equals", "in", "not-in", "absent", "range", "image-has")
_CONDITION = r"(c|tp|pp|dp|ep)\s*(<=|>=|=|<|>)\s*\d+"
_PREDICATE: list[Json] = [
    {"anyOf": [{"required": [name]} for name in _TESTS]},
    _exactly_when("image-has", _has("of", {"const": "image"})),
]
_PULL_LINK: Json = {"pattern": rf"^({LINK.pattern}|(https://\S+/)?{PLACEHOLDER})$"}

RULES: dict[str, list[Json]] = {
    "Dataset": [_exactly_when("path", {"not": _has("kind", {"const": "random"})})],
    "Bounds": [{"anyOf": [_has("min"), _has("max")]}],
    "Rung": [{"properties": {"concurrency": {"if": {"type": "array"}, "then": {"minItems": 1, "uniqueItems": True}}}}],
    "Runner": [
        _exactly_when("executable", _has("launch", {"const": "process"})),
        _exactly_when("container", _has("launch", {"enum": ["docker", "pyxis"]})),
        _exactly_when("slurm", _has("place", {"const": "slurm"})),
        _exactly_when("url", _has("launch", {"const": "endpoint"})),
        {"if": _has("launch", {"const": "pyxis"}), "then": {"properties": {"place": {"const": "slurm"}}}},
        {"if": _has("launch", {"const": "endpoint"}), "then": {"properties": {"place": {"const": "here"}}}},
    ],
    "Container": [
        {"if": {"allOf": [_has("tool", {"const": "podman"}), _has("ipc", {"const": "host"})]},
         "then": _lacks("shm-size")},
    ],
    "Predicate": _PREDICATE,
    "Requirement": _PREDICATE,
    "Cap": [_one_of("fixed", "default")],
    "Deprecation": [{"anyOf": [_has(name) for name in ("scenario", "hardware", "precision", "engine", "method")]}],
    "ModelFacts": [_one_of("hub", "path")],
    "Curve": [{"properties": {"curves": {"additionalProperties": {"items": {"minimum": 1}}}}}],
    "Value": [_exactly_when("reason", _has("value", _NOTHING))],
    "Expect": [
        {"properties": {"metric": {"enum": ["all", *METRICS]},
                        "points": {"pattern": rf"^\s*(all|{_CONDITION}(\s*,\s*{_CONDITION})*)\s*$"}}},
        {"if": _has("by"), "then": {"properties": {"verdict": {"enum": ["better", "worse"]}}}},
        {"if": _has("within"), "then": _has("by")},
    ],
    "Change": [
        {"properties": {"pr-link": _PULL_LINK}},
        {"if": _has("append-only", {"const": True}),
         "then": {"properties": {"evals-only": {"const": False}, "all-evals": {"const": False}}}},
    ],
    "Retract": [{"properties": {"pr-link": {"if": {"type": "string"}, "then": _PULL_LINK}}}],
    "Results": [{"properties": {"provenance": {"if": {"contains": {"const": "measured"}}, "then": {"maxItems": 1}}}}],
}  # fmt: skip
"""Name of a model → conditions that its schema adds."""
