"""Recorded and live answers through a whole sweep on the simulator: what is hit is what theory says, for both."""

from __future__ import annotations

import json

import pytest

RECIPE = """image: placeholder:toy
model: qwen3.8-27b-mxfp4
precision: fp4
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario:
  {{kind: agentic-coding, traces: small-coding-agent, duration-s: 4, idle-cap-s: 0.1, warmup-turns: 1,
    answers: {answers}}}
serve: {{max-model-len: 2048}}
ladder: [{{tp: 1, concurrency: [2]}}]
"""


def shares(repository, answers: str) -> tuple[float, float, float]:
    """(theoretical, by the engine's counters, mean of fresh prompt tokens) of one point."""
    repository.write("recipes/toy.yaml", RECIPE.format(answers=answers))
    done = repository.infx("sweep", "toy", "--runner", "simulator", "--out", answers)
    (file,) = (repository.root / answers).glob("*/points/*/*/*/result.json")
    visit = json.loads(file.read_text())["visits"][0]
    assert visit["status"] in ("ok", "client-bound") and visit["counts"]["measured"] > 5, done.stderr
    return (visit["metrics"]["theoretical-hit-share"]["value"], visit["engine"]["prefix-hit-share"]["value"],
            visit["metrics"]["new-input-length-mean"]["value"])


@pytest.mark.timeout(200)
def test_live_answers_are_hit_where_recorded_ones_are_computed(repository):
    recorded, live = shares(repository, "recorded"), shares(repository, "live")
    for theory, hit, _ in (recorded, live):
        assert hit == pytest.approx(theory, abs=0.01)
    assert live[2] < recorded[2], "what the engine generated need not be computed again"
