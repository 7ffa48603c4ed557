"""``infx export``: runs as CSV, or as InferenceX aggregates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, run ids, or `latest`.")],
    form: Annotated[str, typer.Option("--format", help="csv or inferencex.")] = "csv",
    out: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; default: print.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder of run folders.")] = Path("runs"),
) -> None:
    """Write the figures of runs in a format that other tools read."""
    import json

    from infx.errors import UsageError
    from infx.results.formats.export_csv import export_csv
    from infx.results.formats.export_inferencex import export_inferencex
    from infx.results.index import find_run
    from infx.results.load import load_run
    from infx.results.store import write_whole

    if form not in ("csv", "inferencex"):
        raise UsageError(f"no export format {form!r}", allowed="csv, inferencex")
    loaded = [load_run(find_run(word, runs)) for word in run]
    if form == "csv":
        text = export_csv(loaded)
    else:
        exports = [export_inferencex(one) for one in loaded]
        for export in exports:
            for key, why in export.skipped.items():
                typer.echo(f"not exported: {key}: {why}", err=True)
        text = json.dumps([row for export in exports for row in export.rows.values()], indent=1) + "\n"
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_whole(out, text.encode())
        typer.echo(str(out))
