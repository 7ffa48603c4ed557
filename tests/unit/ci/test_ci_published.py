"""The published curve is more than the latest entry."""

from __future__ import annotations

from infx.ci.published import published
from infx.schema.changelog import Results, ResultsPoint


def entry(run, *points, recipe="a"):
    return Results(kind="results", run=run, recipe=recipe, runner="r", provenance=["measured"], points=[
        ResultsPoint(point=point, fingerprint=f"f-{run}", status="ok", sha256="0" * 64) for point in points])


def test_an_append_only_entry_adds_to_the_curve_and_the_newest_of_a_point_stands():  # P44
    side = published([entry("1", "a/tp2/c1", "a/tp2/c8"), entry("x", "b/tp2/c64", recipe="b"),
                      entry("2", "a/tp2/c8", "a/tp2/c16", "a@arm/tp2/c32")], "a")
    assert side is not None
    assert {label: found[0].run for label, found in side.points.items()} == {
        "tp2/c1": "1", "tp2/c8": "2", "tp2/c16": "2"}
    assert published([entry("1", "b/tp2/c1", recipe="b")], "a") is None
