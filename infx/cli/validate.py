"""``infx validate``: every finding of recipes and runner profiles at once, as path:line:col."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from infx.cli.complete import lint_codes
from infx.cli.options import AsJson


def command(
    paths: Annotated[list[Path] | None, typer.Argument(show_default=False, help="Files or folders; none: all.")] = None,
    as_json: AsJson = False,
    explain: Annotated[str | None, typer.Option("--explain", metavar="CODE", show_default=False,
                                                autocompletion=lint_codes,
                                                help="Print what a code means and how to mend it.")] = None,
) -> None:
    """Check recipes and runner profiles against schema, catalog, each other and every rule of docs/lint.md.

    Exit code 3 when there is an error.
    """
    if explain is not None:
        _explain(explain)
        return
    from infx.findings import errors
    from infx.lint.about import linter
    from infx.plan.load import check_all
    from infx.sources.tree import find_tree

    tree = find_tree(Path.cwd())
    check, found = linter(tree)
    checked = check_all(tree, paths or [], Path.cwd(), check)
    checked = replace(checked, findings=tuple(sorted({*checked.findings, *found})))
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


def _explain(code: str) -> None:
    from infx.errors import UsageError
    from infx.findings import did_you_mean
    from infx.lint.pages import codes, explain

    page = explain(code)
    if page is None:
        raise UsageError(f"there is no code {code!r}", allowed="the codes of docs/lint.md",
                         hint=did_you_mean(code.upper(), codes(), 0.5))
    typer.echo(page)
