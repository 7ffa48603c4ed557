"""Merging base → overrides → arm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.plan.merge import merge_patch, resolve
from tests.fakes.recipes import recipe


def resolved(made, concurrency=1, arm=None, rung=0):
    return resolve(made, made.ladder[rung], concurrency, arm)


def test_overrides_apply_in_order_and_arm_last():
    made = recipe(
        overrides=[
            {"when": {"tp": 1}, "env": {"A": "2", "B": "x"}},
            {"when": {"concurrency": {"min": 2}}, "env": {"A": "3"}},
        ],
        arms={"other": {"env": {"A": "4", "B": None}}},
    )
    assert resolved(made).env == {"A": "2", "B": "x"}
    assert resolved(made, 2).env == {"A": "3", "B": "x"}
    assert resolved(made, 2, "other").env == {"A": "4"}
    assert resolved(made, 4, rung=1).env == {"A": "3"}
    assert resolved(made, 2).overrides == (0, 1) and resolved(made, 1, rung=1).overrides == ()


def test_null_removes_and_spellings_are_one_key():
    made = recipe(serve={"max_num_seqs": 8, "block-size": 16},
                  arms={"x": {"serve": {"max-num-seqs": None, "block_size": 32}}})
    assert resolved(made).serve == {"max-num-seqs": 8, "block-size": 16}
    assert resolved(made, arm="x").serve == {"block-size": 32}


def test_mappings_merge_and_lists_replace():
    base = {"a": {"x": 1, "y": {"z": 2}}, "l": [1, 2]}
    assert merge_patch(base, {"a": {"y": {"z": None, "w": 3}}, "l": [9]}) == {"a": {"x": 1, "y": {"w": 3}}, "l": [9]}
    assert base == {"a": {"x": 1, "y": {"z": 2}}, "l": [1, 2]}


def test_speculative_is_kept_removed_or_replaced():
    spec = {"method": "mtp", "draft-tokens": 2}
    made = recipe(speculative=spec, arms={"none": {"speculative": None}, "same": {"env": {"Z": "1"}},
                                          "more": {"speculative": {"method": "mtp", "draft-tokens": 3}}})
    assert resolved(made, arm="none").speculative is None
    assert resolved(made, arm="same").speculative.draft_tokens == 2
    assert resolved(made, arm="more").speculative.draft_tokens == 3


@pytest.mark.parametrize(("when", "matching"), [
    ({}, [1, 2, 4]), ({"concurrency": 2}, [2]), ({"concurrency": [1, 4]}, [1, 4]),
    ({"concurrency": {"max": 2}}, [1, 2]), ({"tp": 2}, []), ({"tp": [1, 2], "concurrency": {"min": 3}}, [4]),
])
def test_when(when, matching):
    made = recipe(overrides=[{"when": when, "env": {"HIT": "1"}}])
    assert [c for c in (1, 2, 4) if "HIT" in resolved(made, c).env] == matching


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=3),
                    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3), max_leaves=8)


@given(JSON, st.dictionaries(st.text(max_size=2), JSON, max_size=3))
def test_merge_patch_is_idempotent(base, patch):
    once = merge_patch(base, patch)
    assert merge_patch(once, patch) == once
