"""Where the small texts beside marks go, so that they cover neither marks nor each other. Pure geometry, pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot

DIRECTIONS = ((1, 1), (1, 0), (0, 1), (-1, 1), (1, -1), (0, -1), (-1, 0), (-1, -1))


@dataclass(frozen=True)
class Box:
    """A rectangle: centre and full width and height."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Area that the two share."""
        across = min((self.width + other.width) / 2 - abs(self.x - other.x), self.width, other.width)
        up = min((self.height + other.height) / 2 - abs(self.y - other.y), self.height, other.height)
        return max(0.0, across) * max(0.0, up)

    def outside(self, frame: Box) -> float:
        """Area of this box that lies outside ``frame``."""
        return self.width * self.height - self.overlap(frame)


@dataclass(frozen=True)
class Placed:
    """A label's centre, and whether it stands so far off that a line should lead to its mark."""

    x: float
    y: float
    led: bool


SOFT, FAR = 0.35, 14.0
"""Cost of covering a guide line against covering a mark, and of a label's distance from its mark."""


def place(
    marks: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    mark_size: float,
    frame: Box,
    lines: Sequence[tuple[float, float]] = (),
) -> list[Placed]:
    """A place for the label of each mark, same order.

    ``marks`` are centres, ``sizes`` widths and heights of the labels, ``mark_size`` the diameter of a mark,
    ``lines`` places along guide lines, which are better not covered. Greedy from the most crowded mark on: the
    cheapest of eight directions at five distances, where cost counts what is covered and how far off it is.
    """
    solid = [Box(x, y, mark_size, mark_size) for x, y in marks]
    order = sorted(range(len(marks)), key=lambda i: (_room(marks, i), i))
    taken: list[Box] = []
    found: dict[int, Placed] = {}
    for index in order:
        mark, size = marks[index], sizes[index]
        near = size[0] + size[1] + 5 * mark_size
        hard = [box for box in (*solid, *taken) if abs(box.x - mark[0]) < near and abs(box.y - mark[1]) < near]
        soft = [Box(x, y, 4.0, 4.0) for x, y in lines if abs(x - mark[0]) < near and abs(y - mark[1]) < near]
        box, reach = min(
            _candidates(mark, size, mark_size), key=lambda c: _cost(c[0], hard, soft, frame) + FAR * c[1]
        )
        taken.append(box)
        found[index] = Placed(box.x, box.y, reach > 0.8)
    return [found[index] for index in range(len(marks))]


def _candidates(
    mark: tuple[float, float], size: tuple[float, float], mark_size: float
) -> Iterator[tuple[Box, float]]:
    for reach in (0.0, 0.5, 1.2, 2.0, 3.0):
        gap = mark_size * (0.62 + reach)
        for dx, dy in DIRECTIONS:
            pull = 0.75 if dx and dy else 1.0
            across, up = dx * (gap * pull + size[0] / 2), dy * (gap * pull + size[1] / 2)
            yield Box(mark[0] + across, mark[1] + up, *size), reach


def _cost(box: Box, hard: Sequence[Box], soft: Sequence[Box], frame: Box) -> float:
    covered = sum(box.overlap(other) for other in hard)
    return 4 * (covered + box.outside(frame)) + SOFT * sum(box.overlap(other) for other in soft)


def _room(marks: Sequence[tuple[float, float]], index: int) -> float:
    x, y = marks[index]
    return min((hypot(x - a, y - b) for i, (a, b) in enumerate(marks) if i != index), default=float("inf"))
