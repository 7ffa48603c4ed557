"""Recipes and facts for tests of planning: small, made here, of no real model."""

from __future__ import annotations

from typing import Any

from infx.plan.expand import PlanFacts
from infx.schema.recipe import Recipe

FACTS = PlanFacts(model_path="org/model", token_ids=(10, 99), context=4096,
                  golden={(5, "dspark", "probabilistic", "thinking-on"): 3.51})


def recipe_dict(**changes: Any) -> dict[str, Any]:
    """A recipe as a mapping; ``changes`` replace top-level keys (underscores become dashes)."""
    base: dict[str, Any] = {
        "key": "toy", "image": "vllm/vllm-openai:v0.21.0", "model": "toy-model", "precision": "bf16",
        "hardware": "toy-gpu", "engine": "vllm", "runner": "toy-label",
        "scenario": {"kind": "fixed-seq-len", "isl": 256, "osl": 64},
        "env": {"A": "1"}, "serve": {"max-num-batched-tokens": 2048},
        "ladder": [{"tp": 1, "concurrency": [1, 2, 4]}, {"tp": 2, "concurrency": {"from": 1, "to": 4}}],
    }
    return {**base, **{name.replace("_", "-"): value for name, value in changes.items()}}


def recipe(**changes: Any) -> Recipe:
    """A recipe model; see recipe_dict."""
    return Recipe.model_validate(recipe_dict(**changes))
