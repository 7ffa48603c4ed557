"""Noise floors, curve figures, coverage and rerun policies."""

import numpy as np
import pytest

from infx.compare.beside import Beside, beside, rungs
from infx.compare.coverage import coverage
from infx.compare.frontier import area, axes_of_curves, figures, indistinguishable, saturated
from infx.compare.markdown import change_text, interval_text, markdown
from infx.compare.noise import Floor, NoiseBook, add, floors_of, lookup, read_book, render_book
from infx.compare.sides import settle
from infx.compare.verdict import Options, Verdict, compare
from infx.errors import UsageError
from infx.measure.stats.starts import Spread


def compared(a, b):
    return axes_of_curves(compare(a, b))


def test_floors_come_from_repeats_of_one_identity(make):
    repeats = make.side("a", *(make.measured(f"a:{i}", figures={"itl-p50": v}) for i, v in enumerate((8.0, 8.1, 8.3))))
    floor, pooled = floors_of([repeats], ["itl-p50"])
    assert (pooled.point, pooled.sd, pooled.df) == ("*", floor.sd, 2)
    assert (floor.point, floor.df) == ("tp2/c4", 2)
    assert floor.sd == pytest.approx(np.std(np.log([8.0, 8.1, 8.3]), ddof=1))
    apart = make.side("a", make.measured("a:1", figures={"itl-p50": 8.0}),
                      make.measured("a:2", figures={"itl-p50": 9.0}, digest="sha256:2"))
    assert floors_of([apart], ["itl-p50"]) == []


def _floor(**changes):
    return Floor(**{"recipe": "demo", "point": "tp2/c4", "metric": "itl-p50", "sd": 0.01, "df": 2, **changes})


def test_a_book_pools_by_degrees_of_freedom_and_counts_a_run_once():
    book = add(add(NoiseBook(), ["r1"], [_floor()]), ["r2"], [_floor(sd=0.04, df=1)])
    (pooled,) = book.floors
    assert (pooled.sd, pooled.df) == (pytest.approx(np.sqrt((2 * 1e-4 + 16e-4) / 3)), 3)
    with pytest.raises(UsageError, match="already in the noise floors: r2"):
        add(book, ["r2"], [])


def test_points_of_one_start_are_no_fresh_evidence(make):
    rng = np.random.default_rng(4)
    shared = floors_of([make.drawn("a", rng, 5, points=(1, 2, 4, 8), between=0.02, within=1e-6)], ["itl-p50"])[-1]
    loose = floors_of([make.drawn("a", rng, 40, points=(1, 2, 4, 8), between=0.0, within=0.02)], ["itl-p50"])[-1]
    apart = floors_of([make.drawn("a", rng, 3, points=(4,)), make.drawn("b", rng, 3, points=(8,))], ["itl-p50"])[-1]
    assert (shared.point, shared.df) == ("*", 4)
    assert 110 <= loose.df <= 4 * 39
    assert apart.df == 4


def test_lookup_prefers_the_point_then_pools_its_metric_and_never_mixes_simulated(make):
    book = add(NoiseBook(), ["r"], [_floor(df=3), _floor(point="tp2/c8", sd=0.03, df=1), _floor(point="*", sd=0.02),
                                    _floor(point="*", sd=0.05, simulated=True)])
    find = lookup(book)
    facts = {c: make.measured(c=c).facts for c in (4, 8, 64)}
    assert find(facts[4], "itl-p50") == Spread(0.01, 3)
    assert find(facts[8], "itl-p50") == find(facts[64], "itl-p50") == Spread(0.02, 2)
    assert find(facts[4], "ttft-p50") is None
    assert find(make.measured(simulated=True, c=4).facts, "itl-p50") == Spread(0.05, 2)
    assert find(make.measured(recipe="other").facts, "itl-p50") is None


def test_a_book_survives_its_file():
    floors = [_floor(), _floor(metric="ttft-p50", point="*", sd=0.123456, simulated=True)]
    book = add(NoiseBook(), ["r1", "r2"], floors)
    again, findings = read_book(render_book(book).encode(), "noise.yaml")
    assert (again, findings) == (book, [])
    broken, findings = read_book(b"floors:\n- {recipe: a, point: p, metric: m, sd: -1, df: 2}\n", "noise.yaml")
    assert broken is None
    assert str(findings[0]).startswith("noise.yaml:2:")


def test_area_of_a_staircase_by_hand():
    x, y = np.array([10.0, 20.0, 40.0, 15.0]), np.array([8.0, 6.0, 1.0, 2.0])
    assert area(x, y, 10.0, 40.0) == pytest.approx(10 * 6 + 20 * 1)
    assert area(x, y, 0.0, 50.0) == pytest.approx(10 * 8 + 10 * 6 + 20 * 1)
    assert area(x, y, 12.0, 18.0) == pytest.approx(6 * 6)


def _curves(make, seed, gain, starts=5, between=0.004):
    rng = np.random.default_rng(seed)
    made = []
    for number in range(starts):
        shared = between * rng.standard_normal()
        for c in (4, 8, 16):
            speed = float(np.exp(shared + gain + 0.001 * rng.standard_normal()))
            made.append(make.measured(f"{seed}:{number}", c, launched=float(number), figures={
                "interactivity-median": 400.0 / c**0.5 * speed, "output-throughput-per-gpu": 100.0 * c**0.5 * speed}))
    return make.side(f"s{seed}", *made)


def test_the_curve_figure_counts_what_points_share_once(make):
    better = figures(compared(_curves(make, 1, 0.0), _curves(make, 2, 0.06)))[0]
    assert better.verdict is Verdict.BETTER
    assert better.interval[0] > 0
    same = figures(compared(_curves(make, 3, 0.0, 8), _curves(make, 4, 0.0, 8)))[0]
    assert (same.verdict, same.points) == (Verdict.SAME, ("tp2/c4", "tp2/c8", "tp2/c16"))
    alone = figures(compared(_curves(make, 5, 0.0, 1), _curves(make, 6, 0.5, 1)))[0]
    assert (alone.verdict, alone.reasons[0].code) == (Verdict.UNDECIDED, "start-to-start-unknown")


def test_curve_figures_say_why_there_is_none(make):
    none = figures(compared(_curves(make, 1, 0.0), _curves(make, 2, 5.0)))[0]
    assert (none.verdict, none.reasons[0].code) == (Verdict.NOT_COMPARABLE, "no-shared-range")
    few = figures(compared(make.drawn("a", np.random.default_rng(1), 2), make.drawn("b", np.random.default_rng(1), 2)))
    assert few[0].reasons[0].code == "too-few-points"


def test_noise_aware_neighbours_and_saturation():
    quiet, loud, unknown = Spread(0.001, 3), Spread(0.05, 3), Spread(float("nan"), 0)
    points = [(100.0, 10.0), (101.0, 10.1), (50.0, 20.0)]
    assert indistinguishable([quiet] * 3, [quiet] * 3, points) == []
    assert indistinguishable([loud] * 3, [loud] * 3, points) == [(0, 1)]
    assert indistinguishable([unknown] * 3, [loud] * 3, points) == []
    assert saturated([10.0, 20.0, 20.2, 26.0, 25.0]) == [2, 4]


def test_a_comparison_names_rungs_that_say_nothing_new(make):
    def side(name, spread):
        rates = {4: (100.0, 900.0), 8: (60.0, 2000.0), 16: (30.0, 2600.0), 32: (29.8, 2610.0)}
        return make.side(name, *(make.measured(f"{name}:{i}", c, launched=float(i), figures={
            "interactivity-median": x * (1 + spread * sign), "output-throughput-per-gpu": y * (1 + spread * sign)})
            for c, (x, y) in rates.items() for i, sign in enumerate((-1, 1))))

    loud = rungs(compared(side("a", 0.01), side("b", 0.01)), "a", "b")
    assert [(r.side, r.kind, r.labels) for r in loud] == [
        ("a", "indistinguishable", ("tp2/c16", "tp2/c32")), ("a", "saturated", ("tp2/c32",)),
        ("b", "indistinguishable", ("tp2/c16", "tp2/c32")), ("b", "saturated", ("tp2/c32",))]
    assert loud[0].sentence() == ("a: tp2/c16 and tp2/c32 are closer to each other than noise in Output throughput per "
                                  "GPU and Interactivity, median")
    assert [r.kind for r in rungs(compared(side("a", 0.0005), side("b", 0.0005)), "a", "b")] == ["saturated"] * 2


def test_drift_stands_beside_the_arms_of_one_run_alone(make):
    def arm(name, places):
        return make.side(name, *(make.measured(f"r:{at}", figures={"itl-p50": 10 * 1.01**at}, launched=float(at))
                                 for at in places), planned_starts={"tp2/c4": 2})

    together = beside(compare(arm("a", (0, 3)), arm("b", (1, 2)), Options(metrics=("itl-p50",))))
    assert [d.sentence() for d in together.drifts] == [
        "drift tp2/c4 itl-p50: +1.00% a start [+1.00%, +1.00%] over ABBA"]
    apart = make.side("c", *(make.measured(f"s:{at}", figures={"itl-p50": 10.0 + at}) for at in (1, 2)))
    assert beside(compare(arm("a", (0, 3)), apart, Options(metrics=("itl-p50",)))).drifts == ()


def test_a_narrower_run_is_named_with_its_points(make):  # P44
    rng = np.random.default_rng(1)
    old = make.drawn("old", rng, 1, points=(1, 2, 4, 8))
    new = make.side("new", *(m for ms in make.drawn("new", rng, 1, points=(2, 4, 128)).points.values() for m in ms),
                    make.measured("new:9", 8, status="failed"))
    (found,) = coverage(old, new)
    assert found.narrower
    assert (found.missing, found.bad, found.added) == (("tp2/c1",), ("tp2/c8 (failed)",), ("tp2/c128",))
    assert found.sentence() == ("tp2: 2 of 4 points of the old curve; missing: tp2/c1; without a usable start: "
                                "tp2/c8 (failed); new: tp2/c128")
    assert not coverage(old, old)[0].narrower


def test_rerun_points_are_settled_by_the_declared_policy(make):
    old, new = make.measured("r1:1", launched=1.0), make.measured("r2:1", launched=2.0)
    again = make.measured("r2:2", launched=3.0)
    assert settle([again, old, new], "repeats") == ((old, new, again), ())
    assert settle([again, old, new], "latest") == ((new, again), (old,))


def test_what_the_policy_sets_aside_is_said(make):
    rng = np.random.default_rng(1)
    a = make.drawn("a", rng, 2)
    b = make.side("b", *(m for ms in make.drawn("b", rng, 2).points.values() for m in ms),
                  dropped=(make.measured("r0:1"), make.measured("r0:2")))
    notes = compare(a, b, Options(metrics=("itl-p50",))).notes
    assert [n.message for n in notes] == ["2 result(s) of r0 set aside: a newer run measured the same points "
                                          "(--rerun latest)"]


def test_percentages_have_a_real_minus_and_no_negative_zero():
    assert [change_text(v) for v in (0.34, -0.008, -0.0004, 0.0, None)] == ["+34.0%", "−0.8%", "+0.0%", "+0.0%", ""]


def test_an_interval_that_says_nothing_is_not_printed_to_the_digit(make):
    def side(name, values):
        return make.side(name, *(make.measured(f"{name}:{i}", figures={"itl-p50": v}) for i, v in enumerate(values)))

    wide = compare(side("a", [10.0]), side("b", [10.0, 30.0]), Options(metrics=("itl-p50",))).cells[0]
    assert interval_text(wide.estimate) == "[< −999%, +100.0%]"
    near = compare(side("a", [10.0, 10.1]), side("b", [9.0, 9.1]), Options(metrics=("itl-p50",))).cells[0]
    assert interval_text(near.estimate) == "[+7.0%, +12.8%]"


def test_markdown_literally(make):
    a = make.side("r1", make.measured("r1:1", figures={"itl-p50": 8.33}))
    b = make.side("r2", make.measured("r2:1", figures={"itl-p50": 5.94}),
                  make.measured("r2:1", 8, figures={"itl-p50": 7.1}))
    text = markdown(compare(a, b, Options(metrics=("itl-p50",))), Beside(coverage=tuple(coverage(b, a))))
    assert text == """**r1 → r2** (a positive percentage is an improvement)

| tp2 | ITL, median (ms) |
|---|---|
| c4 | 8.33 → 5.94 (+28.7%) undecided |
| c8 | not comparable |

- coverage, tp2: 1 of 2 points of the old curve; missing: tp2/c8

<details><summary>Intervals, starts and reasons</summary>

tp2: 1 statement, correction: none.

- tp2/c4 itl-p50: 8.33 → 5.94 (+28.7%), alone –, 1 and 1 starts, margin 2.0%: undecided; one start a side and no \
stored noise floor: how far two starts differ by themselves is unknown (infx noise add, or more starts)
- tp2/c8 itl-p50: not comparable; only the second side has this point

</details>
"""
