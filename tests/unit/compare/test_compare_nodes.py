"""A slow node is named, with its figure; a point that one node alone measured says nothing."""

from __future__ import annotations

import pytest

from infx.compare.nodes import METRIC, node_means
from infx.compare.verdict import Options, compare

SPEED = {"n1": 1.0, "n2": 0.92, "n3": 1.0}


def fleet(make, name, speed, points=(4, 8, 16), status="ok"):
    return make.side(name, *(
        make.measured(f"{name}:{node}", c, figures={METRIC: 100.0 * c * factor}, node=node, status=status)
        for node, factor in speed.items() for c in points))


def notes(make, first, second):
    found = compare(first, second, Options(metrics=(METRIC,))).notes
    return [note.message for note in found if note.code == "node-stands-out"]


def test_one_node_8_percent_slower_is_named(make):
    (said,) = notes(make, fleet(make, "a", SPEED), fleet(make, "b", {"n1": 1.0, "n3": 1.01}))
    assert "the first side: n2 is 8.0% slower than the other nodes" in said and "3 points, 1 starts" in said


def test_of_two_nodes_the_slower_is_named(make):
    (said,) = notes(make, fleet(make, "a", {"n1": 1.0}), fleet(make, "b", {"n1": 1.0, "n2": 0.92}))
    assert "the second side: n2 is 8.0% slower" in said


def test_a_faster_node_among_three(make):
    (said,) = notes(make, fleet(make, "a", {"n1": 1.0, "n2": 1.0, "n3": 1.1}), fleet(make, "b", {"n1": 1.0}))
    assert "n3 is 10.0% faster" in said


@pytest.mark.parametrize("speed", [{"n1": 1.0, "n2": 0.96, "n3": 1.0}, {"n1": 1.0}])
def test_nothing_to_name(make, speed):
    assert notes(make, fleet(make, "a", speed), fleet(make, "b", speed)) == []


def test_points_are_compared_with_their_own_kind_only(make):
    """n2 measured the high rungs alone: its larger figures are the rungs', not the node's."""
    low = fleet(make, "a", {"n1": 1.0}, points=(4, 8))
    high = fleet(make, "a", {"n2": 1.0}, points=(64, 128))
    assert node_means({**low.points, **high.points}) == []


def test_ratios_are_averaged_over_points_as_ratios(make):
    points = {"tp2/c4": [make.measured("a:1", 4, figures={METRIC: 100.0}, node="n1"),
                         make.measured("a:2", 4, figures={METRIC: 50.0}, node="n2")],
              "tp2/c8": [make.measured("a:1", 8, figures={METRIC: 100.0}, node="n1"),
                         make.measured("a:2", 8, figures={METRIC: 200.0}, node="n2")]}
    assert [(mean.node, round(mean.ratio, 9), mean.points, mean.starts) for mean in node_means(points)] == [
        ("n1", 1.0, 2, 1), ("n2", 1.0, 2, 1)]


def test_bad_points_do_not_count(make):
    assert node_means(fleet(make, "a", SPEED, status="failed").points) == []
