"""``infx compare``: two sides point by point, or the claims of a changelog entry, judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.compare.claims import Judged
    from infx.compare.verdict import Comparison, Options

RunWord = Annotated[str, typer.Argument(metavar="A", help="RUN, RUN@ARM, RUN,RUN,… (starts together), or `entry`.")]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of run folders.")]


def command(
    first: RunWord,
    second: Annotated[str | None, typer.Argument(metavar="[B]", show_default=False, help="As A; without it the arms "
                                                 "of A are compared, or A with its latest results entry.")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", show_default=False,
                                                     help="Compare this metric; repeatable.")] = None,
    margin: Annotated[list[str] | None, typer.Option("--margin", metavar="[NAME=]SHARE", show_default=False,
                                                     help="Equivalence margin, e.g. 0.03 or ttft-p50=10%.")] = None,
    rerun: Annotated[str, typer.Option("--rerun", metavar="repeats|latest",
                                       help="A point that several runs measured.")] = "repeats",
    noise: Annotated[Path | None, typer.Option("--noise", metavar="FILE", show_default=False,
                                               help="Noise floors; default: configs/noise.yaml at the top.")] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Judge `expect:` of the newest change of this recipe; "
                                         "exit code 11 unless every claim is met.")] = False,
    changelog: Annotated[Path | None, typer.Option("--changelog", metavar="FILE", show_default=False,
                                                   help="Default: perf-changelog.yaml at the top.")] = None,
    as_json: AsJson = False,
    md: Annotated[bool, typer.Option("--md", help="Markdown for a pull request.")] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Compare runs start by start: better, worse, same, undecided or not comparable, with reasons."""
    from infx.cli.compare_request import Desk
    from infx.errors import UsageError

    if rerun not in ("repeats", "latest"):
        raise UsageError(f"--rerun {rerun!r}", allowed="repeats, latest")
    if as_json and md:
        raise UsageError("--json and --md exclude each other")
    desk = Desk(Path.cwd(), runs, changelog, noise, rerun)
    options = desk.options(tuple(metric or ()), tuple(margin or ()))
    if claims:
        _claims(desk, first, second, options, as_json)
        return
    from infx.compare.verdict import compare

    for number, (one, two) in enumerate(desk.pairs(first, second, options.metrics)):
        if number:
            typer.echo("")
        print_comparison(compare(one, two, desk.scheduled(options, one, two)), as_json=as_json, md=md)


def print_comparison(found: Comparison, *, as_json: bool, md: bool) -> None:
    """Print a comparison with its curve figures and coverage: a table, text in a pipe, Markdown or JSON."""
    import json
    import sys

    from infx.compare.beside import beside
    from infx.compare.markdown import as_data, figure_sentence, markdown

    extra = beside(found)
    if as_json:
        typer.echo(json.dumps(as_data(found, extra), indent=1, ensure_ascii=False))
        return
    if md:
        typer.echo(markdown(found, extra), nl=False)
        return
    if sys.stdout.isatty():
        _terminal(found)
    else:
        typer.echo(_text(found))
    for line in [*map(figure_sentence, extra.figures), *extra.sentences()]:
        typer.echo(line)


def _rows(found: Comparison) -> list[tuple[str, str, str, str, str]]:
    from infx.compare.markdown import figure_text, interval_text

    return [(c.label, c.metric, figure_text(c.estimate) if c.estimate else "",
             interval_text(c.estimate) if c.estimate else "", str(c.verdict)) for c in found.cells]


def _text(found: Comparison) -> str:
    lines = [f"{found.first.name} → {found.second.name} (a positive percentage is an improvement)"]
    lines += [f"note: {note.message}" for note in found.notes]
    rows = _rows(found)
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
    for row, cell in zip(rows, found.cells, strict=True):
        cells = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False))
        why = f": {'; '.join(r.message for r in cell.reasons)}" if cell.reasons else ""
        lines.append(f"{cells}  {row[4]}{why}")
    return "\n".join([*lines, _family(found)])


def _terminal(found: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    styles = {"better": "green", "worse": "red", "same": "blue", "undecided": "yellow", "not comparable": "magenta"}
    table = Table("point", "metric", f"{found.first.name} → {found.second.name}", "95 % alone", "verdict", "why")
    for row, cell in zip(_rows(found), found.cells, strict=True):
        why = "; ".join(r.message for r in cell.reasons)
        table.add_row(*row[:4], f"[{styles[row[4]]}]{row[4]}[/]", why)
    console = Console(highlight=False)
    for note in found.notes:
        console.print(f"note: {note.message}", markup=False)
    console.print(table)
    console.print(_family(found), markup=False)


def _family(found: Comparison) -> str:
    from infx.compare.markdown import counted

    parts = [f"{c.curve}: {counted(c.statements)}, correction {c.correction}" for c in found.curves]
    return "verdicts are corrected over a curve, intervals are each cell's own (" + "; ".join(parts) + ")"


def _claims(desk: object, first: str, second: str | None, options: Options, as_json: bool) -> None:
    import json

    from infx.compare.claims import all_met
    from infx.errors import ComparisonError

    entry, judged = desk.claims(first, second, options)  # type: ignore[attr-defined]
    if as_json:
        typer.echo(json.dumps({"entry": entry, "claims": [_claim_data(j) for j in judged]}, indent=1,
                              ensure_ascii=False))
    else:
        for j in judged:
            typer.echo(j.sentence())
            for place, digest in j.evidence.items():
                typer.echo(f"  {digest[:12]}  {place}")
    if not all_met(judged):
        bad = [j for j in judged if j.outcome != "met"]
        raise ComparisonError(f"{len(bad)} of {len(judged)} claims of {entry} not met",
                              hint="measure more starts (infx ab), or mend the claim")


def _claim_data(judged: Judged) -> dict[str, object]:
    return {"claim": judged.claim.model_dump(mode="json", by_alias=True), "outcome": str(judged.outcome),
            "message": judged.message, "cells": list(judged.cells), "evidence": judged.evidence}
