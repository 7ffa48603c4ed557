"""What a visit's output is set against, by the shipped facts; and when there is no word."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.plan.load import plans_for
from infx.run.expected import expectations
from infx.schema.result import Value
from infx.sources.tree import WorkingTree

TREE = WorkingTree(Path(__file__).parents[3])
DENSE, AGENTIC, CPU = "qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono", "dsv41flash-fp4-mi355x-vllm-agentic-dspark", "tiny-*"


@pytest.fixture(scope="module")
def expect():
    return expectations(TREE)


@pytest.fixture(scope="module")
def plans():
    return {key: plans_for(TREE, [key])[0] for key in (DENSE, AGENTIC, CPU)}


def metrics(rate, prompt=8192.0, output=1024.0, **more):
    named = {"output-throughput-per-gpu": rate, "input-length-mean": prompt, "output-length-mean": output, **more}
    return {name: Value(value=value, unit="x") for name, value in named.items()}


def point(plan, end):
    return next(one for one in plan.points if one.key.endswith(end))


def test_measured_over_limit_and_over_predicted(expect, plans):
    plan = plans[DENSE]
    found = expect(plan, point(plan, "tp1/c16"), metrics(1000.0), {}, False)
    # 1023 steps read 27.95 GB of weights and 16 × (8704 × 64 KiB + 152 MB): at 8.192 TB/s
    step = (27.95e9 + 16 * (8704 * 65536 + 2 * 76e6)) / 8.192e12
    assert found["limit-share"].value == pytest.approx(1000.0 / (16 * 1024 / (1023 * step)), rel=1e-3)
    assert 0.5 < found["prediction-ratio"].value < 1.5
    again = expect(plan, point(plan, "tp1/c16"), metrics(500.0), {}, False)
    assert again["prediction-ratio"].value == pytest.approx(found["prediction-ratio"].value / 2)


def test_a_simulated_run_is_never_set_against_the_simulator(expect, plans):
    found = expect(plans[DENSE], point(plans[DENSE], "tp1/c16"), metrics(1000.0), {}, True)
    assert set(found) == {"limit-share"}


@pytest.mark.parametrize(("key", "end", "why"), [
    (AGENTIC, "tp2/c8", "not calibrated on replays"), (CPU, "tp1/c1", "constants for cpu are assumed"),
])  # fmt: skip
def test_where_the_simulator_has_no_word_the_ratio_says_why(key, end, why, expect, plans):
    found = expect(plans[key], point(plans[key], end), metrics(10.0), {}, False)
    assert found["prediction-ratio"].value is None and why in found["prediction-ratio"].reason


def test_prefix_hits_and_accepted_drafts_enter_the_limit(expect, plans):
    plan, here = plans[AGENTIC], point(plans[AGENTIC], "tp2/c8")
    said = {"acceptance-length": 3.51, "prefix-hit-share": 0.9}
    engine = {name: Value(value=value, unit="x") for name, value in said.items()}
    asked = metrics(100.0, prompt=90000.0, output=500.0)
    hits, cold = (expect(plan, here, asked, one, True)["limit-share"].value for one in (engine, {}))
    assert hits < cold < 1
    crowded = expect(plan, here, metrics(100.0, 90000.0, 500.0, **{"streams-mean": 20.0}), engine, True)
    assert crowded["limit-share"].value < hits  # sub-agents: more in flight than lanes


def test_what_is_not_known_is_said_or_left_out(expect, plans):
    plan, here = plans[DENSE], point(plans[DENSE], "tp1/c16")
    assert expect(plan, here, {}, {}, False) == {}
    lengthless = {"output-throughput-per-gpu": Value(value=1.0, unit="x")}
    assert "lengths" in expect(plan, here, lengthless, {}, True)["limit-share"].reason
    wide = here.model_copy(update={"parallel": here.parallel.model_copy(update={"dp": 2})})
    assert "data parallelism" in expect(plan, wide, metrics(1.0), {}, True)["limit-share"].reason
    other = plan.model_copy(update={"model": "nobody-knows"})
    assert "nobody-knows" in expect(other, here, metrics(1.0), {}, True)["limit-share"].reason
    argv = plan.servers[here.server].model_copy(update={"argv": ["serve", "--no-such-flag"]})
    strange = plan.model_copy(update={"servers": {here.server: argv}})
    changed = here.model_copy(update={"fingerprint": "f1-other"})
    reason = expect(strange, changed, metrics(1.0), {}, False)["prediction-ratio"].reason
    assert reason == "the simulator does not take this server's arguments"


def test_configs_that_cannot_be_read_are_said(tmp_path, plans):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/simulator.yaml").write_text("a: b\n")
    found = expectations(WorkingTree(tmp_path))(
        plans[DENSE], plans[DENSE].points[0], metrics(1.0), {}, False)
    assert "configs cannot be read" in found["limit-share"].reason
