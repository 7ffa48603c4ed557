"""Owns a curve as text: code hosts show no picture of an artefact in a comment, but they show text as it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 64, 16


@dataclass(frozen=True)
class Dots:
    """One series: a sign of one character, its name, and its points (x, y)."""

    sign: str
    name: str
    points: tuple[tuple[float, float], ...]


def sketch(series: Sequence[Dots], x: str, y: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    """The points on a grid from zero to the largest value of each axis; later series lie on top. Empty: no text."""
    every = [point for dots in series for point in dots.points]
    if not every:
        return ""
    right, top = max(p[0] for p in every) or 1.0, max(p[1] for p in every) or 1.0
    grid = [[" "] * width for _ in range(height)]
    for dots in series:
        for across, up in dots.points:
            column = min(width - 1, max(0, round(across / right * (width - 1))))
            row = min(height - 1, max(0, round(up / top * (height - 1))))
            grid[height - 1 - row][column] = dots.sign
    label = max(len(f"{top:.4g}"), 1)
    lines = [f"{(f'{top:.4g}' if index == 0 else '0' if index == height - 1 else ''):>{label}} │{''.join(row).rstrip()}"
             for index, row in enumerate(grid)]
    foot = f"{'':>{label}} └{'─' * width}"
    ends = f"{'':>{label}}  0{f'{right:.4g}':>{width - 1}}"
    legend = "   ".join(f"{dots.sign} {dots.name}" for dots in series if dots.points)
    return "\n".join([f"{y} over {x}", *lines, foot, ends, legend])
