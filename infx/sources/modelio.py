"""Owns the step from a read document to a model: every pydantic complaint becomes a finding with a place and advice."""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from infx.findings import Finding, did_you_mean
from infx.sources.codes import finding
from infx.sources.document import Document, Step
from infx.sources.scalars import resolve

T = TypeVar("T")
Location = tuple[int | str, ...]

_RANGE = {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of", "finite_number"}
_LENGTH = {"too_short", "too_long", "string_too_short", "string_too_long"}
_CHOICE = {"literal_error", "enum", "union_tag_invalid"}
_RULE = {"value_error", "assertion_error"}
_TYPES = {
    "bool": "true or false", "int": "an integer", "float": "a number", "string": "text", "list": "a list",
    "tuple": "a list", "dict": "a mapping", "model": "a mapping", "model_attributes": "a mapping", "set": "a list",
    "frozen_set": "a list", "mapping": "a mapping", "none_required": "null", "int_from_float": "an integer",
}  # fmt: skip


def parse(
    document: Document, model: type[T], *, at: tuple[Step, ...] = (), given: Mapping[str, Any] | None = None
) -> tuple[T | None, list[Finding]]:
    """Validate the value at ``at`` (the root by default) as ``model``, a pydantic model or any annotation.

    ``given`` holds fields that come from elsewhere (a key that is the file's stem); writing them is a finding.
    Returns the model, or None with every finding at once. A document with refused words (``doubtful``) never gives a
    model; words that the reader refused already are not reported twice.
    """
    node = document.node(*at)
    value = node.value if node else None
    written = []
    if given and isinstance(value, dict):
        for key in sorted(set(given) & set(value)):
            fix = f"remove it; it is {given[key]!r}"
            written.append(finding(document.key_mark(*at, key), "S-001", f"{key!r} is not written in the file", fix))
        value = {**value, **given}
    try:
        made = _adapter(model).validate_json(json.dumps(value))
    except ValidationError as error:
        return None, sorted([*written, *_findings(document, model, at, error)])
    return (None if document.doubtful or written else cast(T, made)), written


@functools.cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _findings(document: Document, model: Any, at: tuple[Step, ...], error: ValidationError) -> list[Finding]:
    rows = [row for row in error.errors(include_url=False) if not _short_only_of_bad_items(row)]
    groups: dict[tuple[Step, ...], list[Mapping[str, Any]]] = {}
    for row in _best_branches(document, at, rows):
        path = _path(document, at, row["loc"])
        if row["type"] == "missing":
            path = (*path, row["loc"][-1])
        groups.setdefault(path, []).append(row)
    found = []
    for path, members in groups.items():
        node = document.node(*path)
        if node is None or not node.doubtful or members[0]["type"] == "extra_forbidden" or path == at:
            found.append(_finding(document, model, path, members))
    return sorted(found)


def _short_only_of_bad_items(row: Mapping[str, Any]) -> bool:
    """Pydantic calls a list too short where its items were refused; those have their own complaints."""
    return row["type"] == "too_short" and len(row["input"]) >= row["ctx"]["min_length"]


def _best_branches(document: Document, at: tuple[Step, ...], rows: Iterable[Any]) -> list[Any]:
    """Drop the complaints of union branches that the value was plainly not meant for.

    Pydantic reports every branch of a union with the branch's label in ``loc``. Where some branches complain below
    the value and others about the value's own type, only the former are of use.
    """
    labelled: dict[tuple[Step, ...], list[tuple[tuple[Step, ...], Any]]] = {}
    kept = []
    for row in rows:
        path = _path(document, at, row["loc"])
        point = _union_point(document, at, row)
        if point is None:
            kept.append(row)
        else:
            labelled.setdefault(point, []).append((path, row))
    for point, members in labelled.items():
        deeper = [row for path, row in members if len(path) > len(point) or row["type"] == "missing"]
        kept += deeper or [row for _, row in members]
    return kept


def _path(document: Document, at: tuple[Step, ...], loc: Location) -> tuple[Step, ...]:
    """The part of a pydantic location that names places of the document (union labels are skipped)."""
    steps: list[Step] = list(at)
    node = document.node(*at)
    for part in loc:
        below = None
        for spelling in _spellings(part):
            below = node.child(spelling) if node else None
            if below is not None:
                steps.append(spelling)
                node = below
                break
    return tuple(steps)


def _union_point(document: Document, at: tuple[Step, ...], row: Mapping[str, Any]) -> tuple[Step, ...] | None:
    """Where in the document the first union label of the row's location stands, or None without one."""
    loc: Location = row["loc"]
    names = loc[:-1] if row["type"] in ("missing", "extra_forbidden") else loc
    for index, part in enumerate(names):
        before, after = _path(document, at, loc[:index]), _path(document, at, loc[: index + 1])
        if before == after and part != "[key]":
            return before
    return None


def _spellings(part: int | str) -> Iterable[Step]:
    return (part,) if isinstance(part, int) else dict.fromkeys((part, part.replace("_", "-"), part.replace("-", "_")))


def _finding(document: Document, model: Any, path: tuple[Step, ...], rows: list[Mapping[str, Any]]) -> Finding:
    row = rows[0]
    kind, name = row["type"], _dotted(path)
    if kind == "extra_forbidden":
        known = _fields(model, path[:-1], row["loc"])
        key = str(path[-1])
        hint = did_you_mean(key, known) or (f"known keys: {', '.join(sorted(known))}" if known else "remove it")
        return finding(document.key_mark(*path), "S-001", f"unknown key {name!r}", hint)
    if kind == "missing":
        return finding(document.key_mark(*path[:-1]), "S-002", f"key {name!r} is missing", "add it")
    if kind in _RULE:
        text = str(row.get("ctx", {}).get("error", row["msg"]))
        return finding(document.key_mark(*path), "S-007", f"{name}: {text}" if name else text)
    if kind == "union_tag_not_found":
        key = str(row["ctx"]["discriminator"]).strip("'")
        return finding(document.key_mark(*path), "S-008", f"{name} does not say its {key!r}", f"add the key {key!r}")
    shown = _shown(row["input"])
    if kind in _CHOICE:
        allowed = str(row["ctx"].get("expected") or row["ctx"].get("expected_tags", ""))
        if kind == "union_tag_invalid":
            shown = repr(row["ctx"]["tag"])
            path = (*path, str(row["ctx"]["discriminator"]).strip("'"))
        words = [word.strip("' ") for word in allowed.replace(" or ", ", ").split(",")]
        near = did_you_mean(str(row["ctx"].get("tag", row["input"])), words)
        message = f"{_dotted(path)} is {shown}; allowed: {allowed}"
        return finding(document.mark(*path), "S-004", message, near)
    if kind in _LENGTH:
        limit, few = row["ctx"].get("min_length"), kind.endswith("too_short")
        count = f"at least {limit}" if few else f"at most {row['ctx'].get('max_length')}"
        unit = "characters" if kind.startswith("string") else "items"
        return finding(document.mark(*path), "S-005", f"{name} has {len(row['input'])} {unit}; it must have {count}")
    if kind in _RANGE:
        return finding(document.mark(*path), "S-005", f"{name} is {shown}; {_lower(row['msg'])}")
    if kind == "string_pattern_mismatch" and "[key]" in row["loc"]:
        message = f"the name {_shown(row['input'])} must match {row['ctx']['pattern']}"
        return finding(document.key_mark(*path), "S-006", message)
    if kind == "string_pattern_mismatch":
        return finding(document.mark(*path), "S-006", f"{name} is {shown}; it must match {row['ctx']['pattern']}")
    wanted = list(dict.fromkeys(_wanted(item) for item in rows))
    if all(wanted):
        hint = _quote_hint(document, path, wanted)
        return finding(document.mark(*path), "S-003", f"{name} is {shown}; it must be {' or '.join(wanted)}", hint)
    return finding(document.mark(*path), "S-009", f"{name or 'the file'} is {shown}; {_lower(row['msg'])}")


def _wanted(row: Mapping[str, Any]) -> str:
    kind = row["type"].removesuffix("_type").removesuffix("_parsing")
    if kind in ("literal_error", "enum"):
        return f"one of {row['ctx']['expected']}"
    return _TYPES.get(kind, "")


def _quote_hint(document: Document, path: tuple[Step, ...], wanted: list[str]) -> str:
    node = document.node(*path)
    if node is None or node.text is None:
        return ""
    if "text" in wanted:
        return f'quote it: "{node.text}"'
    unquoted, _ = resolve(node.text)
    return "write it without quotes" if isinstance(node.value, str) and not isinstance(unquoted, str) else ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return f"the text {text}" if isinstance(value, str) else text


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _dotted(path: tuple[Step, ...]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _fields(model: Any, path: tuple[Step, ...], loc: Location) -> set[str]:
    """The keys that the models at ``path`` know; union labels in ``loc`` narrow the choice where they name a class."""
    types_here: list[Any] = list(_unpacked(model))
    for step in path:
        below: list[Any] = []
        for kind in types_here:
            below += _below(kind, step)
        types_here = below or types_here
    named = [kind for kind in types_here if _is_model(kind) and kind.__name__ in loc]
    chosen = named or [kind for kind in types_here if _is_model(kind)]
    return {field.alias or name for kind in chosen for name, field in kind.model_fields.items()}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _unpacked(annotation: Any) -> list[Any]:
    """The members of unions, aliases and Annotated, flattened."""
    if isinstance(annotation, typing.TypeAliasType if hasattr(typing, "TypeAliasType") else ()):
        return _unpacked(annotation.__value__)
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unpacked(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [kind for member in typing.get_args(annotation) for kind in _unpacked(member)]
    return [annotation]


def _below(kind: Any, step: Step) -> list[Any]:
    if _is_model(kind):
        for name, field in kind.model_fields.items():
            if step in (name, field.alias):
                return _unpacked(field.annotation)
        return []
    arguments = [item for item in typing.get_args(kind) if item is not Ellipsis]
    return _unpacked(arguments[-1]) if arguments and typing.get_origin(kind) is not typing.Literal else []
