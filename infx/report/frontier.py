"""The Pareto frontier of measured points: dominated points and exact ties dropped, nothing interpolated."""

from __future__ import annotations

from collections.abc import Sequence

from infx.schema.metrics import Better


def frontier(points: Sequence[tuple[float, float]], x_better: Better, y_better: Better) -> list[int]:
    """Indices of the points that no other point beats, in ascending order of x.

    ``points`` are (x, y) pairs; ``x_better`` and ``y_better`` say which way is better on each axis. A point
    is dropped when another is at least as good on both axes and better on one; of exact ties the first is
    kept. ValueError when an axis has no better side.
    """
    for better in (x_better, y_better):
        if better not in ("higher", "lower"):
            raise ValueError("a frontier needs axes that have a better side")
    gain = [(_gain(x, x_better), _gain(y, y_better)) for x, y in points]
    best_first = sorted(range(len(points)), key=lambda i: (-gain[i][0], -gain[i][1], i))
    kept: list[int] = []
    highest = float("-inf")
    for index in best_first:
        if gain[index][1] > highest:
            highest = gain[index][1]
            kept.append(index)
    return sorted(kept, key=lambda i: points[i])


def _gain(value: float, better: Better) -> float:
    return value if better == "higher" else -value
