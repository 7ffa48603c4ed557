"""Claims: met, refuted or unproven, and what each rests on."""

import numpy as np
import pytest

from infx.compare.claims import Outcome, _beyond, all_met, judge
from infx.compare.verdict import Options, open_cell
from infx.schema.changelog import Expect

HASH = "0" * 64


def claim(points="all", metric="itl-p50", verdict="better", **more):
    return Expect(points=points, metric=metric, verdict=verdict, **more)


@pytest.fixture
def ab(make):
    """Faster at c 4 and 8, unchanged from 16 up; five starts an arm."""
    effect = {4: -0.25, 8: -0.12}
    kinds = {"points": (4, 8, 16, 32), "between": 0.004}
    return (make.drawn("a", np.random.default_rng(1), 5, **kinds),
            make.drawn("b", np.random.default_rng(2), 5, effect=effect, **kinds))


def test_faster_below_and_unchanged_above(ab):
    faster, unchanged = judge(claim("c<=8"), *ab), judge(claim("c>=16", verdict="same"), *ab)
    assert (faster.outcome, unchanged.outcome) == (Outcome.MET, Outcome.MET)
    assert faster.cells == ("tp2/c4 itl-p50", "tp2/c8 itl-p50")
    assert all_met([faster, unchanged])
    assert len(faster.evidence) == 2 * 2 * 5
    assert set(faster.evidence.values()) == {HASH}


@pytest.mark.parametrize(("wrong", "word"), [
    (claim("c<=8", verdict="same"), "tp2/c4 itl-p50 +22"), (claim("c>=16"), "tp2/c16 itl-p50"),
    (claim("c<=8", verdict="worse"), "tp2/c4 itl-p50 +22"), (claim("all"), "tp2/c16 itl-p50"),
])
def test_claims_that_results_deny_are_refuted(ab, wrong, word):
    found = judge(wrong, *ab)
    assert found.outcome is Outcome.REFUTED
    assert word in found.message
    assert not all_met([found])


def test_one_start_a_side_proves_nothing(make):  # P54
    a, b = (make.drawn(n, np.random.default_rng(i), 1, effect=-0.3 * i) for i, n in enumerate("ab"))
    found = judge(claim(), a, b)
    assert found.outcome is Outcome.UNPROVEN
    assert "one start a side and no stored noise floor" in found.message


def test_too_few_starts_leave_equality_unproven(make):
    a, b = (make.drawn(n, np.random.default_rng(i), 2) for i, n in enumerate("ab"))
    assert judge(claim(verdict="same"), a, b).outcome is Outcome.UNPROVEN


def test_a_selected_point_that_is_missing_keeps_the_claim_unproven(make):
    rng = np.random.default_rng(3)
    a, b = make.drawn("a", rng, 5, points=(4,)), make.drawn("b", rng, 5, points=(4,), effect=-0.3)
    assert judge(claim("c<=4"), a, b).outcome is Outcome.MET
    lacking = make.side("b", *(m for ms in b.points.values() for m in ms), missing=("tp2/c8",))
    found = judge(claim("c<=8"), a, lacking)
    assert (found.outcome, found.message) == (Outcome.UNPROVEN, "tp2/c8: not measured")
    failed = make.side("b", *(m for ms in b.points.values() for m in ms),
                       make.measured("b:9", 8, status="failed", reasons=("no KV cache",)))
    assert "no KV cache" in judge(claim("c<=8"), make.drawn("a", rng, 5, points=(4, 8)), failed).message


def test_a_claim_about_no_point_is_unproven(ab):
    found = judge(claim("tp=8"), *ab)
    assert (found.outcome, found.message) == (Outcome.UNPROVEN, "it selects no point that was measured or planned")


def test_the_claims_own_margin_counts(ab):
    found = judge(claim("c>=16", verdict="same", margin=0.0001), *ab)
    assert found.outcome is not Outcome.MET
    assert judge(claim("c=8", verdict="same", margin=0.5), *ab).outcome is Outcome.MET


def test_a_claim_pays_for_the_looks_of_an_ab(ab, make):
    """At the first of three looks a claim has 0.3 % to spend instead of 5 %."""
    rng = np.random.default_rng(17)
    a, b = make.drawn("a", rng, 3, points=(4,)), make.drawn("b", rng, 3, points=(4,), effect=-0.08)
    planned = {"tp2/c4": 6}
    looked = [type(s)(s.name, s.points, planned_starts=planned) for s in (a, b)]
    assert judge(claim(), a, b).outcome is Outcome.MET
    assert judge(claim(), *looked).outcome is Outcome.UNPROVEN


def test_claims_about_all_metrics(make):
    kinds = {"points": (16, 32), "between": 0.002, "metrics": ("output-throughput-per-gpu", "ttft-p50", "itl-p50",
                                                               "tpot-p50")}
    a, b = (make.drawn(n, np.random.default_rng(i), 5, **kinds) for i, n in enumerate("ab"))
    found = judge(claim("c>=16", metric="all", verdict="same"), a, b, Options())
    assert found.outcome is Outcome.MET
    assert len(found.cells) == 8


def test_false_claims_are_rarely_met(make):
    """A claim of a gain on twelve null points, and one of equality at the margin, 300 times each."""
    rng = np.random.default_rng(9)
    met = {"better": 0, "same": 0}
    for _ in range(300):
        a, b = (make.drawn(n, rng, 3, between=0.01, effect=0.0) for n in "ab")
        met["better"] += judge(claim(), a, b).outcome is Outcome.MET
        edge = make.drawn("b", rng, 3, between=0.005, effect=np.log(1.02))
        met["same"] += judge(claim(verdict="same"), make.drawn("a", rng, 3, between=0.005), edge).outcome is Outcome.MET
    assert met["better"] <= 15
    assert met["same"] <= 25


def test_equality_of_many_points_is_not_refuted_by_the_worst_of_them(make):
    """Thirty points on the margin: one lies beyond it by chance, taken alone; the claim is unproven, not refuted."""
    rng = np.random.default_rng(5)
    kinds = {"points": tuple(range(1, 31)), "between": 0.0, "within": 0.01}
    a, b = make.drawn("a", rng, 4, **kinds), make.drawn("b", rng, 4, effect=0.021, **kinds)
    assert min(_beyond(open_cell(label, "itl-p50", a, b, Options())) for label in a.points) < 0.05
    assert judge(claim(verdict="same"), a, b).outcome is Outcome.UNPROVEN


def measured_gain(make, metric, gain, half):
    """Five starts a side whose difference is ``gain`` (relative, an improvement) with a 95 % interval of ± ``half``."""
    log = np.log1p(gain) if metric == "output-throughput" else np.log1p(-gain)
    sd = half / 2.306 / np.sqrt(2 / 5)  # t(0.975, 8) = 2.306
    spread = sd * np.array([-1.0, 1.0, -1.0, 1.0, 0.0]) / np.std([-1, 1, -1, 1, 0], ddof=1)
    return [make.side(n, *(make.measured(f"{n}:{i}", 32, 4, figures={metric: 100 * float(np.exp(s + at))})
                           for i, s in enumerate(spread))) for n, at in (("a", 0.0), ("b", log))]


@pytest.mark.parametrize(("sizes", "outcome"), [
    ({"by": 0.05}, "unproven"), ({"by": 0.05, "within": 0.01}, "unproven"), ({"by": 0.02}, "met"),
    ({"by": 0.07}, "refuted"), ({"by": 0.04, "within": 0.02}, "met"), ({"by": 0.08, "within": 0.02}, "refuted"),
    ({"by": 0.01, "within": 0.01}, "refuted"), ({}, "met"), ({"by": 0.01}, "met"),
])
@pytest.mark.parametrize("metric", ["output-throughput", "itl-p50"])
def test_a_typed_size_meets_the_artefacts(make, metric, sizes, outcome):  # P58: "+5.0 %" against +4.1 ± 1.5 %
    sides = measured_gain(make, metric, 0.041, 0.015)
    found = judge(claim("tp=4, c=32", metric, **sizes), *sides)
    assert found.outcome == outcome, found.message
    assert "+4.1% ± 1." in found.message


def test_the_size_of_a_loss(make):
    sides = measured_gain(make, "itl-p50", -0.041, 0.015)
    assert judge(claim(verdict="worse", by=0.02), *sides).outcome is Outcome.MET
    assert judge(claim(verdict="worse", by=0.07), *sides).outcome is Outcome.REFUTED
    assert judge(claim(verdict="better", by=0.01), *sides).outcome is Outcome.REFUTED
    rate = measured_gain(make, "output-throughput", -0.041, 0.015)
    assert judge(claim(metric="output-throughput", verdict="worse", by=0.04, within=0.02), *rate).outcome is Outcome.MET


def test_sizes_stand_in_sentences_and_need_a_direction():
    assert claim("c=4", by=0.05).sentence() == "c=4 itl-p50 better by at least 5.0%"
    assert claim("c=4", by=0.05, within=0.01).sentence() == "c=4 itl-p50 better by 5.0% ± 1.0%"
    assert claim("c=4").sentence() == "c=4 itl-p50 better"
    with pytest.raises(ValueError, match="`by` says how much better or worse"):
        claim(verdict="same", by=0.05)
    with pytest.raises(ValueError, match="`within` needs `by`"):
        claim(within=0.05)


def test_one_start_a_side_proves_no_size(make):
    a, b = (make.drawn(n, np.random.default_rng(i), 1, effect=-0.3 * i) for i, n in enumerate("ab"))
    assert judge(claim(by=0.05), a, b).outcome is Outcome.UNPROVEN
