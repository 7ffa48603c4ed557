"""CODEOWNERS: patterns, the last match, teams, and lines that a code host would pass over."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.ci.owners import owners_of, read_owners, unowned
from infx.errors import InputError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("pattern", "yes", "no"), [
    ("*", ["a", "a/b.c"], []),
    ("*.js", ["x.js", "a/b.js"], ["x.jsx", "a.js.map"]),
    ("/build/logs/", ["build/logs/a", "build/logs/a/b"], ["build/logs", "x/build/logs/a", "build/logsx"]),
    ("docs/*", ["docs/a.md"], ["docs/a/b.md", "x/docs/a.md"]),
    ("apps/", ["apps/a", "x/apps/a/b"], ["apps", "myapps/a"]),
    ("/docs/", ["docs/a", "docs/a/b"], ["x/docs/a"]),
    ("/scripts", ["scripts", "scripts/a"], ["scriptsx", "x/scripts"]),
    ("**/logs", ["logs/a", "a/logs/b", "a/b/logs"], ["a/logsx"]),
    ("/a/**/b", ["a/b", "a/x/b", "a/x/y/b/c"], ["a/xb", "b"]),
    ("/a/**", ["a/b", "a/b/c"], ["a", "ab"]),
    ("/a?c", ["abc"], ["a/c", "abbc"]),
    ("/a.b", ["a.b"], ["axb"]),
])
def test_patterns(pattern, yes, no):
    rules = read_owners(f"{pattern} @x\n", "CODEOWNERS")
    assert [path for path in yes if not owners_of(rules, path)] == []
    assert [path for path in no if owners_of(rules, path)] == []


def test_the_last_match_decides_and_may_name_nobody():
    rules = read_owners("# all\n* @a @org/b\n/x/ c@example.org # mail\n/x/free\n", "CODEOWNERS")
    assert owners_of(rules, "y") == ("@a", "@org/b")
    assert owners_of(rules, "x/y") == ("c@example.org",) and owners_of(rules, "x/free") == ()


def test_lines_that_would_be_ignored_are_refused_all_at_once():
    with pytest.raises(InputError) as caught:
        read_owners("* @a\n!x @a\n[ab] @a\n/c somebody\n", "CODEOWNERS")
    assert [line.split(": ")[0] for line in caught.value.message.splitlines()] == [
        "CODEOWNERS:2:1", "CODEOWNERS:3:1", "CODEOWNERS:4:1"]


def test_ownership_by_name_and_team_asked_once():
    rules = read_owners("* @Ann\n/t/ @org/team\n/m/ ann@example.org\n", "CODEOWNERS")
    asked = []

    def member(team, user):
        asked.append((team, user))
        return user == "bob"

    assert unowned(rules, ["a", "t/1", "t/2", "m/1"], "ann", member) == [
        ("t/1", ("@org/team",)), ("t/2", ("@org/team",)), ("m/1", ("ann@example.org",))]
    assert asked == [("org/team", "ann")]
    assert unowned(rules, ["a", "t/1"], "bob", member) == [("a", ("@Ann",))]


def test_our_own_file_leaves_nothing_without_an_owner():
    rules = read_owners((ROOT / ".github/CODEOWNERS").read_text(), ".github/CODEOWNERS")
    for path in ("recipes/a/b.yaml", "infx/ci/plan.py", ".github/CODEOWNERS", "docs/PR_REVIEW_CHECKLIST.md"):
        assert owners_of(rules, path)
    assert owners_of(rules, "docs/waiver/7.md") == ("@infx-maintainer",)
