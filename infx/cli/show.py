"""``infx show``: a run as a table, or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[str, typer.Argument(help="Run folder, run id, a part of one, or `latest`.")] = "latest",
    json_: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Folder of run folders.")] = Path("runs"),
) -> None:
    """Show a run: provenance, a row a point, and the reasons for what is missing or bad."""
    import json
    import sys

    from infx.report.table import run_json, run_table, run_text
    from infx.results.index import find_run
    from infx.results.load import load_run

    loaded = load_run(find_run(run, runs))
    if json_:
        typer.echo(json.dumps(run_json(loaded), indent=1, ensure_ascii=False))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(run_table(loaded))
    else:
        typer.echo(run_text(loaded), nl=False)
