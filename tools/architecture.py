"""Draws the floors of tests/repo/layers.toml into docs/architecture.md, between its two marks.

Run it without arguments to write the file; `--check` only says whether the file is up to date (exit code 1 if not).
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ROOT / "tests" / "repo" / "layers.toml"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- begin: written by tools/architecture.py from tests/repo/layers.toml -->"
END = "<!-- end: written by tools/architecture.py -->"


def drawing(layers: dict) -> str:
    """The Mermaid picture (highest floor on top) and a table of rooms, for the parsed ``layers``."""
    floors = list(enumerate(layers["floor"]))
    picture = ["```mermaid", "flowchart TB"]
    for number, floor in reversed(floors):
        picture.append(f'  subgraph F{number}["{number} · {floor["name"]}"]')
        picture.append("    direction LR")
        picture += [f"    {room}" for room in floor["rooms"]]
        picture.append("  end")
    picture += [f"  F{number} --> F{number - 1}" for number, _ in reversed(floors) if number]
    picture += [f"  {ban['from']} -. never .-x {ban['to']}" for ban in layers["forbidden"]]
    picture.append("```")
    table = ["| floor | room | owns |", "| --- | --- | --- |"]
    for number, floor in reversed(floors):
        table += [f"| {number} | `{room}` | {owns} |" for room, owns in floor["rooms"].items()]
    edges = "Only these touch disk, network, processes or the clock: " + ", ".join(
        f"`{name}`" for name in layers["edges"]["modules"]
    )
    return "\n".join([*picture, "", *table, "", edges + "."])


def fill(page: str, text: str) -> str:
    """``page`` with ``text`` between its marks. Raises ValueError when a mark is missing."""
    before, rest = page.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Writes or checks the page; returns the exit code."""
    page = PAGE.read_text(encoding="utf-8")
    wanted = fill(page, drawing(tomllib.loads(LAYERS.read_text(encoding="utf-8"))))
    if "--check" in arguments:
        return int(page != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
