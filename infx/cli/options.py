"""Options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from infx.cli import complete

Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY|GLOB]...", show_default=False,
                                                  autocompletion=complete.keys,
                                                  help="Recipe keys or globs; none means every recipe.")]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="POINT", show_default=False,
                                                autocompletion=complete.points,
                                                help="Only this point: key, its end (tp2/c64) or glob; repeatable.")]
Arm = Annotated[list[str] | None, typer.Option("--arm", metavar="NAME", show_default=False,
                                               autocompletion=complete.arms,
                                               help="This arm instead of the base (its name: base); repeatable.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quick = Annotated[bool, typer.Option("--quick", help="Every point, shortened to seconds; never publishable.")]
RunnerName = Annotated[str | None, typer.Option("--runner", "-r", metavar="NAME", show_default=False,
                                                autocompletion=complete.runners,
                                                help="Runner profile (runners/NAME.yaml).")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder in which run folders are made.")]
