"""Writes reference tables out of the code itself: fields of recipes and runner profiles, commands, exit codes."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import click
import typer
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import infx.errors
from infx.cli.app import COMMANDS, app
from infx.schema.recipe import Recipe
from infx.schema.runner import Runner
from infx.schema.strict import kebab


def recipe_fields() -> str:
    """Every field of a recipe, one table a noun."""
    return field_tables(Recipe, "Recipe")


def runner_fields() -> str:
    """Every field of a runner profile, one table a noun."""
    return field_tables(Runner, "Profile")


def runner_profiles() -> str:
    """The profiles that the repository ships."""
    rows = ["| profile | place, launch | serves | what it is |", "| --- | --- | --- | --- |"]
    for path in sorted((Path(__file__).resolve().parents[1] / "runners").glob("*.yaml")):
        profile = yaml.safe_load(path.read_text(encoding="utf-8"))
        serves = profile["serves"] if isinstance(profile["serves"], str) else ", ".join(profile["serves"])
        way = f"{profile['place']}, {profile['launch']}"
        rows.append(f"| `{path.stem}` | {way} | {serves} | {cell(profile.get('description', ''))} |")
    return "\n".join(rows)


def field_tables(model: type[BaseModel], title: str) -> str:
    """A table for ``model`` and for each model that its fields hold, in order of appearance."""
    seen, queue, parts = {model}, [(model, title)], []
    while queue:
        current, name = queue.pop(0)
        rows = [f"### {name}", "", (inspect.getdoc(current) or "").splitlines()[0], ""]
        rows += ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
        for attribute, field in current.model_fields.items():
            if "not written in the file" in (field.description or ""):
                continue
            key = field.alias or kebab(attribute)
            rows.append(f"| `{key}` | {type_words(field)} | {default_word(field)} | {cell(field.description or '')} |")
            for found in nested(field.annotation):
                if found not in seen:
                    seen.add(found)
                    queue.append((found, found.__name__))
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def nested(annotation: object) -> Iterator[type[BaseModel]]:
    """The models inside a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from nested(argument)


def type_words(field: FieldInfo) -> str:
    """A type as a writer of YAML would say it."""
    return cell(words(field.annotation))


def words(annotation: object) -> str:
    """An annotation in words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return words(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(one) for one in arguments if one is not types.NoneType))
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is list:
        return f"list of {words(arguments[0])}"
    if origin is dict:
        removable = " or null" if types.NoneType in typing.get_args(arguments[1]) else ""
        return f"mapping to {words(arguments[1])}{removable}"
    if isinstance(annotation, type):
        plain = {str: "text", int: "whole number", float: "number", bool: "true or false"}
        return plain.get(annotation, f"[{annotation.__name__}](#{annotation.__name__.lower()})")
    return "any value"


def default_word(field: FieldInfo) -> str:
    """The default, or that there is none."""
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        own = value == type(value).model_construct()
        return "its own defaults" if own else f"`{value.model_dump_json(exclude_none=True)}`"
    return "–" if value in (None, {}, []) else f"`{json.dumps(value)}`"


def cell(text: str) -> str:
    """Text that fits a table's cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def exit_codes() -> str:
    """One line an error class."""
    rows = ["| code | class | when |", "| --- | --- | --- |", "| 0 | | everything that was asked for is done |"]
    classes = [one for _, one in inspect.getmembers(infx.errors, inspect.isclass) if one.__module__ == "infx.errors"]
    for one in sorted(classes, key=lambda one: (one.exit_code, one.__name__)):
        if one is not infx.errors.InfxError:
            rows.append(f"| {one.exit_code} | `{one.__name__}` | {cell(inspect.getdoc(one) or '')} |")
    return "\n".join([*rows, "| 70 | | a bug of infx; `--debug` prints what to report |"])


def commands() -> str:
    """Usage, arguments and options of every command."""
    root = typer.main.get_command(app)
    return "\n\n".join(section(root.get_command(click.Context(root), name), f"infx {name}") for name in COMMANDS)


def section(command: click.Command, path: str) -> str:
    """One command, and its subcommands after it."""
    context = click.Context(command, info_name=path)
    lines = [f"### `{path}`", "", paragraph(command.help or "")]
    rows = [record for one in command.params if (record := one.get_help_record(context))]
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    if rows or arguments:
        lines += ["", "```", context.get_usage().removeprefix("Usage: "), "```"]
    if rows:
        lines += ["", "| | |", "| --- | --- |"]
        lines += [f"| `{cell(' '.join(name.split()))}` | {cell(' '.join(text.split()))} |" for name, text in rows]
    inner = [section(one, f"{path} {name}") for name, one in getattr(command, "commands", {}).items()]
    return "\n\n".join(["\n".join(lines), *inner])


def paragraph(text: str) -> str:
    """A docstring as one line."""
    return " ".join(inspect.cleandoc(text).split())


def metric_table() -> str:
    """Every metric of schema/metrics.py."""
    from infx.schema.metrics import METRICS

    rows = ["| name | unit | better | title |", "| --- | --- | --- | --- |"]
    return "\n".join([*rows, *(f"| `{m.name}` | {m.unit} | {m.better} | {cell(m.title)} |" for m in METRICS.values())])


def changelog_codes() -> str:
    """Every finding of the changelog's gate with its repair."""
    from infx.changelog.codes import CODES

    rows = [f"| {code} | {item.title} | {item.repair} |" for code, item in CODES.items()]
    return "\n".join(["| code | finding | repair |", "| --- | --- | --- |", *rows])
