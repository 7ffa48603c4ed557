"""What labels ask for, which contradict each other, and which of them restart a sweep."""

from __future__ import annotations

import pytest

from infx.ci.labels import MODIFIERS, PLAN_LABELS, PRIMARY, Ask, asked, restarts
from infx.errors import InputError


@pytest.mark.parametrize(("label", "points", "canary", "fail_fast"), [
    ("sweep-enabled", "lowest", False, False),
    ("full-sweep-enabled", "all", True, False),
    ("full-sweep-fail-fast", "all", True, True),
    ("full-sweep-enabled-no-canary", "all", False, False),
    ("full-sweep-fail-fast-no-canary", "all", False, True),
])
def test_each_primary_label(label, points, canary, fail_fast):
    assert asked(["bug", label]) == Ask(points, canary, fail_fast, "default", False, label)


def test_modifiers_change_a_sweep():
    assert asked(["full-sweep-enabled", "all-evals", "agentx-fast"]) == Ask(
        "all", True, False, "all", True, "full-sweep-enabled + agentx-fast + all-evals")
    assert asked(["sweep-enabled", "evals-only"]).evals == "only"


def test_modifiers_alone_start_nothing_and_say_so():
    ask = asked(["evals-only"])
    assert ask.points == "none" and ask.why == "evals-only start no sweep without a primary label"


def test_no_label_and_a_skipping_commit_start_nothing():
    assert asked(["documentation"]).points == "none"
    assert asked(["full-sweep-enabled"], "Fix a typo\n\n[skip-sweep]\n") == Ask(
        why="the head commit says [skip-sweep]")
    assert asked(["full-sweep-enabled"], "Mention skip-sweep").points == "all"


def test_every_problem_is_named_at_once():
    with pytest.raises(InputError) as caught:
        asked(["sweep-enabled", "full-sweep-enabled", "all-evals", "evals-only", "full-swep-fail-fast"])
    text = caught.value.message
    assert "full-sweep-enabled and sweep-enabled contradict each other" in text
    assert "all-evals and evals-only contradict each other" in text
    assert "'full-swep-fail-fast' is no label of a sweep (perhaps you meant 'full-sweep-fail-fast')" in text


@pytest.mark.parametrize(("label", "near"), [
    ("full_sweep_enabled", "full-sweep-enabled"), ("Sweep-Enabled", "sweep-enabled"), ("evals_only", "evals-only"),
    ("non-canary-full-sweep-enabled", "full-sweep-enabled-no-canary"), ("agentx-fats", "agentx-fast"),
])
def test_a_label_that_looks_like_one_is_named(label, near):
    with pytest.raises(InputError, match=f"{label}.*perhaps you meant '{near}'"):
        asked([label])


@pytest.mark.parametrize("label", ["skip_queue", "ci-checklist-complete", "engine-patch", "documentation", "bug"])
def test_priority_labels_never_restart_a_sweep(label):  # P42
    for primary in PRIMARY:
        assert not restarts([primary], [primary, label])
        assert not restarts([primary, label], [primary])


def test_labels_that_change_the_plan_restart_it():
    for label in PRIMARY:
        assert restarts([], [label]) and restarts([label], [])
        for modifier in MODIFIERS:
            assert restarts([label], [label, modifier])
    for modifier in MODIFIERS:
        assert not restarts([], [modifier])
    assert restarts(["sweep-enabled"], ["sweep-enabled", "full-sweep-enabled"])
    assert restarts(["full-sweep-enabled"], ["full-sweep-fail-fast"])
    assert not restarts(PLAN_LABELS[:1], PLAN_LABELS[:1])
