"""Nodes that stand out among the starts of one side: their means against the other nodes', point by point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infx.compare.sides import Measured

METRIC = "output-throughput-per-gpu"
NOTABLE = 0.05
"""A node is named from this difference on; below it, starts on one node differ as much."""


@dataclass(frozen=True)
class NodeMean:
    """A node against the others: ratio of mean throughputs (geometric over points), and from how much."""

    node: str
    ratio: float
    points: int
    starts: int

    @property
    def text(self) -> str:
        """`n2 is 8.0 % slower than the other nodes (…)`."""
        word = "slower" if self.ratio < 1 else "faster"
        return (f"{self.node} is {abs(1 - self.ratio):.1%} {word} than the other nodes (output throughput per GPU, "
                f"{self.points} points, {self.starts} starts)")


def node_means(measured: Mapping[str, Sequence[Measured]]) -> list[NodeMean]:
    """Every node against the others, over the points (label → starts) that it shares with another node.

    At each point a node's mean over its starts is divided by the mean of the other nodes' means; the ratios are
    averaged geometrically. A point that one node alone measured says nothing of it.
    """
    logs: dict[str, list[float]] = {}
    starts: dict[str, set[str]] = {}
    for found in measured.values():
        means = _means(found, starts)
        for node, mean in means.items():
            others = [other for name, other in means.items() if name != node]
            if others:
                logs.setdefault(node, []).append(math.log(mean / (sum(others) / len(others))))
    return [NodeMean(node, math.exp(sum(found) / len(found)), len(found), len(starts[node]))
            for node, found in sorted(logs.items())]


def standing_out(measured: Mapping[str, Sequence[Measured]]) -> list[NodeMean]:
    """The nodes that differ by NOTABLE or more; of two that only differ from each other, the slower."""
    found = [mean for mean in node_means(measured) if abs(1 - mean.ratio) >= NOTABLE]
    if len(found) == 2 and len(node_means(measured)) == 2:
        return [min(found, key=lambda mean: mean.ratio)]
    return sorted(found, key=lambda mean: mean.ratio)


def _means(found: Iterable[Measured], starts: dict[str, set[str]]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for m in found:
        value = m.values.get(METRIC)
        if m.facts.node and m.ok and value is not None and value.value:
            values.setdefault(m.facts.node, []).append(value.value)
            starts.setdefault(m.facts.node, set()).add(m.start)
    return {node: sum(each) / len(each) for node, each in values.items()}
