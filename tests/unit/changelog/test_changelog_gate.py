"""The gate: what it refuses and where, what it tolerates of the trunk, and that both moments judge alike."""

from __future__ import annotations

import re

import pytest

from infx.changelog.codes import CODES
from infx.changelog.coverage import Recipes
from infx.changelog.gate import check, choose_base
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.schema.changelog import Change, Results, ResultsPoint, Retract

GOOD = b'- config-keys:\n    - key-a\n  description:\n    - "words"\n  pr-link: https://git.example/o/n/pull/%d\n'
ONE, TWO = GOOD % 1, GOOD % 2
DAMAGED = (
    b"- config-keys:\n    - old\n  description: scalar  \n\t\n \n"
    b"- config-keys:\n    - a\n  pr-link: https://git.example/o/n/pull/3\n    - lost\n  pr-link: x\r\n"
    b"<<<<<<< ours\n- config-keys: [never closed\n=======\n- \x00\xff\n\n\n- config-keys:\n    - last\n  pr-link: XXX"
)


def codes(head, base=b"", **options):
    return [(item.code, item.where.line) for item in check(head, base, **options)]


def change(**facts):
    usual = {"config_keys": ["key-a"], "description": ["d"], "pr_link": "https://git.example/o/n/pull/9"}
    return Change(**{**usual, **facts})


def added(base, *entries):
    return join(base, [render(entry) for entry in entries], len(base))


# --- the text of new entries: code and line ---------------------------------------------------------------------------


NEW = {
    "no final newline": (TWO[:-1], [("C-001", 11)]),
    "carriage returns": (TWO.replace(b"\n", b"\r\n"), [("C-002", 7)]),
    "tab": (TWO.replace(b"words", b"wo\trds"), [("C-003", 10)]),
    "NUL": (TWO.replace(b"words", b"wo\0rds"), [("C-004", 10), ("C-008", 10)]),
    "not UTF-8": (TWO.replace(b"words", b"wo\xffrds"), [("C-005", 10), ("C-008", 10)]),
    "byte-order mark": (TWO.replace(b"words", b"\xef\xbb\xbfwords"), [("C-006", 10), ("C-008", 10)]),
    "conflict markers": (
        b"<<<<<<< a\n" + TWO + b"=======\n" + GOOD % 3 + b">>>>>>> b\n",
        [("C-007", 7), ("C-007", 13), ("C-007", 19), ("C-013", 14), ("C-015", 7)]),
    "unclosed quote": (TWO.replace(b'words"', b"words"), [("C-008", 12)]),
    "duplicate key": (TWO + b"  description:\n    - again\n", [("C-009", 12)]),
    "header indented (P37)": (b"  " + TWO.replace(b"\n", b"\n  ").rstrip(b" "), [("C-010", 7), ("C-015", 7)]),
    "header glued to a link": (
        TWO[:-1] + b"- config-keys:\n    - b\n", [("C-008", 11), ("C-010", 11)]),
    "lost header folded into the link (P37)": (
        TWO + b"    - key-b\n", [("C-011", 11), ("C-018", 11)]),
    "folded description": (TWO.replace(b'"words"', b"words\n      go on"), [("C-011", 10)]),
    "two lines between": (b"\n" + TWO, [("C-013", 8)]),
    "blanks between (P39)": (TWO + b"  \n" + GOOD % 3, [("C-013", 12)]),
    "none between": (TWO + GOOD % 3, [("C-013", 12)]),
    "blank lines at the end": (TWO + b"\n", [("C-013", 12)]),
    "blanks at the end of a line (P39)": (TWO.replace(b"- key-a", b"- key-a  "), [("C-014", 8)]),
    "text behind the last entry": (b"  evals-only: true\n" + TWO, [("C-015", 7)]),
    "scalar entry": (b"- just words\n", [("C-016", 7)]),
    "unknown kind": (b"- kind: chnage\n", [("C-017", 7)]),
    "unknown key": (TWO + b"  evals-onyl: true\n", [("C-017", 12)]),
    "scalar description": (TWO.replace(b"\n    - \"words\"", b" words"), [("C-017", 9)]),
    "keys without a space": (TWO.replace(b"- key-a", b"-key-a"), [("C-017", 8)]),
    "no link": (TWO.rpartition(b"  pr-link")[0], [("C-018", 7)]),
    "link with more behind it": (TWO.replace(b"/2\n", b"/2/changes\n"), [("C-018", 11)]),
    "number as link": (TWO.replace(b"https://git.example/o/n/pull/2", b"2305"), [("C-018", 11)]),
    "link on the next line": (TWO.replace(b"pr-link: ", b"pr-link:\n    "), [("C-011", 12)]),
    "append-only with evals": (TWO + b"  append-only: true\n  evals-only: true\n", [("C-017", 7)]),
    "unreadable claim": (TWO + b"  expect: [{points: c=<8, metric: itl-p50, verdict: same}]\n", [("C-017", 12)]),
}


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("at", ["pr", "merge"])
def test_damage_in_a_new_entry_is_refused_where_it_stands(name, at):
    text, expected = NEW[name]
    lead = b"" if text.startswith((b"<", b"  ")) else b"\n"
    found = check(ONE + lead + text, ONE, at=at)
    assert sorted((item.code, item.where.line) for item in found) == sorted(
        expected if lead else [(code, line - 1) for code, line in expected])
    assert all(item.hint and re.fullmatch(r".+:\d+:\d+", str(item.where)) for item in found)


def test_sound_entries_pass_and_leave_no_finding():
    assert check(ONE + b"\n" + TWO, ONE) == []
    assert check(ONE, ONE) == []
    assert check(b"# comment\n\n" + ONE) == []
    assert check(b"") == []


def test_every_code_can_be_reported():
    recipes = Recipes({"old": {"p": "1"}}, {"old": {"p": "2"}, "agentic": {"p": "3"}}, {"agentic": "agentic-coding"})
    entries = [change(config_keys=["gone"]), change(config_keys=["agentic"], scenario_type=["fixed-seq-len"]),
               change(config_keys=["old"], append_only=True),
               Retract(kind="retract", entry="0" * 12 + "-1", reason="r"), results("r", ["quick"]),
               results("s", ["measured"]), results("s", ["measured"])]
    reported = {item.code for text, _ in NEW.values() for item in check(ONE + b"\n" + text, ONE)}
    reported |= {item.code for item in check(added(ONE, *entries), ONE, recipes=recipes)}
    reported |= {item.code for item in check(added(ONE, change(pr_link="XXX")), ONE, at="merge")}
    reported |= {item.code for item in check(b"- a\n\n- \"\n- b\"\n")}
    assert set(CODES) - reported == set()


# --- history: bytes, not judgement --------------------------------------------------------------------------------


def test_damage_of_the_trunk_is_tolerated_and_more_is_not():
    assert check(DAMAGED, DAMAGED) == []
    assert check(added(DAMAGED, change()), DAMAGED) == []
    assert [code for code, _ in codes(added(DAMAGED, change()) + b"- bad\n", DAMAGED)] == ["C-013", "C-016"]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n", b"\n  \n", b"\n \n\n  \n"])
def test_a_base_with_any_end_takes_an_entry(tail):
    base = ONE.rstrip() + tail
    assert check(added(base, change()), base) == []


@pytest.mark.parametrize(
    ("head", "line", "word"),
    [
        (ONE.replace(b"words", b"other") + b"\n" + TWO, 1, "changed"),
        (TWO, 1, "removed"),
        (GOOD % 3 + b"\n" + ONE + b"\n" + TWO, 1, "inserted before"),
        (ONE + b"\n" + GOOD % 3 + b"\n" + TWO, 7, "inserted before"),
        (ONE + b"\n\n" + TWO, 7, "blanks"),
        (b"", 1, "removed"),
    ],
)
def test_history_must_stay_to_the_byte(head, line, word):
    found = check(head, ONE + b"\n" + TWO)
    assert found and {item.code for item in found} == {"C-015"}
    assert found[0].where.line == line and word in found[0].message and "rebase --onto" in found[0].hint


def test_entries_fused_by_a_merge_are_refused():  # P37
    mine, its = (GOOD % n for n in (7, 8))
    fused = its.replace(b"    - key-a\n", b"    - key-a\n    - key-b\n")
    trunk = ONE + b"\n" + its
    assert codes(ONE + b"\n" + fused, trunk) == [("C-015", 7)]
    assert codes(trunk + b"\n" + mine, trunk) == []


def test_counts_by_text_and_by_yaml_must_agree():
    swallowed = b'- config-keys:\n    - a\n  description:\n    - "open\n\n- config-keys:\n    - b"\n  pr-link: XXX\n'
    assert "C-012" in [code for code, _ in codes(added(ONE, change()) + b"\n" + swallowed, ONE)] or \
        "C-008" in [code for code, _ in codes(added(ONE, change()) + b"\n" + swallowed, ONE)]


def test_only_the_placeholder_tells_the_moments_apart():  # P39
    head = added(ONE, change(pr_link="XXX"), change(pr_link="https://git.example/o/n/pull/XXX"))
    assert codes(head, ONE, at="pr") == []
    assert codes(head, ONE, at="merge") == [("C-019", 12), ("C-019", 19)]
    for text, _ in NEW.values():
        head = ONE + b"\n" + text
        assert codes(head, ONE, at="pr") == [item for item in codes(head, ONE, at="merge") if item[0] != "C-019"]


def test_a_link_may_be_filled_in_while_the_entry_is_not_on_the_trunk():
    pending, filled = (added(ONE, change(pr_link=link)) for link in ("XXX", "https://git.example/o/n/pull/5"))
    assert codes(filled, ONE) == []
    assert codes(filled, pending) == [("C-015", 7)]


# --- the base ------------------------------------------------------------------------------------------------------


def test_the_base_is_where_the_branch_left_the_trunk():  # P38
    trunk, branch = added(ONE, change(description=["trunk"])), added(ONE, change(description=["branch"]))
    assert choose_base(branch, trunk, [ONE]) == ONE
    assert check(branch, choose_base(branch, trunk, [ONE])) == []
    both = added(trunk, change(description=["branch"]))
    assert choose_base(both, trunk, [ONE]) == trunk


def test_a_state_that_the_trunk_gave_up_does_not_bind_but_its_lasting_entries_do():
    pending, filled = (added(ONE, change(pr_link=link)) for link in ("XXX", "https://git.example/o/n/pull/5"))
    branch = added(ONE, change(description=["own"]), change(pr_link="XXX"))
    assert choose_base(branch, filled, [pending, ONE]) == ONE
    damaged = branch.replace(b"words", b"other")
    assert choose_base(damaged, filled, [pending, ONE]) == pending


def test_a_branch_that_has_the_whole_trunk_must_have_it_first():
    """Where its merge bases hold all of the trunk git takes the branch's file as it is: no driver puts it in order."""
    landed, own = change(description=["landed"]), change(description=["own"])
    trunk, behind = added(ONE, landed), added(ONE, own, landed)
    assert choose_base(behind, trunk, [ONE], [ONE]) == ONE  # the driver is asked
    assert choose_base(behind, trunk, [ONE], [trunk]) == trunk
    assert [code for code, _ in codes(behind, trunk)] == ["C-015"]
    edited = added(ONE, change(description=["edited"]), own)
    assert choose_base(edited, trunk, [ONE], [trunk]) == trunk
    two = added(ONE, landed, own)
    assert choose_base(edited, two, [ONE], [trunk, added(ONE, own)]) == two  # of several merge bases git makes one
    assert choose_base(edited, two, [ONE], [trunk]) == ONE


# --- coverage ------------------------------------------------------------------------------------------------------


RECIPES = Recipes(
    {"a": {"a/c1": "1"}, "b": {"b/c1": "1", "b/c2": "2"}, "gone": {"gone/c1": "1"}},
    {"a": {"a/c1": "9"}, "b": {"b/c1": "1", "b/c2": "2", "b/c4": "4"}, "new": {"new/c1": "1"}},
    {"a": "agentic-coding", "b": "fixed-seq-len", "new": "fixed-seq-len", "gone": "fixed-seq-len"},
)


def covered(*entries):
    return [(item.code, item.message) for item in check(added(ONE, *entries), ONE, recipes=RECIPES)]


def test_a_changed_recipe_without_an_entry_is_named():  # P41
    found = covered(change(config_keys=["b"]))
    assert [(code, message.split(" changed")[0]) for code, message in found] == [
        ("C-021", "recipe a"), ("C-021", "recipe new")]
    assert "1 points changed" in found[0][1] and "new, 1 points" in found[1][1]


def test_globs_and_scenarios_cover():
    assert covered(change(config_keys=["*"])) == []
    assert covered(change(config_keys=["?", "n*"])) == []
    assert [code for code, _ in covered(change(config_keys=["*"], scenario_type=["fixed-seq-len"]))] == ["C-021"]


def test_a_key_that_matches_nothing_is_named_with_a_near_one():
    (item,) = check(added(ONE, change(config_keys=["*", "newt"])), ONE, recipes=RECIPES)
    assert (item.code, item.where.line) == ("C-020", 8)
    assert "'newt'" in item.message and "'new'" in item.hint


def test_a_removed_recipe_may_be_named_and_needs_no_entry():
    assert covered(change(config_keys=["*"]), change(config_keys=["gone"])) == []


def test_an_entry_whose_scenario_leaves_nothing_is_refused():
    found = covered(change(config_keys=["*"]), change(config_keys=["b"], scenario_type=["agentic-coding"]))
    assert [code for code, _ in found] == ["C-022"]


def test_evals_only_does_not_cover_a_changed_recipe():
    found = covered(change(config_keys=["*"], evals_only=True))
    assert [code for code, _ in found] == ["C-021"] * 3 and "evals-only entry does not cover" in found[0][1]


def test_append_only_means_that_points_are_only_added():
    assert covered(change(config_keys=["a", "new"]), change(config_keys=["b"], append_only=True)) == []
    found = covered(change(config_keys=["*"]), change(config_keys=["a", "new", "gone"], append_only=True))
    assert [code for code, _ in found] == ["C-023"] * 3
    assert ["a/c1" in found[0][1], "gone" in found[1][1], "new is new" in found[2][1]] == [True] * 3


# --- retractions and results -----------------------------------------------------------------------------------


def results(run, provenance):
    point = ResultsPoint(point="k/tp1/c1", fingerprint="f1-0", status="ok", sha256="0" * 64)
    return Results(kind="results", run=run, recipe="k", runner="r", provenance=provenance, points=[point])


def test_a_retraction_needs_an_earlier_entry_that_counts():  # P40
    base = added(ONE, change())
    first = split(base).ids[0]
    retract = Retract(kind="retract", entry=first, reason="wrong image")
    assert codes(added(base, retract), base) == []
    again = added(base, retract, retract)
    assert [(code, line) for code, line in codes(again, base)] == [("C-024", 19)]
    own = split(added(base, retract)).ids[-1]
    assert [code for code, _ in codes(added(base, retract, Retract(kind="retract", entry=own, reason="r")), base)] == [
        "C-024"]
    ahead = split(added(base, retract, change(description=["later"]))).ids[-1]
    assert [code for code, _ in codes(added(base, Retract(kind="retract", entry=ahead, reason="r")), base)] == ["C-024"]


def test_only_measured_results_stand_on_the_trunk():
    for provenance in (["simulated"], ["quick"], ["unofficial"], ["stands-in"], ["simulated", "quick"]):
        head = added(ONE, results("run", provenance))
        assert [code for code, _ in codes(head, ONE)] == ["C-025"]
        assert codes(head, ONE, trunk=False) == []
    assert codes(added(ONE, results("run", ["measured"])), ONE) == []


def test_a_run_is_recorded_once_unless_its_entry_is_retracted():
    once = added(ONE, results("run", ["measured"]))
    assert [code for code, _ in codes(added(once, results("run", ["measured"])), once)] == ["C-026"]
    retract = Retract(kind="retract", entry=split(once).ids[-1], reason="r")
    assert codes(added(once, retract, results("run", ["measured"])), once) == []
