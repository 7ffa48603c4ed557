import re

import pytest
import run_folder as fake
from hypothesis import given
from hypothesis import strategies as st

from infx.errors import UsageError
from infx.report.figure import build_figure, run_names
from infx.report.frontier import frontier
from infx.report.labels import Box, place
from infx.report.picture import picture
from infx.results.load import load_run
from infx.results.store import RunStore

COORDINATES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12)
SIDES = st.sampled_from(["higher", "lower"])


def beats(a, b, x_better, y_better):
    signs = [1 if better == "higher" else -1 for better in (x_better, y_better)]
    gain = [(p - q) * sign for p, q, sign in zip(a, b, signs, strict=True)]
    return min(gain) >= 0 and max(gain) > 0


@given(COORDINATES, SIDES, SIDES)
def test_the_frontier_is_what_no_point_beats_with_one_of_each_tie(points, x_better, y_better):
    kept = frontier(points, x_better, y_better)
    undominated = {p for p in points if not any(beats(q, p, x_better, y_better) for q in points)}
    assert {points[i] for i in kept} == undominated
    assert len(kept) == len(undominated)
    assert [points[i] for i in kept] == sorted(points[i] for i in kept)


def test_equal_height_at_worse_latency_is_dominated():
    """The reference dashboard keeps such a point on its latency chart."""
    assert frontier([(1.0, 5.0), (2.0, 5.0), (3.0, 6.0)], "lower", "higher") == [0, 2]
    assert frontier([(2.0, 5.0), (2.0, 5.0)], "higher", "higher") == [0]


def test_an_axis_without_a_better_side_makes_no_frontier():
    with pytest.raises(ValueError):
        frontier([(1.0, 1.0)], "neither", "higher")


def test_dots_are_the_measured_points(tmp_path):
    figure = build_figure([load_run(fake.write(tmp_path))])
    assert [(p.x, p.y) for p in figure.panels[:3]] == [
        ("interactivity-median", "output-throughput-per-gpu"), ("e2el-p50", "output-throughput-per-gpu"),
        ("ttft-p50", "output-throughput-per-gpu"),
    ]
    assert [s.label for s in figure.series] == ["tp2", "tp4"]
    dots = figure.panels[0].dots["tp4"]
    assert [d.concurrency for d in dots] == [1, 8, 64]
    want = fake.curve(4, 8)
    assert (dots[1].x, dots[1].y) == (want["interactivity-median"], want["output-throughput-per-gpu"])
    assert dots[1].y_range == (dots[1].y * 0.98, dots[1].y * 1.02)
    assert figure.left_out == ()


def test_the_frontier_of_a_run_spans_its_layouts(tmp_path):
    figure = build_figure([load_run(fake.write(tmp_path))])
    panel = figure.panels[0]
    points = {(d.point, (d.x, d.y)) for dots in panel.dots.values() for d in dots}
    best = {key for key, p in points if not any(beats(q, p, "higher", "higher") for _, q in points)}
    assert {d.point for dots in panel.dots.values() for d in dots if d.on_frontier} == best
    assert best != {key for key, _ in points}, "the example has a dominated point"
    across = [d.x for d in panel.frontier_of(["tp2", "tp4"])]
    assert across == sorted(across) and len(across) == len(best)


def test_a_point_that_noise_may_have_put_behind_is_marked(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c8", "c64"), concurrencies=(1, 8, 64))
    first = fake.curve(2, 1)
    with RunStore.open(folder) as store:
        for number, factor in ((1, 0.99), (2, 0.9)):
            figures = {name: value * factor for name, value in first.items()}
            store.append_visit(load_run(folder).plan.points[number], "001", fake.visit(figures))
    dots = build_figure([load_run(folder)]).panels[0].dots["tp2"]
    assert [(d.concurrency, d.on_frontier, d.near) for d in dots] == [
        (1, True, False), (8, False, True), (64, False, False)
    ]


def test_bad_points_are_listed_and_never_drawn(tmp_path):
    figure = build_figure([load_run(fake.write(tmp_path, tps=(2,), failed=("c8",), skipped=("c64",)))])
    assert [d.concurrency for p in figure.panels for d in p.dots["tp2"]] == [1] * 6
    assert figure.left_out == (
        "tp2 c8: failed, engine-died: what was found: engine-died", "tp2 c64: missing, no start has measured it",
    )


@pytest.mark.parametrize("status", ["invalid", "client-bound", "interrupted"])
def test_figures_of_an_untrustworthy_visit_are_not_drawn(tmp_path, status):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c8",))
    point = load_run(folder).plan.points[1]
    with RunStore.open(folder) as store:
        store.append_visit(point, "001", fake.visit(fake.curve(2, 8), status, "why"))
    figure = build_figure([load_run(folder)])
    assert 8 not in [d.concurrency for d in figure.panels[0].dots["tp2"]]
    assert figure.left_out == (f"tp2 c8: {status}, why: what was found: why",)


def test_a_missing_figure_leaves_its_panel_alone_and_is_told(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c8",))
    point = load_run(folder).plan.points[1]
    with RunStore.open(folder) as store:
        store.append_visit(point, "001", fake.visit({**fake.curve(2, 8), "ttft-p50": None}))
    figure = build_figure([load_run(folder)])
    drawn = {p.x: [d.concurrency for d in p.dots["tp2"]] for p in figure.panels}
    assert drawn == {"interactivity-median": [1, 8, 64], "e2el-p50": [1, 8, 64], "ttft-p50": [1, 64]}
    assert figure.left_out == ()
    assert figure.gaps == ("tp2 c8: no TTFT, median, not measured here",)


def test_every_ok_start_is_a_dot_and_the_newest_stands_for_the_point(tmp_path):
    folder = fake.write(tmp_path, tps=(2,))
    point = load_run(folder).plan.points[1]
    with RunStore.open(folder) as store:
        store.write_start(fake.start("002", "b", "s-base-tp2", at=900.0))
        store.append_visit(point, "002", fake.visit(fake.curve(2, 8, 1.1)))
    dots = build_figure([load_run(folder)]).panels[0].dots["tp2"]
    assert [(d.concurrency, d.start, d.chosen) for d in dots] == [
        (1, "001", True), (8, "001", False), (8, "002", True), (64, "001", True)
    ]
    assert not dots[1].on_frontier


def test_series_are_one_a_run_arm_and_layout_and_banners_name_their_runs(tmp_path):
    runs = [
        load_run(fake.write(tmp_path, "20261201T090000Z-demo-aaaaaa", arms=(None, "no-mono"), tps=(2,))),
        load_run(fake.write(tmp_path, "20261201T090001Z-demo-bbbbbb", simulated=False,
                            run_changes={"unofficial": True})),
    ]
    figure = build_figure(runs)
    assert [s.label for s in figure.series] == ["aaaaaa tp2", "aaaaaa no-mono tp2", "bbbbbb tp2", "bbbbbb tp4"]
    assert figure.groups() == {
        "aaaaaa": ["aaaaaa tp2"], "aaaaaa no-mono": ["aaaaaa no-mono tp2"], "bbbbbb": ["bbbbbb tp2", "bbbbbb tp4"]
    }
    assert [s.marker for s in figure.series] == [0, 0, 0, 1]
    assert figure.banners == (
        "SIMULATED: no hardware was measured (in aaaaaa)", "UNOFFICIAL: rules were relaxed (in bbbbbb)",
    )
    assert run_names([runs[0], runs[0]]) == [f"{runs[0].run.id}#1", f"{runs[0].run.id}#2"]


def words(svg):
    """Texts of a picture, from the comments that stand beside their outlines."""
    return re.findall(rb"<!-- (.*?) -->", svg)


def test_equal_runs_give_equal_bytes_without_dates(tmp_path):
    run = load_run(fake.write(tmp_path))
    first, second = picture([run], "a.svg"), picture([run], "b.svg")
    assert first == second
    assert b"<dc:date>" not in first and b"Matplotlib v" not in first
    assert picture([run], "a.png") == picture([run], "a.png")
    assert picture([run], "a.png").startswith(b"\x89PNG")


def test_the_picture_carries_marks_concurrencies_and_what_is_not_drawn(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,), failed=("c8",), quick=True))
    svg = picture([run], "a.svg")
    found = words(svg)
    assert b"SIMULATED: no hardware was measured   \xc2\xb7   QUICK: short prompts and windows" in found
    assert found.count("SIMULATED · QUICK".encode()) == 6, "each panel says so, for pictures that are cut out"
    assert svg.count(b'id="label-tp2-c64"') == 6 and svg.count(b'id="label-tp2-c1"') == 6
    assert b"label-tp2-c8" not in svg
    assert any(b"tp2 c8: failed, engine-died" in text for text in found)
    assert b"Output throughput per GPU (tok/s/GPU)" in found
    assert not any(b"SIMULATED" in text for text in words(picture([load_run(
        fake.write(tmp_path / "2", simulated=False))], "a.svg")))


def test_a_run_with_nothing_to_draw_says_so(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,), failed=("c1", "c8", "c64")))
    assert words(picture([run], "a.svg")).count(b"no point has both figures") == 6


def test_wrong_names_are_refused(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,)))
    with pytest.raises(UsageError, match="cannot draw"):
        picture([run], "a.jpg")
    with pytest.raises(UsageError, match="perhaps you meant .ttft-p"):
        picture([run], "a.svg", ["ttft-p05"])
    with pytest.raises(UsageError, match="no better side"):
        picture([run], "a.svg", ["preemptions", "window"])


FRAME = Box(500.0, 500.0, 1000.0, 1000.0)


def test_labels_cover_neither_marks_nor_each_other_nor_leave_the_frame():
    marks = [(10.0, 10.0), (18.0, 14.0), (500.0, 500.0), (990.0, 990.0), (506.0, 504.0)]
    sizes = [(12.0, 10.0)] * len(marks)
    spots = place(marks, sizes, 8.0, FRAME)
    boxes = [Box(s.x, s.y, 12.0, 10.0) for s in spots]
    solid = [Box(x, y, 8.0, 8.0) for x, y in marks]
    assert all(a.overlap(b) == 0 for i, a in enumerate(boxes) for b in (*boxes[:i], *solid))
    assert all(box.outside(FRAME) == 0 for box in boxes)


def test_a_lone_label_stays_beside_its_mark_off_the_line():
    line = [(300.0 + i, 300.0 + i) for i in range(0, 200, 4)]
    (spot,) = place([(400.0, 400.0)], [(12.0, 10.0)], 8.0, FRAME, line)
    box = Box(spot.x, spot.y, 12.0, 10.0)
    assert not spot.led and abs(spot.x - 400) < 20 and abs(spot.y - 400) < 20
    assert sum(box.overlap(Box(x, y, 4.0, 4.0)) for x, y in line) == 0


def test_overlap_is_the_shared_area():
    assert Box(0, 0, 2, 2).overlap(Box(1, 1, 2, 2)) == 1
    assert Box(0, 0, 2, 2).overlap(Box(0, 0, 10, 10)) == 4
    assert Box(0, 0, 2, 2).outside(Box(1, 0, 2, 2)) == 2
