"""Which points a run would take away from the curve it is to replace."""

from __future__ import annotations

from dataclasses import dataclass

from infx.compare.sides import Side


@dataclass(frozen=True, slots=True)
class Coverage:
    """One layout: points that both sides measured, that only the old or only the new one did, that went bad.

    ``bad`` points are in the new side with no usable start, with their status.
    """

    curve: str
    kept: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def narrower(self) -> bool:
        """Whether the new side may not replace the old curve: it lacks usable points that the old one has."""
        return bool(self.missing or self.bad)

    def sentence(self) -> str:
        """What is lost and gained, by name."""
        parts = [f"{len(self.kept)} of {len(self.kept) + len(self.missing) + len(self.bad)} points of the old curve"]
        parts += [f"{word} {', '.join(labels)}" for word, labels in (
            ("missing:", self.missing), ("without a usable start:", self.bad), ("new:", self.added)) if labels]
        return f"{self.curve}: " + "; ".join(parts)


def coverage(old: Side, new: Side) -> list[Coverage]:
    """Coverage of each layout that either side has, in the order of the old side's curves."""
    curves: dict[str, tuple[list[str], list[str]]] = {}
    for index, side in enumerate((old, new)):
        for label, measured in side.points.items():
            pair = curves.setdefault(measured[0].facts.curve, ([], []))
            if index == 1 or side.good(label):
                pair[index].append(label)
    return [_curve(curve, before, after, new) for curve, (before, after) in curves.items()]


def _curve(curve: str, before: list[str], after: list[str], new: Side) -> Coverage:
    good = {label for label in after if new.good(label)}
    return Coverage(
        curve,
        kept=tuple(label for label in before if label in good),
        missing=tuple(label for label in before if label not in after),
        added=tuple(label for label in after if label in good and label not in before),
        bad=tuple(f"{label} ({new.points[label][-1].status})" for label in before if label in after
                  and label not in good),
    )
