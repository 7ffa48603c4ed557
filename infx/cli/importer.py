"""``infx import``: figures of other tools' files as they stand, with what they lack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    file: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files, or AIPerf export folders.")],
    form: Annotated[str | None, typer.Option("--format", help="Force a format instead of recognising it.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--output", help="Write all points as one JSON list.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print all points as one JSON list.")] = False,
) -> None:
    """Read other tools' results; nothing is computed, failures that look finished are named."""
    import sys

    from infx.errors import InputError
    from infx.report.imports import import_table, import_text
    from infx.results.formats import import_path
    from infx.results.store import write_whole

    points, complaints = [], []
    for path in file:
        try:
            points += import_path(path, form)
        except InputError as error:
            complaints.append(error)
    text = "[" + ",\n".join(point.model_dump_json() for point in points) + "]\n"
    if out is not None:
        write_whole(out, text.encode())
    if json_:
        typer.echo(text, nl=False)
    elif sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(import_table(points))
    else:
        typer.echo(import_text(points), nl=False)
    if complaints:
        for error in complaints[:-1]:
            typer.echo(f"infx: {error}", err=True)
        raise complaints[-1]
