"""``infx plan``: what recipes expand to."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Arm, AsJson, Keys, Only, Quick

if TYPE_CHECKING:
    from infx.schema.plan import Plan


def command(
    keys: Keys = None,
    only: Only = None,
    arm: Arm = None,
    quick: Quick = False,
    as_json: AsJson = False,
    keys_only: Annotated[bool, typer.Option("--keys", help="Print point keys, one a line.")] = False,
) -> None:
    """Show points, resolved argv and environment, fingerprints and blocks (points that share one engine start)."""
    import os

    from infx.plan.load import plans_for
    from infx.run.workload import with_hashes
    from infx.sources.tree import find_tree

    tree = find_tree(Path.cwd())
    plans = [with_hashes(plan, Path.cwd(), os.environ)
             for plan in plans_for(tree, keys or [], only=only or [], arms=arm or [], quick=quick)]
    if as_json:
        typer.echo(json.dumps([plan.model_dump(mode="json", by_alias=True) for plan in plans], indent=1))
    elif keys_only:
        for plan in plans:
            for point in plan.points:
                typer.echo(point.key)
    else:
        for plan in plans:
            _print(plan)


def _print(plan: Plan) -> None:
    from infx.plan.generated import corpora

    typer.echo(f"{plan.recipe}: {len(plan.points)} points in {len(plan.blocks)} engine starts "
               f"({plan.engine} on {plan.hardware}, label {plan.label}{', quick' if plan.quick else ''})")
    for block in plan.blocks:
        server = plan.servers[block.server]
        typer.echo(f"\n  block {block.id}  server {server.id}  {server.parallel.gpus} GPU  {server.image}")
        for name, value in server.env.items():
            typer.echo(f"    {name}={shlex.quote(value)}")
        typer.echo(f"    {shlex.join([server.engine, *server.argv])}")
        for key in block.points:
            typer.echo(f"    {plan.point(key).fingerprint}  {key}")
    for name, sha256 in corpora(plan).items():
        typer.echo(f"\n  traces {name}: sha256 {sha256 or 'unknown (not pinned, and no INFX_TRACES)'}")
    if plan.assumed:
        typer.echo(f"\n  assumed (no source): {', '.join(plan.assumed)}")
    typer.echo("")
