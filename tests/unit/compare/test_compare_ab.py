"""A/B plans: order, price, stopping, drift; and the calibration's verdicts against the product's."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from infx.compare import ab
from infx.compare.sides import planned_facts, side_of
from infx.compare.verdict import Options, Verdict, compare
from infx.errors import UsageError
from infx.measure.stats.starts import Spread
from infx.results.load import load_run

ROOT = Path(__file__).parents[3]


def _module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


folders = _module("compare_fake_folders", ROOT / "tests" / "fakes" / "run_folder.py")
bench = _module("compare_calibration_bench", ROOT / "bench" / "calibration" / "calibrate.py")


@pytest.fixture
def plan():
    return folders.plan(tps=(2, 4), concurrencies=(1, 8), arms=("no-mono", None))


def test_arms_alternate_layout_by_layout(plan):
    blocks = ab.interleave(plan, 3).blocks
    assert [b.id for b in blocks] == [
        "b-s-no-mono-tp2-r1", "b-s-base-tp2-r1", "b-s-no-mono-tp4-r1", "b-s-base-tp4-r1",
        "b-s-base-tp2-r2", "b-s-no-mono-tp2-r2", "b-s-base-tp4-r2", "b-s-no-mono-tp4-r2",
        "b-s-no-mono-tp2-r3", "b-s-base-tp2-r3", "b-s-no-mono-tp4-r3", "b-s-base-tp4-r3",
    ]
    assert ab.repeats_of(ab.interleave(plan, 3)) == 3


def test_plans_that_are_no_ab_are_refused(plan):
    with pytest.raises(UsageError, match="one start an arm"):
        ab.interleave(plan, 1)
    with pytest.raises(UsageError, match="two arms, not 1"):
        ab.interleave(folders.plan(), 3)


def test_an_aa_is_the_recipe_twice(plan):
    alone = folders.plan(tps=(2,), concurrencies=(1, 8))
    made = ab.interleave(ab.twinned(alone), 2)
    assert [b.id for b in made.blocks] == ["again-b-s-base-tp2-r1", "b-s-base-tp2-r1", "b-s-base-tp2-r2",
                                           "again-b-s-base-tp2-r2"]
    pairs = [(made.point(f"{made.recipe}@again/tp2/{c}"), made.point(f"{made.recipe}/tp2/{c}")) for c in ("c1", "c8")]
    assert all(a.fingerprint == b.fingerprint and a.server == b.server and a.arm == "again" for a, b in pairs)
    with pytest.raises(UsageError, match="without its arms"):
        ab.twinned(plan)


def test_a_linear_drift_falls_on_both_arms(plan):
    """With an even number of rounds both arms of a layout stand at the same mean place."""
    blocks = [b for b in ab.interleave(plan, 4).blocks if "tp2" in b.id]
    places = {arm: np.mean([i for i, b in enumerate(blocks) if arm in b.id]) for arm in ("no-mono", "base")}
    assert places["no-mono"] == places["base"]


def test_price_and_budget(plan):
    made = ab.interleave(plan, 2)
    window = made.points[0].stop.window_s
    seconds = 100.0 + 3 * window
    assert ab.block_seconds(made, made.blocks[0], 100.0) == pytest.approx(seconds)
    hours = ab.gpu_hours(made, 100.0)
    assert hours == pytest.approx(2 * 2 * (2 + 4) * seconds / 3600)
    assert ab.repeats_for_budget(plan, 1.75 * hours, 100.0) == 3
    with pytest.raises(UsageError, match="an A/B needs two"):
        ab.repeats_for_budget(plan, 0.6 * hours, 100.0)


def test_what_it_can_find_uses_stored_floors_and_says_when_it_assumes(plan):
    made = ab.interleave(plan, 6)
    facts = planned_facts(made, None)
    assumed = ab.sights(made, lambda fact, metric: None, facts, metrics=("itl-p50",))
    assert [(s.sd, s.stored) for s in assumed] == [(sd, False) for sd in ab.SPREADS]
    (stored,) = ab.sights(made, lambda fact, metric: Spread(0.02, 5), facts, metrics=("itl-p50",))
    assert (stored.sd, stored.stored, stored.for_gain) == (0.02, True, 4)
    assert stored.smallest < stored.smallest_curve


def test_it_stops_at_a_look_that_leaves_nothing_open_and_not_between(plan):
    made = ab.interleave(plan, 6)
    asked = []

    def run(enough):
        policy, done = ab.early_stop(made, lambda n: asked.append(n) or enough(n)), []
        while (block := policy(done)) is not None:
            done.append(block)
        return len(done) // 4

    assert run(lambda n: False) == 6
    assert asked == [3, 4]
    assert run(lambda n: n == 4) == 4
    assert run(lambda n: True) == 3


def test_a_resumed_ab_goes_on_within_the_block_that_was_cut(plan):
    made = ab.interleave(plan, 2)
    block_of = {f"s{i}": b.id for i, b in enumerate(made.blocks)}
    whole = {f"s{i}": set(b.points) for i, b in enumerate(made.blocks[:3])}
    left = ab.left_of(made, block_of, {**whole, "s3": {made.blocks[3].points[0]}})
    assert [(b.id, b.points) for b in left] == [
        (made.blocks[3].id, made.blocks[3].points[1:]), *((b.id, b.points) for b in made.blocks[4:])]
    assert ab.early_stop(made, lambda n: False, left)([]) == left[0]
    two_starts = {**whole, "s3": {made.blocks[3].points[0]}, "again": {made.blocks[3].points[1]}}
    assert ab.left_of(made, {**block_of, "again": made.blocks[3].id}, two_starts)[0] == made.blocks[4]
    assert ab.left_of(made, block_of, {s: set(made.blocks[i].points) for i, s in enumerate(block_of)}) == []


def test_a_resumed_ab_is_looked_at_where_it_would_have_been(plan):
    made = ab.interleave(plan, 6)

    def asked(rest, enough=lambda n: False):
        seen, done = [], []
        policy = ab.early_stop(made, lambda n: seen.append(n) or enough(n), rest)
        while (block := policy(done)) is not None:
            done.append(block)
        return seen, len(done)

    assert asked(made.blocks[5:]) == ([3, 4], 19)
    assert asked(made.blocks[12:]) == ([3, 4], 12), "it may have stopped at that very look"
    assert asked(made.blocks[12:], lambda n: n == 3) == ([3], 0)
    assert asked(made.blocks[17:]) == ([3, 4], 7)
    assert asked([]) == ([], 0)


def test_an_ab_run_folder_is_compared_by_arm_at_its_looks(plan, tmp_path):
    made = ab.interleave(plan, 6)
    rng = np.random.default_rng(1)
    with folders.RunStore.create(tmp_path, folders.run(recipe=made.recipe), made) as store:
        for number, block in enumerate(made.blocks[:12]):
            store.start_folder(f"{number:03d}")
            store.write_start(folders.start(f"{number:03d}", block.id, block.server, at=60.0 * number))
            shared = 1 + 0.003 * rng.standard_normal()
            for key in block.points:
                point = made.point(key)
                figures = folders.curve(point.parallel.tp, point.concurrency,
                                        shared * (1 + 0.001 * rng.standard_normal()) * (0.8 if point.arm else 1.0))
                store.append_visit(point, f"{number:03d}", folders.visit(figures))
        loaded = load_run(store.paths.root)
    first, second = side_of("no-mono", [loaded], "no-mono"), side_of("base", [loaded], None)
    found = compare(first, second, Options(metrics=("tpot-p50",), schedule_of=ab.schedule_of(first, second)))
    assert [c.correction for c in found.curves] == ["rotation, 1 of 3 looks"] * 2
    assert {c.verdict for c in found.cells} == {Verdict.BETTER}
    assert ab.settled(found)
    assert ab.drifts(first, second, "tpot-p50")[0].order == tuple("ABBAAB")


def test_drift_is_measured_across_arms(make):
    def arm(name, starts, level):
        return make.side(name, *(make.measured(f"{name}:{at}", figures={"itl-p50": level * 1.01**at},
                                              launched=float(at)) for at in starts))

    (found,) = ab.drifts(arm("a", (0, 3, 4, 7), 10.0), arm("b", (1, 2, 5, 6), 8.0), "itl-p50")
    assert found.slope == pytest.approx(0.01, abs=1e-9)
    assert "".join(found.order) == "ABBAABBA"


def test_the_calibration_takes_verdicts_as_the_product_does(make):
    rng = np.random.default_rng(5)
    words = {bench.UNDECIDED: "undecided", bench.SAME: "same", bench.BETTER: "better", bench.WORSE: "worse"}
    for effect in (0.0, 0.03, 0.05):
        a, b = (make.drawn(n, rng, 6, points=(4, 8), metrics=("output-throughput-per-gpu",), between=0.01,
                           effect=effect if n == "b" else 0.0) for n in "ab")
        table = np.log([[m.values["output-throughput-per-gpu"].value for label in ("tp2/c4", "tp2/c8")
                         for m in s.points[label]] for s in (a, b)])
        rows = np.concatenate([t.reshape(2, 6).T for t in table])[None]
        codes, _ = bench.judged(rows, (3, 4, 6), 0.02, rotations=9999)
        found = compare(a, b, Options(metrics=("output-throughput-per-gpu",), schedule_of=lambda label: (3, 4, 6)))
        assert [str(c.verdict) for c in found.cells] == [words[code] for code in codes[0]]


def test_calibration_in_small(make):  # P54, P55
    none, _ = bench.verdicts(bench.Design(6, 7, 0.02), 400, rotations=999)
    edge, _ = bench.verdicts(bench.Design(3, 7, 0.005, np.log1p(0.02)), 400, rotations=999)
    gain, used = bench.verdicts(bench.Design(6, 1, 0.02, np.log1p(0.05)), 400)
    assert bench.differs(none).any(axis=1).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert (edge == bench.SAME).any(axis=1).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert (gain == bench.BETTER).mean() >= 0.8
    assert used.mean() < 6


def test_one_block_of_an_ab_is_one_start(plan):
    from infx.plan.select import one_block

    made = ab.interleave(plan, 3)
    alone = one_block(made, made.blocks[5].id)
    assert alone.blocks == [made.blocks[5]]
    assert [p.key for p in alone.points] == made.blocks[5].points
    assert list(alone.servers) == [made.blocks[5].server]
