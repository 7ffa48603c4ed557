"""Rebuilding a branch, recovering damaged entries, drafting and showing: the pure parts."""

from __future__ import annotations

import pytest

from infx.changelog.coverage import Recipes
from infx.changelog.draft import draft
from infx.changelog.entries import ledger
from infx.changelog.gate import check
from infx.changelog.rebuild import rebuild
from infx.changelog.recover import repairs
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.changelog.views import about, as_data, as_text, of_run
from infx.lint.diff import Change as Group
from infx.lint.diff import Difference
from infx.schema.changelog import Change, Expect, Results, ResultsPoint, Retract

LINK = "https://git.example/o/n/pull/"
OLD = f"- config-keys:\n    - old\n  description:\n    - words\n  pr-link: {LINK}1\n".encode()


def entry(name, link="XXX"):
    return render(Change(config_keys=[name], description=["d"], pr_link=link if link == "XXX" else LINK + link))


def file(*bodies, base=OLD):
    return join(base, bodies, len(base))


# --- rebuild -----------------------------------------------------------------------------------


def test_a_branch_is_rebuilt_from_its_own_commits_with_their_edits():
    trunk = file(entry("t", "2"))
    steps = [(OLD, file(entry("a"))), (file(entry("a")), file(entry("a", "3"), entry("b"))),
             (file(entry("a", "3"), entry("b"), entry("c")), file(entry("a", "3"), entry("c")))]
    made = rebuild(trunk, steps, file(entry("a", "3"), entry("c")))
    assert made.data == file(entry("a", "3"), base=trunk)
    assert [why for why, _ in made.left_out] == ["made by a merge, not by a commit of this branch"]
    assert made.left_out[0][1] == entry("c")


def test_what_has_landed_is_not_added_again_even_with_its_link_filled_in():
    trunk = file(entry("a", "2"))
    assert rebuild(trunk, [(OLD, file(entry("a"), entry("b")))], b"").data == file(entry("b"), base=trunk)


def test_damaged_and_fused_entries_are_named_not_carried():
    fused = OLD.rstrip().replace(b"    - old", b"    - old\n    - mine")
    folded = entry("x", "4") + b"\n    - lost"
    made = rebuild(OLD, [(OLD, join(b"", [fused, folded, entry("y")]))], b"")
    assert made.own == [entry("y")]
    assert [(why.split(" ")[0], body) for why, body in made.left_out] == [("it", fused), ("C-011", folded)]


# --- recover -----------------------------------------------------------------------------------


DAMAGE = {
    "lost header folded into the link": (
        f"- config-keys:\n    - a\n  description:\n    - one\n  pr-link: {LINK}963\n    - b\n    - c\n"
        f"  description:\n    - two\n  pr-link: {LINK}926\n",
        [(["a"], ["one"], "963"), (["b", "c"], ["two"], "926")]),
    "indented header": (
        f"- config-keys:\n    - a\n  description:\n    - one\n  pr-link: {LINK}1\n\n  - config-keys:\n    - b\n"
        f"  description:\n    - two\n  pr-link: {LINK}2\n",
        [(["a"], ["one"], "1"), (["b"], ["two"], "2")]),
    "header glued to a link": (
        f"- config-keys:\n    - a\n  description:\n    - one\n  pr-link: {LINK}1- config-keys:\n    - b\n"
        f"  description:\n    - two\n  pr-link: {LINK}2\n",
        [(["a"], ["one"], "1"), (["b"], ["two"], "2")]),
    "conflict markers in one entry": (
        f"- config-keys:\n<<<<<<< ours\n    - a\n  description:\n    - one\n  pr-link: {LINK}1\n=======\n    - b\n"
        f"  description:\n    - \"two: quoted\"\n  pr-link: {LINK}2\n  evals-only: true\n>>>>>>> theirs\n",
        [(["a"], ["one"], "1"), (["b"], ["two: quoted"], "2")]),
    "conflict markers round an entry": (
        f"- config-keys:\n    - a\n  description:\n    - one\n  pr-link: {LINK}1\n>>>>>>> theirs\n",
        [(["a"], ["one"], "1")]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_on_the_trunk_is_retracted_and_said_again(name):
    text, expected = DAMAGE[name]
    data = file(base=OLD + b"\n" + text.encode())
    found = repairs(data, "f")
    assert len(found) == 1 and not found[0].lost
    retract, *again = found[0].entries
    assert retract.entry == split(data).ids[1]
    assert [(item.config_keys, item.description, item.pr_link) for item in again] == [
        (keys, words, LINK + link) for keys, words, link in expected]
    mended = join(data, [render(item) for item in found[0].entries], len(data))
    assert check(mended, data, at="merge") == []
    assert repairs(mended, "f") == []


def test_history_by_older_rules_is_no_damage():
    older = b"- config-keys:\n    - a\n  description: |\n    - x\n  pr-link: 2305\n"
    assert repairs(older, "f") == []
    assert [(record.keys, record.lines, record.link) for record in ledger(older, "f")] == [(["a"], ["- x"], "2305")]


def test_what_cannot_be_read_is_named():
    found = repairs(b"- config-keys:\n    - a\n  description:\n  pr-link: \"open\n", "f")
    assert [item.lost[0].split(":")[0] for item in found] == ["unreadable"]


# --- views -----------------------------------------------------------------------------------


def point(key="k/tp2/c8", **facts):
    return ResultsPoint(**{"point": key, "fingerprint": "f1-0", "status": "ok", "sha256": "a" * 64,
                           "metrics": {"itl-p50": 6.5}, **facts})


def test_show_filters_by_recipe_and_tells_retractions():
    change = Change(config_keys=["dsv*"], description=["words"], pr_link="XXX",
                    expect=[Expect(points="c<=8", metric="itl-p50", verdict="better", against="no-mono")])
    first = file(render(change), entry("other"))
    data = file(render(Retract(kind="retract", entry=split(first).ids[1], reason="wrong image")), base=first)
    records = ledger(data, "f")
    chosen = about(records, "dsv41")
    assert [record.span.index for record in chosen] == [1, 3]
    assert list(as_text(chosen[0])) == [
        f"{split(first).ids[1]}  change   dsv*  XXX", "    words", "    expects c<=8 itl-p50 better against no-mono",
        "    RETRACTED: wrong image"]
    assert as_data(chosen[0])["retracted"] == "wrong image"


def test_a_runs_story_is_its_results_the_changes_before_and_retractions_after():
    result = Results(kind="results", run="20261201T090000Z-k-1", recipe="k", runner="r", provenance=["measured"],
                     points=[point()])
    first = file(entry("k"), entry("other"), render(result), entry("k*"))
    data = file(render(Retract(kind="retract", entry=split(first).ids[3], reason="r")), base=first)
    assert [record.span.index for record in of_run(ledger(data, "f"), "T090000Z-k")] == [1, 3, 5]


# --- draft -----------------------------------------------------------------------------------


def test_a_draft_says_what_differs_point_by_point():
    recipes = Recipes({"k": {"k/tp1/c1": "1", "k/tp1/c2": "2", "k/tp1/c4": "4"}},
                      {"k": {"k/tp1/c1": "1", "k/tp1/c2": "9", "k/tp1/c8": "8"}, "new": {"new/tp1/c1": "1"}})
    difference = Difference("k", changed=(Group(("k/tp1/c2",), ("env A: 1 → 2", "image: x → y")),))
    made = draft(recipes, [difference])
    assert made is not None and made.config_keys == ["k", "new"] and not made.append_only and made.pending
    assert made.description == ["k tp1/c2: env A: 1 → 2", "k tp1/c2: image: x → y", "k: added tp1/c8",
                                "k: removed tp1/c4", "new: new recipe with 1 points"]
    assert check(file(render(made)), OLD, recipes=recipes) == []


def test_a_draft_of_added_points_alone_is_append_only():
    recipes = Recipes({"k": {"k/c1": "1"}}, {"k": {"k/c1": "1", "k/c2": "2"}})
    made = draft(recipes, [])
    assert made is not None and made.append_only and made.description == ["k: added c2"]
    assert check(file(render(made)), OLD, recipes=recipes) == []
    assert draft(Recipes({"k": {"k/c1": "1"}}, {"k": {"k/c1": "1"}}), []) is None


def test_a_repeat_on_purpose_is_kept_and_an_entry_that_only_moved_is_not_doubled():
    trunk = file(entry("a", "2"), entry("b", "3"))
    repeated = file(entry("a", "2"), base=trunk)
    assert rebuild(trunk, [(trunk, repeated)], repeated).data == repeated
    moved = file(entry("own"), *reversed(split(trunk).bodies[1:]))
    assert rebuild(trunk, [(trunk, moved)], moved).data == file(entry("own"), base=trunk)
