"""``infx schema``: JSON Schemas of the files that people write and of those that a run leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from infx.cli.complete import schema_names


def command(
    names: Annotated[list[str] | None, typer.Argument(
        metavar="[NAME]...", show_default=False, autocompletion=schema_names,
        help="recipe, runner, changelog, …, or a group of them: configs, results; none: all.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="DIR", show_default=False,
                                             help="Write NAME.json files into this folder.")] = None,
) -> None:
    """Print JSON Schemas (draft 2020-12) with the names that this repository's configs know, for editors and scripts.

    One name prints its schema, several print one object by name.
    """
    from infx.engines import ENGINES
    from infx.errors import InputError
    from infx.findings import errors
    from infx.schema.export import schema
    from infx.sources.catalog import load_catalog
    from infx.sources.tree import find_tree

    chosen = _chosen(names or [])
    catalog, found = load_catalog(find_tree(Path.cwd()))
    if bad := errors(found):
        raise InputError("\n".join(map(str, bad)), where="configs/", hint="mend them first; schemas name what is there")
    homes = {name: engine.homes for name, engine in ENGINES.items()}
    made = {name: schema(name, catalog, homes) for name in chosen}
    if out is not None:
        _write(out, made)
    else:
        typer.echo(json.dumps(made if len(made) > 1 else made[chosen[0]], indent=1, ensure_ascii=False))


def _chosen(words: list[str]) -> list[str]:
    """Names in the order of the table. Raises UsageError for a word that is neither a kind nor a group."""
    from infx.errors import UsageError
    from infx.findings import did_you_mean
    from infx.schema.export import GROUPS, KINDS, names_of

    kept: set[str] = set()
    for word in words or KINDS:
        try:
            kept.update(names_of(word))
        except KeyError:
            known = [*KINDS, *GROUPS]
            raise UsageError(f"there is no schema {word!r}", allowed=", ".join(known),
                             hint=did_you_mean(word, known)) from None
    return [name for name in KINDS if name in kept]


def _write(folder: Path, made: dict[str, dict[str, object]]) -> None:
    from infx.schema.export import text

    folder.mkdir(parents=True, exist_ok=True)
    for name, document in made.items():
        whole = folder / f".{name}.json.part"
        whole.write_text(text(document), encoding="utf-8")
        whole.replace(folder / f"{name}.json")
        typer.echo(f"{folder / name}.json")
