"""``infx engine-diff``: the settings that two engine starts ran with, and who asked for what differs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson

if TYPE_CHECKING:
    from infx.compare.settings import Reading

Word = Annotated[str, typer.Argument(help="RUN whose starts share one server, or RUN/START (an id or a part); RUN is "
                                     "a folder, an id, a part of one, or `latest`.")]


def command(
    first: Word,
    second: Word,
    as_json: AsJson = False,
    runs: Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of run folders.")] = Path("runs"),
) -> None:
    """Compare what two engine starts ran: image, digest, version, settings as logged, environment.

    A difference is `asked` or `silent` (a changed default). Exit code 0: the same; 1: they differ, or what could not
    be read leaves it open; 2: usage.
    """
    import json

    from infx.compare.settings import as_data, sentences, settings_diff

    found = settings_diff(_reading(first, runs), _reading(second, runs))
    typer.echo(json.dumps(as_data(found), indent=1, ensure_ascii=False) if as_json else "\n".join(sentences(found)))
    if found.verdict != "same":
        raise typer.Exit(1)


def _reading(word: str, runs: Path) -> Reading:
    from infx.compare.settings import reading_of
    from infx.engines import ENGINES
    from infx.errors import ResultsError, UsageError
    from infx.results.index import find_starts
    from infx.results.load import load_run

    path, part = find_starts(word, runs)
    loaded = load_run(path, metrics=())
    ids = ", ".join(loaded.starts)
    if not loaded.starts:
        raise UsageError("this run has no engine start to compare", where=str(path), hint="name another run")
    mine = [start for start in loaded.starts.values() if start.id == part]
    mine = mine or [start for start in loaded.starts.values() if part in start.id]
    if not mine:
        raise UsageError(f"no start {part!r} in this run", where=str(path), allowed=ids)
    servers = {start.server for start in mine}
    if len(servers) > 1:
        raise UsageError(f"the starts of {word!r} are of {len(servers)} servers", where=str(path), allowed=ids,
                         hint="name one: RUN/START")
    server = loaded.plan.servers.get(mine[0].server)
    if server is None:
        raise ResultsError(f"start {mine[0].id!r} is of a server that the plan does not have", where=str(path))
    engine = ENGINES.get(server.engine)
    name = path.resolve().name + (f"/{part}" if part else "")
    return reading_of(name, server, mine, engine.decides if engine else {})
