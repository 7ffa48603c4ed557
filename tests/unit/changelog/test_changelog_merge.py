"""Merging: both ways, stacked, squashed, picked; what is a conflict; and a thousand random histories."""

from __future__ import annotations

import pytest

from infx.changelog.gate import check
from infx.changelog.merge import merge
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.schema.changelog import Change
from tests.fakes.changelog_histories import HEADS, Count, Memory, play

HISTORIES = 1000
CHUNK = 50


def entry(name, link="XXX"):
    return render(Change(config_keys=[f"key-{name}"], description=["the same words"],
                         pr_link=link if link == "XXX" else f"https://git.example/o/n/pull/{link}"))


def file(*bodies, base=b""):
    return join(base, bodies, len(base))


OLD = file(entry("old", 1))


def merged(ancestor, ours, theirs, trunk, **options):
    result = merge(ancestor, ours, theirs, [trunk], **options)
    assert result.conflicts == []
    return result.data


@pytest.mark.parametrize("base", HEADS)
def test_two_appends_of_one_skeleton_stay_two_with_the_trunk_first(base):  # P37
    trunk, branch = file(entry("t"), base=base), file(entry("b"), base=base)
    both = file(entry("b"), base=trunk)
    assert merged(base, branch, trunk, trunk) == both
    assert merged(base, trunk, branch, trunk) == both
    assert merged(base, trunk, branch, trunk, joining=False) == both
    assert check(both, trunk) == []


def test_without_a_trunk_ref_ours_comes_first():
    one, other = file(entry("a"), base=OLD), file(entry("b"), base=OLD)
    assert merge(OLD, one, other).data == file(entry("a"), entry("b"), base=OLD)


def test_a_trunk_that_is_behind_still_decides_by_the_next_one():
    trunk, branch = file(entry("t"), base=OLD), file(entry("b"), base=OLD)
    assert merge(OLD, branch, trunk, [OLD, trunk]).data == file(entry("b"), base=trunk)


def test_a_link_filled_in_by_a_second_commit_survives_a_rebase():
    trunk = file(entry("t", 2), base=OLD)
    pending, filled = file(entry("b"), base=OLD), file(entry("b", 3), base=OLD)
    first = merged(OLD, trunk, pending, trunk, joining=False)
    assert merged(pending, first, filled, trunk, joining=False) == file(entry("b", 3), base=trunk)


def test_a_stacked_branch_keeps_only_its_own_when_the_lower_one_lands_squashed_with_its_link():
    upper = file(entry("low"), entry("up"), base=OLD)
    trunk = file(entry("low", 7), base=OLD)
    result = merge(OLD, upper, trunk, [trunk])
    assert result.data == file(entry("up"), base=trunk)
    assert len(result.notes) == 1 and "key-low" in result.notes[0]


def test_a_repeat_of_an_entry_of_the_base_stays():
    branch, trunk = file(entry("old", 1), base=OLD), file(entry("t", 2), base=OLD)
    assert merged(OLD, branch, trunk, trunk) == file(entry("old", 1), base=trunk)


def test_a_repeat_within_one_branch_stays_when_its_first_lands():
    branch, trunk = file(entry("d", 4), entry("d", 4), base=OLD), file(entry("d", 4), base=OLD)
    assert merged(OLD, branch, trunk, trunk) == file(entry("d", 4), base=trunk)


def test_entries_that_stand_in_another_order_than_on_the_trunk_go_behind_it():
    trunk = file(entry("a", 2), base=OLD)
    branch = file(entry("own"), entry("a", 2), base=OLD)
    assert merged(trunk, branch, trunk, trunk) == file(entry("own"), base=trunk)


def test_a_pick_of_a_trunk_entry_goes_to_the_trunks_place():
    trunk, branch = file(entry("t", 2), base=OLD), file(entry("b"), base=OLD)
    assert merged(OLD, branch, trunk, trunk, joining=False) == file(entry("b"), base=trunk)


def test_a_backport_does_not_bring_what_it_was_not_asked_for():
    trunk = file(entry("t", 2), entry("u", 3), base=OLD)
    assert merged(file(entry("t", 2), base=OLD), OLD, trunk, trunk, joining=False) == file(entry("u", 3), base=OLD)


def test_an_entry_of_ones_own_may_be_dropped_and_edited():
    trunk = file(entry("t", 2), base=OLD)
    ancestor = file(entry("a"), entry("b"), base=OLD)
    ours = file(entry("a"), entry("b"), base=trunk)
    theirs = file(entry("b", 5), base=OLD)
    assert merged(ancestor, ours, theirs, trunk, joining=False) == file(entry("b", 5), base=trunk)


CONFLICTS = {
    "revert of a trunk entry": (file(entry("t", 2), base=OLD), file(entry("t", 2), base=OLD), OLD, "on the trunk"),
    "edit of a trunk entry": (OLD, file(entry("b"), base=OLD), OLD.replace(b"same", b"other"), "on the trunk"),
    "two edits of one entry": (
        file(entry("b"), base=OLD), file(entry("b", 3), base=OLD), file(entry("b", 4), base=OLD), "both sides changed"),
    "edit of a dropped entry": (file(entry("b"), base=OLD), OLD, file(entry("b", 4), base=OLD), "both sides changed"),
    "fused entries": (
        OLD, file(entry("t", 2), base=OLD), OLD + b"\n" + entry("b") + b"\n    - key-lost\n", "folded"),
    "conflict markers": (OLD, file(entry("t", 2), base=OLD), OLD + b"\n" + entry("b") + b"\n=======\n", "marker"),
    "another comment at the top": (b"# a\n", b"# b\n", b"# c\n", "before the first entry"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_is_no_append_is_a_conflict_that_says_so(name):
    ancestor, ours, theirs, words = CONFLICTS[name]
    trunk = ancestor if name == "revert of a trunk entry" else OLD if ours.startswith(OLD) else ancestor
    result = merge(ancestor, ours, theirs, [trunk])
    assert result.conflicts and words in result.conflicts[0]
    assert [item.code for item in check(result.data, b"") if item.code == "C-007"][:1] == ["C-007"]
    for side in (ours, theirs):
        assert all(body in result.data for body in split(side).bodies)


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_random_histories_lose_double_and_alter_nothing(first):
    count = Count()
    for seed in range(first, first + CHUNK):
        for _ in play(Memory(HEADS[seed % len(HEADS)]), seed, 25, count):
            pass
    assert count.entries > CHUNK * 10
    assert min(count.operations[act] for act in ("land", "squash", "rebase", "update", "join", "pick", "fill")) >= 10
