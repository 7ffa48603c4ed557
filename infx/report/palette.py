"""Colours and markers of series, the same in pictures and pages."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette without yellow, which text on white cannot have (jfly.uni-koeln.de/color)."""

MARKERS = (
    ("o", "circle"), ("s", "square"), ("^", "triangle-up"), ("D", "diamond"), ("v", "triangle-down"),
    ("P", "cross"), ("X", "x"), ("<", "triangle-left"), (">", "triangle-right"),
)
"""Names of each marker for pictures and for pages."""


def ink(colour: str) -> str:
    """The colour darkened for text on white."""
    return "#" + "".join(f"{int(int(colour[i:i + 2], 16) * 0.68):02x}" for i in (1, 3, 5))
