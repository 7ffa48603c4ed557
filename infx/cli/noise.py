"""``infx noise``: stored noise floors, from repeated starts of a recipe without a change between them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from infx.cli.options import AsJson

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
                  help="Noise floors: how far starts differ by themselves.")

File = Annotated[Path | None, typer.Option("--noise", metavar="FILE", show_default=False,
                                           help="The file; default: configs/noise.yaml at the top.")]


@app.command()
def add(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, ids or parts of one; starts of one "
                                             "recipe in several runs count as repeats.")],
    noise: File = None,
    runs: Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of run folders.")] = Path("runs"),
) -> None:
    """Add the spread between the starts of these runs to the stored floors."""
    from infx.cli.compare_request import Desk
    from infx.compare.noise import add as added
    from infx.compare.noise import floors_of, render_book
    from infx.compare.select import arms_of
    from infx.compare.sides import side_of
    from infx.errors import UsageError
    from infx.results.store import write_whole

    desk = Desk(Path.cwd(), runs, None, noise if noise is None or noise.exists() else None, "repeats")
    path, book = desk.book()
    loaded = {found.run.id: found for found in map(desk.load, run)}
    by_recipe: dict[str, list] = {}
    for found in loaded.values():
        by_recipe.setdefault(found.run.recipe, []).append(found)
    sides = [side_of(recipe, group, arm) for recipe, group in by_recipe.items()
             for arm in dict.fromkeys(arm for each in group for arm in arms_of(each))]
    floors = floors_of(sides)
    if not floors:
        raise UsageError("no point of these runs was measured in two starts of one identity",
                         hint="repeat the sweep and name both runs, or use infx ab with --repeats")
    target = noise or path
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, render_book(added(book, list(loaded), floors)).encode())
    typer.echo(f"{target}: {len(floors)} floors from {len(loaded)} run(s)")


@app.command()
def show(noise: File = None, as_json: AsJson = False) -> None:
    """Print the stored floors."""
    import json

    from infx.cli.compare_request import Desk

    _, book = Desk(Path.cwd(), Path("runs"), None, noise, "repeats").book()
    if as_json:
        typer.echo(json.dumps(book.model_dump(mode="json", by_alias=True), indent=1))
        return
    for floor in book.floors:
        mark = "  simulated" if floor.simulated else ""
        typer.echo(f"{floor.recipe}  {floor.point}  {floor.metric}  {floor.sd:.2%} (df {floor.df}){mark}")
    if not book.floors:
        typer.echo("no floors are stored; infx noise add RUN… makes some")
