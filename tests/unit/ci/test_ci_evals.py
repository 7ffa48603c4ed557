"""Which points are evaluated: the rule of docs/ci.md by hand."""

from __future__ import annotations

import pytest

from infx.changelog.coverage import Recipes
from infx.ci.evals import eval_blocks, eval_points, eval_wants, explicit_evals
from infx.ci.labels import asked
from infx.plan.expand import expand
from infx.schema.changelog import Change
from infx.schema.recipe import Recipe
from tests.fakes.recipes import FACTS, recipe_dict

AGENTIC = {"kind": "agentic-coding", "traces": "t", "duration-s": 3600}


def plan_of(*rungs, **changes):
    ladder = [{"tp": tp, "concurrency": list(concurrencies)} for tp, concurrencies in rungs]
    return expand(Recipe.model_validate(recipe_dict(ladder=ladder, **changes)), FACTS, source="here")


def ends(keys):
    return [key.partition("/")[2] for key in keys]


@pytest.mark.parametrize(("rungs", "chosen"), [
    ([(2, [4, 8, 16, 32, 64])], ["tp2/c32", "tp2/c64"]),
    ([(2, [16, 32, 64, 128])], ["tp2/c64", "tp2/c128"]),
    ([(2, [1, 16])], ["tp2/c16"]), ([(2, [1, 2, 4])], ["tp2/c4"]),
    ([(2, [64, 1, 16]), (4, [8])], ["tp2/c64", "tp4/c8"]),
])
def test_fixed_ladders_highest_and_median_from_sixteen(rungs, chosen):
    assert ends(eval_points(plan_of(*rungs))) == chosen


def test_agentic_recipes_their_highest_concurrency_once():
    plan = plan_of((2, [1, 64]), (4, [1, 32]), scenario=AGENTIC)
    assert ends(eval_points(plan)) == ["tp2/c64"]
    assert len(eval_points(plan, every=True)) == 4


def test_one_block_a_server_and_its_name():
    parts = eval_blocks(plan_of((2, [1, 64]), (4, [1, 32])), every=False)
    assert [(part.blocks[0].id, ends(part.blocks[0].points)) for part in parts] == [
        ("evals-base-tp2", ["tp2/c64"]), ("evals-base-tp4", ["tp4/c32"])]
    assert [len(part.servers) for part in parts] == [1, 1]


def change(**more):
    return Change(config_keys=["a"], description=["d"], pr_link="XXX", **more)


@pytest.mark.parametrize(("labels", "more", "wants"), [
    (["full-sweep-enabled"], {}, {"a": False}), (["sweep-enabled"], {}, {}), ([], {"all_evals": True}, {}),
    (["full-sweep-enabled"], {"append_only": True}, {}), (["sweep-enabled"], {"evals_only": True}, {"a": False}),
    (["sweep-enabled"], {"all_evals": True}, {"a": True}), (["sweep-enabled", "all-evals"], {}, {"a": True}),
    (["sweep-enabled", "evals-only"], {"append_only": True}, {"a": False}),
])
def test_who_asks_for_evals(labels, more, wants):
    recipes = Recipes({}, {"a": {"a/tp1/c1": "1"}, "b": {}})
    assert eval_wants(asked(labels), [change(**more)], recipes) == wants
    assert eval_wants(asked(labels), [change(**more)], Recipes({"a": {}}, {})) == {}


def test_what_is_asked_for_by_name():
    recipes = Recipes({}, {"a": {}, "b": {}})
    assert explicit_evals(False, [change()], recipes) == []
    assert explicit_evals(True, [change()], recipes) == ["evals of a"]
    assert explicit_evals(False, [change(all_evals=True), change(evals_only=True)], recipes) == ["evals of a"]
