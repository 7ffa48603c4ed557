"""Points that share a server have fingerprints of their own."""

from infx.plan.expand import expand
from tests.fakes.recipes import FACTS, recipe


def test_points_of_one_server_differ_by_their_concurrency():
    plan = expand(recipe(ladder=[{"tp": 1, "concurrency": [1, 2, 4]}]), FACTS, source="test")
    assert len({point.server for point in plan.points}) == 1
    assert len({point.fingerprint for point in plan.points}) == 3
