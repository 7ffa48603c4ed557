"""Draws the floors of tests/repo/layers.toml: a picture and a table of rooms."""

from __future__ import annotations

import tomllib
from pathlib import Path

LAYERS = Path(__file__).resolve().parents[1] / "tests" / "repo" / "layers.toml"


def drawing() -> str:
    """The Mermaid picture (highest floor on top), the table of rooms and the list of edges, as Markdown."""
    layers = tomllib.loads(LAYERS.read_text(encoding="utf-8"))
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
    edges = ", ".join(f"`{name}`" for name in layers["edges"]["modules"])
    return "\n".join([*picture, "", *table, "", f"Only these touch disk, network, processes or the clock: {edges}."])
