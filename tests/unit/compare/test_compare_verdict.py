"""Verdicts: each of the five, what forbids a comparison, and that every refusal says its name."""

import numpy as np
import pytest

from infx.compare.verdict import Options, Verdict, compare
from infx.measure.stats.starts import Spread, difference, p_differs

ITL = Options(metrics=("itl-p50",))


def _rng(seed=1):
    return np.random.default_rng(seed)


def test_a_clear_gain_is_better_and_its_opposite_worse(make):
    slow, fast = make.drawn("a", _rng(1), 6), make.drawn("b", _rng(2), 6, effect=-0.2)
    there, back = compare(slow, fast, ITL), compare(fast, slow, ITL)
    assert {c.verdict for c in there.cells} == {Verdict.BETTER}
    assert {c.verdict for c in back.cells} == {Verdict.WORSE}
    cell = there.cell("tp2/c4", "itl-p50")
    low, high = cell.estimate.improvement_interval()
    assert low < 1 - np.exp(-0.2) < high
    assert cell.estimate.improvement > 0


def test_same_needs_the_margin_and_enough_starts(make):
    many = compare(make.drawn("a", _rng(3), 8, between=0.005), make.drawn("b", _rng(4), 8, between=0.005), ITL)
    assert {c.verdict for c in many.cells} == {Verdict.SAME}
    few = compare(make.drawn("a", _rng(3), 2), make.drawn("b", _rng(4), 2), ITL)
    assert {c.verdict for c in few.cells} == {Verdict.UNDECIDED}
    assert "starts a side would tell" in few.cells[0].reasons[0].message


def test_a_wider_margin_makes_same_of_undecided(make):
    a, b = make.drawn("a", _rng(5), 4, between=0.01), make.drawn("b", _rng(6), 4, between=0.01)
    assert compare(a, b, ITL).cells[0].verdict is Verdict.UNDECIDED
    wide = Options(metrics=("itl-p50",), margins={"itl-p50": 0.08})
    assert {c.verdict for c in compare(a, b, wide).cells} == {Verdict.SAME}


def test_a_gain_within_the_margin_is_same(make):
    a, b = make.drawn("a", _rng(7), 6, between=0.001), make.drawn("b", _rng(8), 6, between=0.001, effect=-0.008)
    result = compare(a, b, ITL).cell("tp2/c4", "itl-p50")
    assert p_differs(result.estimate.diff) < 0.05
    assert result.verdict is Verdict.SAME


def test_one_start_each_is_undecided_without_a_floor_and_judged_with_one(make):  # P54
    a, b = make.drawn("a", _rng(9), 1, effect=0.0), make.drawn("b", _rng(10), 1, effect=-0.3)
    alone = compare(a, b, ITL).cells[0]
    assert (alone.verdict, alone.reasons[0].code) == (Verdict.UNDECIDED, "start-to-start-unknown")
    floored = compare(a, b, Options(metrics=("itl-p50",), floor_of=lambda facts, metric: Spread(0.02, 8))).cells[0]
    assert floored.verdict is Verdict.BETTER
    assert floored.reasons[0].message.startswith("n = 1 against pooled floor")


def test_a_floor_does_not_replace_starts_at_hand(make):
    a, b = make.drawn("a", _rng(11), 3), make.drawn("b", _rng(12), 3)
    plain = compare(a, b, ITL)
    tiny = compare(a, b, Options(metrics=("itl-p50",), floor_of=lambda facts, metric: Spread(1e-6, 99)))
    assert [c.verdict for c in tiny.cells] == [c.verdict for c in plain.cells]


@pytest.mark.parametrize("seed", range(4))
def test_an_aa_with_four_percent_between_starts_shows_no_difference(make, seed):  # P54
    a, b = (make.drawn(n, _rng(100 + 10 * seed + i), 2, points=(1, 2, 4, 8, 16, 32, 64), between=0.04)
            for i, n in enumerate("ab"))
    assert not {c.verdict for c in compare(a, b, ITL).cells} & {Verdict.BETTER, Verdict.WORSE}


@pytest.mark.parametrize(("changes", "code"), [
    ({"recipe": "other"}, "other-recipe"), ({"hardware": "h200"}, "other-hardware"),
    ({"engine": "sglang"}, "other-engine"), ({"model": "x"}, "other-model"), ({"gpus": 4}, "other-gpus"),
    ({"workload": '{"isl": 1024, "kind": "fixed-seq-len", "osl": 1024}'}, "other-workload"),
    ({"simulated": True}, "other-simulated"), ({"client": "c2"}, "other-client"), ({"quick": True}, "other-quick"),
])
def test_what_forbids_a_comparison_is_named(make, changes, code):  # P56, P66
    a, b = make.drawn("a", _rng(1), 3), make.drawn("b", _rng(2), 3, effect=-0.5, **changes)
    cell = compare(a, b, ITL).cells[0]
    assert cell.verdict is Verdict.NOT_COMPARABLE
    assert [r.code for r in cell.reasons] == [code]


def test_workloads_are_told_apart_by_their_own_words(make):
    a = make.drawn("a", _rng(1), 2)
    b = make.drawn("b", _rng(2), 2, workload='{"isl": 1024, "kind": "fixed-seq-len", "osl": 1024}')
    assert compare(a, b, ITL).cells[0].reasons[0].message == "workloads differ: isl 8192 against 1024"


def test_achieved_lengths_more_than_a_percent_apart(make):  # P16
    def made(name, length):
        return make.side(name, *(make.measured(f"{name}:{i}", figures={"itl-p50": 8.0 + 0.01 * i,
                                                                      "output-length-mean": length})
                                 for i in range(2)))

    near = compare(made("a", 1024.0), made("b", 1016.0), ITL).cells[0]
    far = compare(made("a", 1024.0), made("b", 1010.0), ITL).cells[0]
    assert near.verdict is not Verdict.NOT_COMPARABLE
    assert far.reasons[0].message == ("achieved output lengths 1,024.0 against 1,010.0 tokens, "
                                      "more than 1% apart")


def test_pipeline_layouts_do_not_meet(make):  # P56
    a = make.drawn("a", _rng(1), 2, axes={"pp": 2})
    found = compare(a, make.drawn("b", _rng(2), 2), ITL)
    assert {c.reasons[0].code for c in found.cells} == {"other-layout"}
    assert found.cell("tp2-pp2/c4", "itl-p50").reasons[0].message == "layout tp2-pp2 against tp2"


def test_an_arm_against_itself_is_refused(make):
    a = make.drawn("a", _rng(1), 3)
    cell = compare(a, a, ITL).cells[0]
    assert (cell.verdict, cell.reasons[0].code) == (Verdict.NOT_COMPARABLE, "same-starts")


def test_two_client_versions_in_one_side_are_both_named(make):  # P66
    a = make.side("a", make.measured("a:1", figures={"itl-p50": 8.0}),
                  make.measured("a:2", figures={"itl-p50": 8.1}, client="c2"))
    cell = compare(a, make.drawn("b", _rng(1), 2), ITL).cell("tp2/c4", "itl-p50")
    message = next(r.message for r in cell.reasons if r.code == "mixed-client")
    assert "c1, c2" in message


def test_bad_and_missing_points_are_named(make):
    a = make.drawn("a", _rng(1), 2)
    b = make.side("b", *(m for m in make.drawn("b", _rng(2), 2, points=(4,)).points["tp2/c4"]),
                  make.measured("b:0", 8, status="client-bound", reasons=("loop lag 40 ms",)),
                  make.measured("b:1", 8, status="failed", reasons=("the engine died",)))
    found = compare(a, b, ITL)
    bad = found.cell("tp2/c8", "itl-p50")
    assert bad.verdict is Verdict.NOT_COMPARABLE
    assert [r.message for r in bad.reasons] == ["client-bound in b:0 (second side): loop lag 40 ms",
                                                "failed in b:1 (second side): the engine died"]
    assert found.cell("tp2/c16", "itl-p50").reasons[0].code == "only-first"
    assert found.cell("tp2/c4", "itl-p50").verdict is Verdict.UNDECIDED


def test_null_and_absent_values_keep_their_reasons(make):
    a = make.side("a", make.measured("a:1", figures={"itl-p50": None}))
    b = make.side("b", make.measured("b:1", figures={"itl-p50": 8.0}))
    found = compare(a, b, Options(metrics=("itl-p50", "ttft-p50")))
    assert found.cell("tp2/c4", "itl-p50").reasons[0].message == "a:1 of the first side: not enough requests"
    assert found.cell("tp2/c4", "ttft-p50").reasons[0].code == "no-value"


def test_copies_are_not_measurements(make):
    def made(name, value):
        return make.side(name, *(make.measured(f"{name}:{i}", figures={"itl-p50": value}) for i in range(3)))

    cell = compare(made("a", 8.0), made("b", 7.0), ITL).cells[0]
    assert (cell.verdict, cell.reasons[0].code) == (Verdict.UNDECIDED, "no-spread")


def test_shares_and_zeros_are_compared_by_difference(make):
    def made(name, values):
        return make.side(name, *(make.measured(f"{name}:{i}", figures={"failure-share": v})
                                 for i, v in enumerate(values)))

    cell = compare(made("a", [0.0, 0.01, 0.0, 0.01]), made("b", [0.2, 0.21, 0.2, 0.22]),
                   Options(metrics=("failure-share",))).cells[0]
    assert (cell.verdict, cell.estimate.scale, cell.estimate.change) == (Verdict.WORSE, "difference", None)


def test_a_metric_without_a_better_side_gets_no_verdict(make):
    a, b = (make.drawn(n, _rng(i), 2, metrics=("streams-mean",)) for i, n in enumerate("ab"))
    assert compare(a, b, Options(metrics=("streams-mean",))).cells[0].reasons[0].code == "no-direction"


def test_points_missing_in_some_starts_fall_back_to_holm(make):
    rng = _rng(13)
    a, b = make.drawn("a", rng, 3), make.drawn("b", rng, 3, effect=-0.08)
    assert compare(a, b, ITL).curves[0].correction == "rotation"
    hole = make.side("a", *(m for ms in a.points.values() for m in ms
                            if (m.start, m.facts.concurrency) != ("a:001", 4)))
    found = compare(hole, b, ITL)
    assert found.curves[0].correction == "Holm"
    own = [difference(np.log(c.estimate.first.values), np.log(c.estimate.second.values)) for c in found.cells]
    assert min(c.p_differs for c in found.cells) == pytest.approx(3 * min(p_differs(d) for d in own), rel=1e-6)


def test_images_and_nodes_that_differ_are_said_first(make):
    a, b = make.drawn("a", _rng(1), 2), make.drawn("b", _rng(2), 2, image="i@sha256:2", digest="sha256:2", node="n2")
    found = compare(a, b, ITL)
    assert [n.code for n in found.notes] == ["differing-image", "differing-digest", "differing-node"]
    assert found.cells[0].verdict is not Verdict.NOT_COMPARABLE


def test_an_ab_that_may_stop_early_pays_for_its_looks(make):
    a, b = make.drawn("a", _rng(20), 6), make.drawn("b", _rng(21), 6, effect=-0.05)
    free = compare(a, b, ITL)
    paid = compare(a, b, Options(metrics=("itl-p50",), schedule_of=lambda label: (3, 4, 6)))
    assert {c.verdict for c in free.cells} == {c.verdict for c in paid.cells} == {Verdict.BETTER}
    assert paid.curves[0].correction == "rotation, 3 of 3 looks"
    assert paid.cells[0].look in (4, 6)
    third = {k: v[:3] for k, v in a.points.items()}, {k: v[:3] for k, v in b.points.items()}
    early = compare(type(a)("a", third[0]), type(b)("b", third[1]),
                    Options(metrics=("itl-p50",), schedule_of=lambda label: (3, 4, 6)))
    full = compare(type(a)("a", third[0]), type(b)("b", third[1]), ITL)
    assert {c.verdict for c in early.cells} == {Verdict.UNDECIDED}
    assert {c.verdict for c in full.cells} == {Verdict.BETTER}


def test_the_best_of_many_points_is_not_picked(make):  # P55
    """Null points that differ by themselves: some are below 5 % alone, none is called different."""
    rng = _rng(31)
    points = tuple(range(1, 31))
    a, b = (make.drawn(n, rng, 3, points=points, between=0.0, within=0.01) for n in "ab")
    found = compare(a, b, Options(metrics=("itl-p50",), margins={"itl-p50": 0.001}))
    alone = [c for c in found.cells if p_differs(c.estimate.diff) <= 0.05]
    assert alone
    assert {c.verdict for c in found.cells} == {Verdict.UNDECIDED}
    assert {c.reasons[0].code for c in alone} == {"only-alone"}
