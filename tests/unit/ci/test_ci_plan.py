"""Jobs of a sweep from plans made here: the canary's choice, shards, claims' arms, costs."""

from __future__ import annotations

import pytest

from infx.changelog.coverage import Recipes
from infx.ci.estimate import Span
from infx.ci.labels import asked
from infx.ci.plan import Wanted, fast, lowest, sweep, wanted
from infx.errors import InputError
from infx.plan.expand import expand
from infx.schema.changelog import Change, Expect
from infx.schema.recipe import Recipe
from tests.fakes.recipes import FACTS, recipe_dict

AGENTIC = {"kind": "agentic-coding", "traces": "t", "duration-s": 3600, "warmup-turns": 3}


def plan_of(**changes):
    return expand(Recipe.model_validate(recipe_dict(**changes)), FACTS, source="here")


def shape(made):
    return [(job.name, [key.rpartition("/")[2] for key in job.block.points]) for job in made.jobs]


def run(label, *plans, **more):
    return sweep(asked([label]), [(plan, None) for plan in plans], lambda plan: f"on-{plan.label}", **more)


BIG = plan_of(key="big", ladder=[{"tp": 4, "concurrency": [1, 2]}], scenario=AGENTIC)
SMALL = plan_of(key="small", ladder=[{"tp": 2, "concurrency": [8, 4, 16]}, {"tp": 4, "concurrency": [2]}],
                scenario=AGENTIC)


def test_the_canary_is_the_lowest_point_where_it_costs_least_and_leaves_the_rest():
    made = run("full-sweep-enabled", BIG, SMALL)
    assert made.canary is not None
    assert made.canary.name == "small canary-base-tp2" and made.canary.block.points == ["small/tp2/c4"]
    assert made.canary.runner == "on-toy-label"
    assert shape(made) == [("big base-tp4", ["c1", "c2"]), ("small base-tp2", ["c8", "c16"]),
                           ("small base-tp4", ["c2"])]


def test_a_sweep_of_one_point_is_its_own_canary():
    one = plan_of(ladder=[{"tp": 1, "concurrency": [1]}])
    made = run("full-sweep-enabled", one)
    assert made.canary is not None and made.jobs == () and made.estimate.points == 1


def test_no_plan_has_no_canary():
    made = run("full-sweep-enabled")
    assert made.canary is None and made.jobs == () and made.estimate.starts == 0


def test_the_lowest_concurrency_of_each_family():
    assert [point.key for point in lowest(SMALL).points] == ["small/tp2/c4", "small/tp4/c2"]


def test_shards_cut_each_block_and_lose_nothing():
    made = run("full-sweep-enabled-no-canary", SMALL, shards=2)
    assert shape(made) == [("small base-tp2-1of2", ["c8"]), ("small base-tp2-2of2", ["c4", "c16"]),
                           ("small base-tp4", ["c2"])]
    assert {job.plan.points[0].fingerprint for job in made.jobs} <= {point.fingerprint for point in SMALL.points}
    with pytest.raises(InputError, match="0 shards"):
        run("sweep-enabled", SMALL, shards=0)


def test_costs_by_hand():
    fixed = plan_of(ladder=[{"tp": 2, "concurrency": [1, 2]}], stop={"window-s": 60, "cap-s": 100})
    made = run("full-sweep-enabled", fixed, startup_s=40)
    # canary: 40 + 60..100; then one point again: the same, both on two GPUs
    assert made.estimate.wall == Span(200, 280) == made.estimate.serial
    assert made.estimate.gpu_hours == Span(pytest.approx(400 / 3600), pytest.approx(560 / 3600))
    whole = run("full-sweep-enabled-no-canary", fixed, startup_s=40)
    assert whole.estimate.wall == Span(40 + 3 * 60, 40 + 3 * 100)


def test_fast_points_are_other_points_and_fixed_ones_stay():
    plan = fast(BIG)
    assert plan.unofficial and not BIG.unofficial
    assert (plan.points[0].workload.warmup_turns, plan.points[0].workload.duration_s) == (1, 1200)
    assert plan.points[0].fingerprint != BIG.points[0].fingerprint
    fixed = plan_of()
    assert fast(fixed) is fixed


def change(*keys, **more):
    return Change(config_keys=list(keys), description=["d"], pr_link="XXX", **more)


RECIPES = Recipes({"a": {"a/tp1/c1": "1"}, "gone": {}},
                  {"a": {"a/tp1/c1": "1", "a/tp1/c2": "2"}, "b": {"b@x/tp1/c1": "3"}})


def test_append_only_entries_want_the_added_points_unless_another_wants_all():
    assert wanted([change("a", append_only=True)], RECIPES)[0] == [Wanted("a", (), frozenset({"a/tp1/c2"}))]
    assert wanted([change("a", append_only=True), change("a")], RECIPES)[0] == [Wanted("a", (), None)]


def test_claims_bring_their_arms_and_what_is_not_measured_is_said():
    claim = Expect(points="all", metric="itl-p50", verdict="better", arm="x", against="y")
    assert wanted([change("b", expect=[claim])], RECIPES)[0] == [Wanted("b", ("x", "y"), None)]
    found, notes = wanted([change("gone"), change("b", evals_only=True)], RECIPES)
    assert found == [] and notes == ["gone is removed by this branch: nothing to measure",
                                     "b: an evals-only entry asks for no throughput"]
