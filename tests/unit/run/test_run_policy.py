"""Modes of a sweep are policies over blocks."""

from __future__ import annotations

from infx.plan.expand import expand
from infx.run.policy import Outcome, fail_fast, ladder, visits
from infx.schema.result import Status
from tests.fakes.recipes import FACTS, recipe

PLAN = expand(recipe(), FACTS, source="test")


def walk(policy, statuses):
    done = []
    while (block := policy(done)) is not None:
        done.append(Outcome(block, {key: statuses.get(block.id, Status.OK) for key in block.points}))
    return [outcome.block.id for outcome in done]


def test_ladder_takes_every_block_whatever_happens():
    assert walk(ladder(PLAN), {"base-tp1": Status.FAILED}) == ["base-tp1", "base-tp2"]


def test_fail_fast_stops_at_the_first_bad_point():
    for bad in (Status.FAILED, Status.INVALID, Status.CLIENT_BOUND, Status.INTERRUPTED):
        assert walk(fail_fast(ladder(PLAN)), {"base-tp1": bad}) == ["base-tp1"]
    assert walk(fail_fast(ladder(PLAN)), {}) == ["base-tp1", "base-tp2"]


def test_the_first_point_is_revisited_at_the_end():
    block = PLAN.blocks[0]
    assert visits(block, revisit=True) == ["toy/tp1/c1", "toy/tp1/c2", "toy/tp1/c4", "toy/tp1/c1"]
    assert visits(block, revisit=False) == list(block.points)
    alone = block.model_copy(update={"points": ["toy/tp1/c1"]})
    assert visits(alone, revisit=True) == ["toy/tp1/c1"]
