"""``infx trace``: what is in trace files, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.findings import Finding
    from infx.workload.traces.stats import TraceStats

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="Look at trace files.")


@app.callback()
def trace() -> None:
    """Look at trace files."""


@app.command()
def stats(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Trace files, or folders of them.")],
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw into FILE (.svg or .png).")] = None,
    lanes: Annotated[int | None, typer.Option("--lanes", min=1, help="Concurrency that they are meant for.")] = None,
    as_json: AsJson = False,
) -> None:
    """Lengths, turns, pauses, reuse and theoretical prefix-cache hit rates; every finding goes to stderr.

    Exit code 3 when a finding is an error; what could be read is told all the same.
    """
    import json

    from infx.errors import UsageError
    from infx.findings import errors

    if plot is not None and plot.suffix not in (".svg", ".png"):
        raise UsageError(f"cannot draw {str(plot)!r}", allowed="a name that ends in .svg or .png")
    gathered, found = _gather(_trace_files(files), lanes)
    for one in found:
        typer.echo(str(one), err=True)
    if gathered.sessions:
        if as_json:
            typer.echo(json.dumps(gathered.as_dict(), indent=1))
        else:
            typer.echo(_text(gathered), nl=False)
        if plot is not None:
            _draw(gathered, files, plot)
    if errors(found):
        raise typer.Exit(3)


def _trace_files(files: list[Path]) -> list[Path]:
    from infx.errors import InputError
    from infx.sources.traces import ENDINGS, trace_files

    found: list[Path] = []
    for file in files:
        if file.is_dir():
            inside = trace_files(file)
            if not inside:
                raise InputError("no trace in this folder", where=str(file), allowed=", ".join(ENDINGS))
            found += inside
        elif file.is_file():
            found.append(file)
        else:
            raise InputError("no such file", where=str(file))
    return found


def _gather(files: list[Path], lanes: int | None) -> tuple[TraceStats, list[Finding]]:
    from infx.errors import InputError
    from infx.findings import Finding, Mark
    from infx.workload.traces.codes import lanes_finding, repeated_finding
    from infx.workload.traces.read import iter_sessions
    from infx.workload.traces.stats import TraceStats

    gathered, found, names = TraceStats(), [], {}
    for file in files:
        try:
            with file.open("rb") as stream:
                for item in iter_sessions(stream, str(file)):
                    if isinstance(item, Finding):
                        found.append(item)
                    elif item.id in names:
                        found.append(repeated_finding(item.id, names[item.id], Mark(str(file))))
                    else:
                        names[item.id] = str(file)
                        gathered.add(item)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(file)) from error
    gathered.finish()
    if lanes and gathered.sessions:
        found += lanes_finding(lanes, gathered.sessions, str(files[0]))
    return gathered, found


def _text(gathered: TraceStats) -> str:
    from infx.workload.traces.stats import QUANTILES

    told = gathered.as_dict()
    agents = told["sub-agents"]
    blocks = ", ".join(map(str, told["block-sizes"])) if told["distinct-blocks"] else "none named"
    lines = [
        f"sessions         {told['sessions']:>14,}",
        f"requests         {told['requests']:>14,}",
        f"sub-agents       {agents['joined']:>14,} joined, {agents['background']:,} in the background",
        f"prompt tokens    {told['prompt-tokens']:>14,}",
        f"output tokens    {told['output-tokens']:>14,}",
        f"distinct blocks  {told['distinct-blocks']:>14,} (tokens a block: {blocks})",
        "",
        f"{'':22}" + "".join(f"{f'p{100 * q:g}':>13}" for q in QUANTILES) + f"{'mean':>13}{'n':>8}",
    ]
    for name, row in told["quantiles"].items():
        cells = "".join(f"{row[f'p{100 * q:g}']:>13,.10g}" for q in QUANTILES)
        lines.append(f"{name:22}{cells}{row['mean']:>13,.1f}{row['n']:>8,}")
    best = gathered.hit_rate()
    lines += ["", "theoretical prefix-cache hit rate (share of prompt tokens; LRU over blocks)"]
    if best is None:
        lines.append("  unknown: the trace names no blocks")
    else:
        lines += [f"  cache of {size:>12,} tokens  {rate:7.2%}" for size, rate in gathered.hit_rates()]
        lines.append(f"  unbounded                     {best:7.2%}")
    return "\n".join(lines) + "\n"


def _draw(gathered: TraceStats, files: list[Path], target: Path) -> None:
    from infx.errors import StorageError
    from infx.report.traces import draw_stats

    name = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
    title = f"{name}: {gathered.sessions:,} sessions"
    try:
        target.write_bytes(draw_stats(gathered, title, "svg" if target.suffix == ".svg" else "png"))
    except OSError as error:
        raise StorageError(f"cannot write: {error.strerror}", where=str(target)) from error
