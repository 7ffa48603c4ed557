"""``infx validate``: every finding of recipes and runner profiles at once, as path:line:col."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from infx.cli.options import AsJson


def command(
    paths: Annotated[list[Path] | None, typer.Argument(show_default=False, help="Files or folders; none: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check recipes and runner profiles against schema, catalog and each other. Exit code 3 when there is an error."""
    from infx.findings import errors
    from infx.plan.load import check_all
    from infx.sources.tree import find_tree

    tree = find_tree(Path.cwd())
    checked = check_all(tree, paths or [], Path.cwd())
    if as_json:
        typer.echo(json.dumps({"files": checked.files, "findings": [f.as_dict() for f in checked.findings]}, indent=1))
    else:
        for finding in checked.findings:
            typer.echo(str(finding))
        bad = len(errors(checked.findings))
        other = len(checked.findings) - bad
        typer.echo(f"{checked.files} files: {bad} errors, {other} other findings", err=True)
    if errors(checked.findings):
        raise typer.Exit(3)
