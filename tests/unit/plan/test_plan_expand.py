"""Expansion: keys, blocks, argv and golden acceptance."""

from __future__ import annotations

import pytest

from infx.errors import UsageError
from infx.plan.expand import expand
from infx.plan.generated import corpora, generated
from infx.plan.quick import quick
from infx.plan.select import one_block, only
from tests.fakes.recipes import FACTS, recipe


def plan(arms=(None,), **changes):
    return expand(recipe(**changes), FACTS, source="test", arms=arms)


def test_keys_and_blocks():
    made = plan()
    assert [p.key for p in made.points] == ["toy/tp1/c1", "toy/tp1/c2", "toy/tp1/c4",
                                            "toy/tp2/c1", "toy/tp2/c2", "toy/tp2/c4"]
    assert [(b.id, len(b.points)) for b in made.blocks] == [("base-tp1", 3), ("base-tp2", 3)]
    assert [p.parallel.gpus for p in made.points] == [1, 1, 1, 2, 2, 2]


def test_ladder_range_includes_its_end():
    made = plan(ladder=[{"tp": 1, "concurrency": {"from": 3, "to": 20}}])
    assert [p.concurrency for p in made.points] == [3, 6, 12, 20]


def test_override_of_one_point_gives_it_a_block_of_its_own():  # P36
    made = plan(overrides=[{"when": {"tp": 2, "concurrency": 2}, "serve": {"max-num-batched-tokens": 512}}])
    assert [(b.id, b.points) for b in made.blocks][1:] == [
        ("base-tp2.1", ["toy/tp2/c1", "toy/tp2/c4"]), ("base-tp2.2", ["toy/tp2/c2"])]
    before = {p.key: p.fingerprint for p in plan().points}
    assert [p.key for p in made.points if p.fingerprint != before[p.key]] == ["toy/tp2/c2"]


def test_arms_have_keys_of_their_own():
    made = expand(recipe(arms={"off": {"env": {"A": None}}}), FACTS, source="test", arms=(None, "off"))
    assert [p.key for p in made.points][6:8] == ["toy@off/tp1/c1", "toy@off/tp1/c2"]
    assert [b.id for b in made.blocks] == ["base-tp1", "base-tp2", "off-tp1", "off-tp2"]
    assert made.servers[made.blocks[2].server].env == {}


def test_argv_never_depends_on_sibling_points():
    whole = {p.key: (p.server, p.fingerprint) for p in plan().points}
    alone = plan(ladder=[{"tp": 2, "concurrency": [4]}])
    assert {p.key: (p.server, p.fingerprint) for p in alone.points}.items() <= whole.items()


SPEC = {"method": "dspark", "draft-tokens": 5, "thinking": "thinking-on", "draft-sample-method": "probabilistic",
        "rejection-sample-method": "block"}
AGENTIC = {"kind": "agentic-coding", "traces": "some", "duration-s": 60}


def test_agentic_is_synthetic_at_the_golden_length_and_fixed_is_real():
    agentic = plan(speculative=SPEC, scenario=AGENTIC)
    argv = agentic.servers[agentic.points[0].server].argv
    assert '"rejection_sample_method":"synthetic","synthetic_acceptance_length":3.51' in argv[
        argv.index("--speculative-config") + 1]
    assert agentic.points[0].acceptance_length == 3.51
    fixed = plan(speculative=SPEC)
    argv = fixed.servers[fixed.points[0].server].argv
    assert '"rejection_sample_method":"block"' in argv[argv.index("--speculative-config") + 1]
    assert fixed.points[0].acceptance_length is None


def test_only_takes_keys_ends_and_globs():
    made = plan()
    assert [p.key for p in only(made, ["tp2/c4", "toy/tp1/c1"]).points] == ["toy/tp1/c1", "toy/tp2/c4"]
    assert [p.key for p in only(made, ["tp1/*"]).points] == ["toy/tp1/c1", "toy/tp1/c2", "toy/tp1/c4"]
    assert list(only(made, ["tp1/*"]).servers) == [made.points[0].server]
    with pytest.raises(UsageError, match="no point of toy is named 'tp2/c3'") as caught:
        only(made, ["tp2/c3"])
    assert "tp2/c4" in str(caught.value)


def test_one_block():
    assert [p.key for p in one_block(plan(), "base-tp2").points] == ["toy/tp2/c1", "toy/tp2/c2", "toy/tp2/c4"]
    with pytest.raises(UsageError, match="no block 'base-tp3'"):
        one_block(plan(), "base-tp3")


def test_quick_shortens_every_point_and_changes_every_fingerprint():
    whole = plan(scenario={"kind": "fixed-seq-len", "isl": 2000, "osl": 1000})
    short = quick(whole)
    assert short.quick and [p.key for p in short.points] == [p.key for p in whole.points]
    assert {(p.workload.isl, p.workload.osl) for p in short.points} == {(2000, 64)}
    assert not {p.fingerprint for p in short.points} & {p.fingerprint for p in whole.points}
    assert {p.server for p in short.points} == {p.server for p in whole.points}
    assert {(p.stop.window_s, p.stop.cap_s) for p in short.points} == {(3.0, 5.0)}
    agentic = quick(plan(scenario=AGENTIC))
    assert agentic.points[0].workload.max_prompt_tokens == 4096 and agentic.points[0].workload.duration_s == 3.0
    assert agentic.points[0].workload.warmup_turns == 1


def test_context_limit_is_the_smaller_of_model_and_server():
    assert plan().points[0].context_limit == 4096
    assert plan(serve={"max-model-len": 1024}).points[0].context_limit == 1024


def test_a_plan_survives_json():
    made = plan(speculative=SPEC, scenario=AGENTIC)
    assert type(made).model_validate_json(made.model_dump_json()) == made


def test_values_with_equals_signs_and_truth_values_stay_what_they_are():  # P23
    """A value is never split at its equals signs, and true never becomes a word, in the plan, its JSON and the argv."""
    made = plan(env={"NOTE": "a=b=c"}, serve={"compilation-config": {"x": "a=b=c"}, "enable-expert-parallel": True})
    read = type(made).model_validate_json(made.model_dump_json())
    for server in read.servers.values():
        assert server.env["NOTE"] == "a=b=c"
        assert server.argv[server.argv.index("--compilation-config") + 1] == '{"x":"a=b=c"}'
        assert "--enable-expert-parallel" in server.argv
        assert not {"True", "true"} & set(server.argv)


def test_a_generator_in_a_corpus_place_has_fingerprints_of_its_own():
    named = plan(scenario=AGENTIC)
    assert {p.workload.traces for p in named.points} == {"some"} and list(corpora(named)) == ["some"]
    made = generated(named, "some", "coding-agent")
    assert {p.workload.traces for p in made.points} == {"generator:coding-agent"} and corpora(made) == {}
    assert not {p.fingerprint for p in made.points} & {p.fingerprint for p in named.points}
    assert generated(named, "another", "coding-agent") == named
