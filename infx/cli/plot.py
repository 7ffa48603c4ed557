"""``infx plot``: throughput per GPU against interactivity and latency, as SVG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, run ids, or `latest`.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Picture to write: .svg or .png. Default: RUN/pareto.svg")
    ] = None,
    x: Annotated[list[str] | None, typer.Option("--x", help="Metric across; repeatable.")] = None,
    y: Annotated[list[str] | None, typer.Option("--y", help="Metric upwards; repeatable.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder of run folders.")] = Path("runs"),
) -> None:
    """Draw measured points with their frontiers; what is not drawn is listed under the picture."""
    from infx.report.picture import picture
    from infx.results.index import find_run
    from infx.results.layout import RunPaths
    from infx.results.load import load_run
    from infx.results.store import write_whole

    loaded = [load_run(find_run(word, runs)) for word in run]
    target = out or RunPaths(loaded[0].path).picture("pareto.svg")
    write_whole(target, picture(loaded, target.name, x or (), y or ()))
    typer.echo(str(target))
