"""Published figures as input: the table of vllm-project/vllm#61573, and real repeats of InferenceX."""

import csv
from pathlib import Path

import pytest

from infx.compare.claims import Outcome, judge
from infx.compare.markdown import figure_text, markdown
from infx.compare.noise import NoiseBook, add, floors_of, lookup
from infx.compare.verdict import Options, Verdict, compare
from infx.schema.changelog import Expect

METRICS = ("output-throughput", "ttft-p50", "itl-p50", "tpot-p50")
TABLE = list(csv.DictReader((Path(__file__).parent / "dense_mono_table.csv").read_text().splitlines()))

UNFOLLOWED = {
    ("1", "4", "tpot-p50"), ("1", "8", "tpot-p50"), ("1", "32", "tpot-p50"), ("2", "8", "ttft-p50"),
    ("2", "8", "itl-p50"), ("2", "64", "itl-p50"), ("2", "128", "itl-p50"),
}
"""Cells whose printed percentage does not follow from the printed figures (made from unrounded ones)."""


@pytest.fixture
def arms(make):
    """Both arms of the table, and the near A/A of its stock-graph rows as repeats of one another.

    The table does not say which cells share a start; their changes scatter as if each had its own.
    """
    cells = {}
    for row in TABLE:
        for column in ("first", "second"):
            cells.setdefault((column, int(row["tp"]), int(row["concurrency"])), {})[row["metric"]] = float(row[column])
    sides = {
        column: make.side(column, *(make.measured(f"{column}:tp{tp}-c{c}", c, tp, figures, gpus=tp, client="bench")
                                    for (col, tp, c), figures in cells.items() if col == column))
        for column in ("first", "second")
    }
    stock = make.side("stock", *(m for s in sides.values() for ms in s.points.values() for m in ms
                                 if m.facts.concurrency >= 16))
    book = add(NoiseBook(), ["table"], floors_of([stock], METRICS))
    return sides["first"], sides["second"], Options(metrics=METRICS, floor_of=lookup(book))


def test_every_value_is_printed_as_in_the_table(arms):
    first, second, options = arms
    result = compare(first, second, options)
    unfollowed = set()
    for row in TABLE:
        text = figure_text(result.cell(f"tp{row['tp']}/c{row['concurrency']}", row["metric"]).estimate)
        values, percent = text.rstrip(")%").split(" (")
        assert values == f"{row['first']} → {row['second']}"
        off = abs(float(percent.replace("−", "-")) - float(row["printed"]))
        assert off <= 0.1 + 1e-9
        if off > 1e-9:
            unfollowed.add((row["tp"], row["concurrency"], row["metric"]))
    assert len(TABLE) == 56
    assert unfollowed == UNFOLLOWED


def test_its_claims_are_judged(arms):
    first, second, options = arms
    found = compare(first, second, options)
    inside = {c.verdict for c in found.cells if c.label.endswith(("/c4", "/c8")) and c.metric != "ttft-p50"}
    assert inside == {Verdict.BETTER}
    assert {c.verdict for c in found.cells if c.metric == "ttft-p50"} == {Verdict.UNDECIDED}
    ttft = found.cell("tp1/c4", "ttft-p50")
    assert figure_text(ttft.estimate) == "202.4 → 201.0 (+0.7%)"
    assert "pooled floor" in ttft.reasons[1].message
    assert found.cell("tp1/c128", "itl-p50").verdict is Verdict.SAME
    gain = judge(Expect(points="tp=1, c=4", metric="ttft-p50", verdict="better"), first, second, options)
    stock = judge(Expect(points="c>=16", metric="itl-p50", verdict="same"), first, second, options)
    every = judge(Expect(points="c<=8", metric="itl-p50", verdict="better"), first, second, options)
    assert (gain.outcome, stock.outcome, every.outcome) == (Outcome.UNPROVEN, Outcome.MET, Outcome.MET)


def test_its_markdown_reads_like_its_own(arms):
    text = markdown(compare(*arms))
    assert ("| c4 | 430.1 → 576.4 (+34.0%) better | 202.4 → 201.0 (+0.7%) undecided | "
            "8.33 → 5.94 (+28.7%) better |") in text
    assert "186.3 → 205.6 (−10.4%) undecided" in text


REPEATS = {  # concurrency: (total tok/s/GPU, p90 interactivity)
    1: [(11371.9, 349.5), (11375.4, 346.4)],
    2: [(11819.8, 324.6), (11692.9, 315.7), (11639.7, 310.3)],
    8: [(29417.4, 210.0), (29360.0, 213.3), (29378.4, 209.3)],
}
AGENTIC = ("total-throughput-per-gpu", "interactivity-at-p90-tpot")


def test_real_repeats_make_a_floor_that_leaves_a_real_pair_undecided(make):
    def points(name, figures):
        return make.side(name, *(make.measured(f"{name}:{c}-{i}", c, figures=dict(zip(AGENTIC, pair, strict=True)))
                                 for c, pairs in figures.items() for i, pair in enumerate(pairs)))

    floors = floors_of([points("r", REPEATS)], AGENTIC)
    by_name = {(f.point, f.metric): f for f in floors}
    assert by_name["tp2/c2", AGENTIC[1]].sd == pytest.approx(0.0226, abs=5e-4)
    assert by_name["tp2/c8", AGENTIC[0]].sd == pytest.approx(0.00101, abs=5e-5)
    options = Options(metrics=AGENTIC, floor_of=lookup(add(NoiseBook(), ["r"], floors)))
    pair = compare(points("a", {2: [(11700.0, 309.3)]}), points("b", {2: [(11700.0, 293.2)]}), options)
    assert pair.cell("tp2/c2", AGENTIC[1]).verdict is Verdict.UNDECIDED
    chunk = compare(points("a", {64: [(100.0, 10.0)]}), points("b", {64: [(104.9, 8.0)]}), options)
    assert [c.verdict for c in chunk.cells] == [Verdict.BETTER, Verdict.WORSE]
    assert "pooled floor" in chunk.cells[0].reasons[0].message
