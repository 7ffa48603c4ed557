"""``infx selfbench``: what this machine's load client can bear, and what that means for a recipe's ladder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import AsJson, Keys

if TYPE_CHECKING:
    from infx.run.selfbench.bench import Meaning, Rung


def command(
    keys: Keys = None,
    streams: Annotated[str, typer.Option("--streams", metavar="N,N…", help="Rungs to climb.")] = "1,16,64,256,1024",
    seconds: Annotated[float, typer.Option("--seconds", min=0.5, help="Window of each rung.")] = 3.0,
    tick_ms: Annotated[float, typer.Option("--tick-ms", min=1.0, help="Time between tokens of a stream.")] = 20.0,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Load workers (default: by streams).")] = None,
    as_json: AsJson = False,
) -> None:
    """Load a null server with more and more streams; say at which rate the client would be the limit.

    With recipe KEYs the ladder's concurrencies are judged, otherwise the rungs. Nothing else should run meanwhile.
    Exit code 1 when a rung was client-bound.
    """
    from infx.errors import UsageError
    from infx.run.selfbench.bench import climb, meaning

    try:
        rungs_asked = [int(word) for word in streams.split(",")]
    except ValueError as error:
        raise UsageError(f"--streams {streams!r} is no list of numbers", allowed="e.g. 1,64,256") from error
    if min(rungs_asked) < 1:
        raise UsageError("--streams: a rung has at least one stream")
    ladder = _ladder(keys or []) if keys else rungs_asked
    if not as_json:
        typer.echo(f"{'streams':>8} {'workers':>7} {'events/s':>10} {'µs/event':>9} {'CPU':>6} {'lag p99':>9}  bound")
    rungs = climb(rungs_asked, seconds=seconds, tick_ms=tick_ms, processes=workers,
                  tell=None if as_json else _tell)
    judged = meaning(rungs, ladder)
    if as_json:
        typer.echo(json.dumps({"rungs": [asdict(rung) for rung in rungs], "ladder": [asdict(one) for one in judged]}))
    else:
        _explain(rungs, judged)
    if any(rung.reasons for rung in rungs):
        raise typer.Exit(1)


def _ladder(keys: list[str]) -> list[int]:
    from infx.plan.load import plans_for
    from infx.sources.tree import find_tree

    plans = plans_for(find_tree(Path.cwd()), keys, only=[], arms=[], quick=False)
    return sorted({point.concurrency for plan in plans for point in plan.points})


def _tell(rung: Rung) -> None:
    bound = "; ".join(rung.reasons) or "no"
    typer.echo(f"{rung.streams:>8} {rung.workers:>7} {rung.events_per_s:>10,.0f} {rung.us_per_event:>9.1f} "
               f"{rung.cpu_share:>6.0%} {rung.lag_p99_ms:>6.2f} ms  {bound}")


def _explain(rungs: list[Rung], judged: list[Meaning]) -> None:
    best = max(rungs, key=lambda rung: rung.ceiling)
    typer.echo(f"\nceiling: about {best.ceiling:,.0f} events a second with {best.workers} workers "
               "(90 % of a core for the busiest)\n")
    typer.echo("for this ladder, one event a token:")
    for one in judged:
        typer.echo(f"  concurrency {one.concurrency:>5}: {one.verdict}")
