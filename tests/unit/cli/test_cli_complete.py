"""What a Tab offers, from the files around the caller; what cannot be read offers nothing and breaks nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from infx.cli import complete

RECIPE = """\
image: vllm/vllm-openai:v0.21.0
model: m
precision: fp4
hardware: h
engine: vllm
runner: l
scenario: {kind: fixed-seq-len, isl: 8, osl: 8}
ladder: [{tp: 1, concurrency: [1, 2]}, {tp: 2, ep: 2, concurrency: {from: 4, to: 8}}]
arms: {fast: {serve: {x: 1}}}
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for folder in ("recipes/a", "configs", "runners"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "recipes/a/one-key.yaml").write_text(RECIPE)
    (tmp_path / "recipes/a/other-key.yaml").write_text(RECIPE.replace("tp: 1", "tp: 4").replace("fast", "slow"))
    (tmp_path / "recipes/a/broken.yaml").write_text("image: [")
    (tmp_path / "runners/simulator.yaml").write_text("")
    monkeypatch.chdir(tmp_path / "recipes")
    return tmp_path


def ctx(*args: str, **params):
    return SimpleNamespace(params=params, args=list(args))


def test_keys_are_file_stems_that_are_not_named_yet(repository):
    assert complete.keys(ctx(), "o") == ["one-key", "other-key"]
    assert complete.keys(ctx(keys=("one-key",)), "o") == ["other-key"]


def test_points_are_those_of_the_named_recipes(repository):
    assert complete.points(ctx(keys=("one-key",)), "") == ["tp1/c1", "tp1/c2", "tp2-ep2/c4", "tp2-ep2/c8"]
    assert complete.points(ctx("other-*"), "tp4") == ["tp4/c1", "tp4/c2"]
    assert complete.points(ctx(key="one-key"), "tp2-") == ["tp2-ep2/c4", "tp2-ep2/c8"]
    assert "tp4/c1" in complete.points(ctx(), "") and "tp1/c1" in complete.points(ctx(), "")


def test_arms_are_those_of_the_named_recipes(repository):
    assert complete.arms(ctx(keys=("one-key",)), "") == ["base", "fast"]
    assert complete.arms(ctx(), "s") == ["slow"]


def test_runners_codes_and_schemas(repository):
    assert complete.runners(ctx(), "s") == ["simulator"]
    assert ("R-016", "deprecated model, scenario or combination") in complete.lint_codes(ctx(), "r-01")
    offered = [name for name, _ in complete.schema_names(ctx(names=("recipe",)), "r")]
    assert offered == ["runner", "run", "result", "results"]


def test_an_unknown_key_and_a_broken_recipe_offer_nothing(repository):
    assert complete.points(ctx(keys=("nothing",)), "") == []
    assert complete.arms(ctx(keys=("broken",)), "") == ["base"]
