"""The comment as text: picture, table, claims, coverage, proposal, its length, and that it calls nobody."""

from __future__ import annotations

import pytest

from infx.ci.comment import LEFT_OUT, LIMIT, Content, Shown, body
from infx.ci.reuse import Covered, Refusal, Reuse
from infx.ci.sketch import Dots, sketch
from infx.compare.claims import Judged, Outcome
from infx.compare.coverage import Coverage
from infx.compare.sides import side_of
from infx.results.load import load_run
from infx.schema.changelog import Expect
from tests.fakes import run_folder

GOOD = Reuse((Covered("demo/tp2/c1", "r", "001", "sha256:0"),), ())
EXPECT = Expect(points="c<=8", metric="itl-p50", verdict="better", against="no-mono")


@pytest.fixture
def side(tmp_path):
    return side_of("this change", [load_run(run_folder.write(tmp_path, failed=("tp4/c64",), skipped=("tp4/c8",)))])


def test_a_sketch_by_hand():
    assert sketch([Dots("a", "before", ((0, 0), (10, 4))), Dots("A", "now", ((5, 2),))], "x", "y", 11, 3) == (
        "y over x\n"
        "4 │          a\n"
        "  │     A\n"
        "0 │a\n"
        "  └───────────\n"
        "   0        10\n"
        "a before   A now")
    assert sketch([Dots("a", "none", ())], "x", "y") == ""
    assert "a" in sketch([Dots("a", "zeros", ((0, 0),))], "x", "y", 5, 3)


def test_a_comment_without_a_baseline_shows_the_figures_and_what_is_missing(side):
    text = body(Content("a" * 40, GOOD, [Shown("demo", None, side)]))
    assert text.startswith("### Sweep of `aaaaaaaaaaaa`\n\n1 point measured, to be recorded at merge.\n")
    assert "A tp2 now" in text and "B tp4 now" in text and "before" not in text.split("```")[1]
    assert "| tp2/c1 | ok | 78.7 | 157.5 | 69.00 | 6.35 | 875.4 |" in text
    assert "| tp4/c64 | failed | – | – | – | – | – |" in text and "| tp4/c8 | missing | | | | | |" in text
    assert "**Claims**: none is made." in text and "**Coverage**: no published point is lost." in text


def test_refusals_claims_losses_proposal_and_links_are_told(side):
    reuse = Reuse((), tuple(Refusal("point-bad", f"p{n}", "failed") for n in range(25)))
    lost = Coverage("tp2", ("tp2/c1",), ("tp2/c8",), (), ())
    text = body(Content("a" * 40, reuse, [Shown("demo", side, side, "the comparison\n")],
                        [("demo", Judged(EXPECT, Outcome.REFUTED, "proven otherwise"))], [("demo", lost)],
                        "- kind: results\n", [("the report", "https://example.org/r")], ["QUICK: short"]))
    assert "**Not to be recorded:**\n\n- `point-bad` p0: failed" in text and "- and 5 more" in text
    assert "> **QUICK: short**" in text
    assert "- demo: **refuted**: c<=8 itl-p50 better (proven otherwise)" in text
    assert "- demo: tp2: 1 of 2 points of the old curve; missing: tp2/c8" in text  # P44
    assert "```yaml\n- kind: results\n```" in text and "[the report](https://example.org/r)" in text
    assert "the comparison" in text and "a tp2 before" in text


def test_a_comment_is_never_longer_than_the_host_takes(side):
    shown = [Shown(f"r{n}", side, side, "x" * 40_000) for n in range(3)]
    text = body(Content("a" * 40, GOOD, shown, proposal="y" * 50_000))
    assert len(text) <= LIMIT and text.count("x" * 40_000) == 1 and text.count(LEFT_OUT.strip()) == 2
    assert "too long for a comment" in text and "**Claims**" in text


def test_text_of_run_folders_calls_nobody():
    reuse = Reuse((), (Refusal("point-bad", "demo@arm/tp2/c1", "@everyone (@org/team) look"),))
    text = body(Content("a" * 40, reuse, []))
    assert "demo@arm/tp2/c1" in text and "@everyone" not in text and "@org" not in text and "everyone" in text
