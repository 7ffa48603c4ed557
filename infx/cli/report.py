"""``infx report``: one self-contained HTML page of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, run ids, or `latest`.")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Page to write.")] = Path("report.html"),
    runs: Annotated[Path, typer.Option("--runs", help="Folder of run folders.")] = Path("runs"),
) -> None:
    """Write a page with curves, tables, changes with verdicts and a page a point; it opens from disk, offline."""
    from infx.report.html import render
    from infx.results.index import find_run
    from infx.results.load import load_run
    from infx.results.store import write_whole
    from infx.sources.catalog import load_catalog
    from infx.sources.tree import find_tree

    loaded = [load_run(find_run(word, runs)) for word in run]
    catalog, _ = load_catalog(find_tree(Path.cwd()))
    known = {one.plan.hardware for one in loaded} & catalog.prices.keys()
    prices = {name: catalog.prices[name].usd_per_gpu_hour for name in sorted(known)}
    note = "; ".join(
        f"{name} ${price:g} a GPU-hour ({catalog.prices[name].source}"
        f"{', assumed' if catalog.prices[name].assumed else ''})" for name, price in prices.items()
    )
    write_whole(out, render(loaded, prices, note).encode())
    typer.echo(str(out))
