"""``infx draft-table``: in which precision a checkpoint stores its drafter, and what a log shows of serving it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.engines.draftlog import Shown
    from infx.findings import Finding
    from infx.predict.drafts import DraftTable

LONGEST_LOG = 200_000_000


def command(
    checkpoint: Annotated[Path, typer.Argument(show_default=False, help="Folder, .safetensors file or index (.json).")],
    engine_log: Annotated[Path | None, typer.Option("--engine-log", metavar="LOG", show_default=False,
                                                    help="An engine's log: what it shows of the drafter.")] = None,
    against: Annotated[Path | None, typer.Option("--against", metavar="CHECKPOINT", show_default=False,
                                                 help="The checkpoint as it ships: differences are errors.")] = None,
    draft: Annotated[str | None, typer.Option("--draft", metavar="PATTERN", show_default=False,
                                              help="Glob of the draft's tensor names, in place of the rules.")] = None,
    as_json: AsJson = False,
) -> None:
    """Table of a drafter's stored dtypes and scales from safetensors headers, and of what an engine's log shows.

    Exit code 3 when a file is damaged, or when --against finds another precision.
    """
    from infx.engines.draftlog import shown
    from infx.findings import errors
    from infx.predict.drafts import draft_table
    from infx.sources.safetensors import read_checkpoint

    read = read_checkpoint(checkpoint)
    table = draft_table(read.tensors, read.config, draft)
    found = [*read.findings, *_none(checkpoint, table, read.tensors)]
    if against is not None:
        found += _against(checkpoint, table, against, draft)
    log = shown(_log(engine_log)) if engine_log is not None else None
    if as_json:
        typer.echo(json.dumps(_plain(table, log, found), indent=1, ensure_ascii=False))
    else:
        _print(table, log, found)
    if errors(found):
        raise typer.Exit(3)


def _none(checkpoint: Path, table: DraftTable, tensors: object) -> list[Finding]:
    from infx.findings import Finding, Mark
    from infx.sources.safetensors import CODES

    if table.tensors or not tensors:
        return []
    message = f"none of its {table.of} tensors is recognised as a drafter's"
    return [Finding(Mark(str(checkpoint)), "T-007", CODES["T-007"].severity, message, "name them with --draft PATTERN")]


def _against(checkpoint: Path, table: DraftTable, against: Path, draft: str | None) -> list[Finding]:
    from infx.findings import Finding, Mark
    from infx.predict.drafts import differences, draft_table
    from infx.sources.safetensors import CODES, read_checkpoint

    other = read_checkpoint(against)
    theirs = draft_table(other.tensors, other.config, draft)
    said = [Finding(Mark(str(checkpoint)), "T-008", CODES["T-008"].severity, text)
            for text in differences(table, theirs)]
    return [*other.findings, *_none(against, theirs, other.tensors), *said]


def _log(path: Path) -> str:
    from infx.errors import InputError

    try:
        with path.open("rb") as stream:
            return stream.read(LONGEST_LOG).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(str(error.strerror), where=str(path), hint="name the log file of an engine") from None


def _plain(table: DraftTable, log: list[Shown] | None, found: Sequence[Finding]) -> dict[str, object]:
    from dataclasses import asdict

    return {"stored": asdict(table), "shown": None if log is None else [asdict(item) for item in log],
            "findings": [item.as_dict() for item in found]}


def _print(table: DraftTable, log: list[Shown] | None, found: Sequence[Finding]) -> None:
    if table.tensors:
        typer.echo(f"stored: {table.tensors} of {table.of} tensors, {table.bytes / 2**30:.3f} GiB; {table.why}")
        typer.echo(f"digest of names, dtypes and shapes: {table.digest}")
        lines = [("tensor", "count", "values", "scales", "granularity", "MiB")]
        lines += [(row.name, str(row.count), row.values, row.scales or "–", row.granularity or "–",
                   f"{row.bytes / 2**20:,.1f}") for row in table.rows]  # fmt: skip
        widths = [max(len(line[column]) for line in lines) for column in range(6)]
        for line in lines:
            typer.echo("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    if log is not None:
        _print_log(log)
    for item in found:
        typer.echo(str(item))


def _print_log(log: list[Shown]) -> None:
    typer.echo("shown by the log:" if log else "the log shows nothing of precision")
    for item in log:
        typer.echo(f"  {item.of:<8}{item.name}: {item.value}")
        typer.echo(f"          {item.evidence:.160}")
    if log and not any(item.of == "draft" for item in log):
        typer.echo("  draft   nothing: the log does not say that a drafter was loaded")
