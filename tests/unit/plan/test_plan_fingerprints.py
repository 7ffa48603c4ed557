"""Perturb every field of a recipe: exactly the right fingerprints change."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from infx.plan.expand import PlanFacts, expand
from infx.schema.recipe import AgenticCoding, FixedSeqLen, Override, Recipe, Rung, Scenario, Speculative
from tests.fakes.recipes import FACTS, recipe_dict

ALL, NONE = "all", "none"
SPEC = {"method": "dspark", "draft-tokens": 5, "thinking": "thinking-on", "draft-sample-method": "probabilistic",
        "rejection-sample-method": "block", "adaptive-verification": False, "acceptance": "real"}
LADDER = [{"tp": 1, "concurrency": [1, 2, 4]}, {"tp": 2, "concurrency": [1, 2, 4]}]
TP1, TP2 = {"toy/tp1/c1", "toy/tp1/c2", "toy/tp1/c4"}, {"toy/tp2/c1", "toy/tp2/c2", "toy/tp2/c4"}

CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "key": ({"key": "toy"}, NONE),
    "image": ({"image": "vllm/vllm-openai:v0.22.0"}, ALL),
    "model": ({}, ALL),  # through the catalog's facts, below
    "precision": ({"precision": "fp8"}, ALL),
    "hardware": ({"hardware": "other-gpu"}, ALL),
    "engine": ({}, NONE),  # one engine so far
    "runner": ({"runner": "other-label"}, NONE),
    "upstream-recipe": ({"upstream-recipe": "https://example.org/x"}, NONE),
    "scenario": ({"scenario": {"kind": "fixed-seq-len", "isl": 300, "osl": 64}}, ALL),
    "speculative": ({"speculative": {**SPEC, "draft-tokens": 4}}, ALL),
    "kv-offload": ({"kv-offload": {"tier": "dram", "backend": "lmcache", "dram-utilization": 0.5}}, ALL),
    "env": ({"env": {"A": "2"}}, ALL),
    "serve": ({"serve": {"max-num-batched-tokens": 4096}}, ALL),
    "ladder": ({"ladder": [LADDER[0], {"tp": 2, "concurrency": [1, 2, 4, 8]}]}, NONE),
    "overrides": ({"overrides": [{"when": {"tp": 2, "concurrency": {"max": 2}}, "env": {"B": "1"}}]},
                  {"toy/tp2/c1", "toy/tp2/c2"}),
    "arms": ({"arms": {"x": {"env": {"A": None}}}}, NONE),
    "stop": ({"stop": {"min-requests": 99}}, NONE),
    "notes": ({"notes": "hello"}, NONE),
}


def prints(changes: dict[str, Any], facts: PlanFacts = FACTS) -> dict[str, str]:
    base = recipe_dict(speculative=SPEC, ladder=LADDER)
    plan = expand(Recipe.model_validate({**base, **changes}), facts, source="t")
    return {point.key: point.fingerprint for point in plan.points}


def changed(changes: dict[str, Any], facts: PlanFacts = FACTS) -> set[str]:
    before, after = prints({}), prints(changes, facts)
    return {key for key in before if before[key] != after.get(key)}


def test_every_field_of_a_recipe_has_a_case():
    fields = {field.alias or name for name, field in Recipe.model_fields.items()}
    assert {name.replace("_", "-") for name in fields} == set(CASES)


@pytest.mark.parametrize("name", [name for name, (changes, _) in CASES.items() if changes])
def test_exactly_the_right_points_change(name):
    changes, expected = CASES[name]
    wanted = TP1 | TP2 if expected == ALL else set() if expected == NONE else expected
    assert changed(changes) == wanted


def sub_cases() -> list[tuple[str, dict[str, Any], Any]]:
    made: list[tuple[str, dict[str, Any], Any]] = []
    other = {"method": "mtp", "draft-tokens": 2, "model": "org/draft", "draft-sample-method": "greedy",
             "rejection-sample-method": "standard", "adaptive-verification": True}
    made += [(f"speculative.{name}", {"speculative": {**SPEC, name: value}}, ALL) for name, value in other.items()]
    made += [("speculative.thinking", {"speculative": {**SPEC, "thinking": "thinking-off"}}, NONE),
             ("speculative.acceptance", {"speculative": {**SPEC, "acceptance": "golden"}}, ALL)]
    made += [(f"ladder.{axis}", {"ladder": [LADDER[0], {**LADDER[1], axis: 2}]}, TP2)
             for axis in ("pp", "dp", "ep")]
    agentic = {"kind": "agentic-coding", "traces": "a", "duration-s": 60.0}
    made += [(f"scenario.{name}", {"scenario": {**agentic, name: value}}, ALL) for name, value in
             {"traces": "b", "duration-s": 61.0, "idle-cap-s": 9.0, "warmup-turns": 3}.items()]
    return made


@pytest.mark.parametrize(("name", "changes", "expected"), sub_cases(), ids=lambda value: str(value)[:30])
def test_fields_below(name, changes, expected):
    if name.startswith("scenario."):
        base = {"scenario": {"kind": "agentic-coding", "traces": "a", "duration-s": 60.0}}
        before, after = prints(base), prints(changes)
        assert all(before[key] != after[key] for key in before)
    elif name.startswith("ladder."):
        assert changed(changes) == expected  # their keys are new, so the old ones are gone
    else:
        assert changed(changes) == (set() if expected == NONE else TP1 | TP2)


def test_sub_cases_cover_the_models():
    names = {name for name, _, _ in sub_cases()}
    for prefix, model in (("speculative", Speculative),):
        assert {f"{prefix}.{(f.alias or n)}" for n, f in model.model_fields.items()} <= names
    assert {"tp", "pp", "dp", "ep", "concurrency"} == set(Rung.model_fields)
    assert set(get_args(get_args(Scenario)[0])) == {FixedSeqLen, AgenticCoding}
    assert {"image", "env", "serve", "speculative", "when"} == set(Override.model_fields)


def test_catalog_facts_that_enter():
    for facts in (PlanFacts("org/other", (10, 99), 4096), PlanFacts("org/model", (10, 99), 4096, dataset_hash="00")):
        assert changed({}, facts) == TP1 | TP2
    assert changed({}, PlanFacts("org/model", (10, 99), 4096, assumed=("x",))) == set()


def test_yaml_key_order_does_not_matter():
    one = prints({"serve": {"a": 1, "b": 2}, "env": {"X": "1", "Y": "2"}})
    two = prints({"serve": {"b": 2, "a": 1}, "env": {"Y": "2", "X": "1"}})
    assert one == two


def test_a_fingerprint_is_what_it_was():
    """The spelling of fingerprints is part of the format: a change here needs a new version prefix."""
    assert prints({})["toy/tp1/c1"] == "f1-6c389723129e0e9a"
