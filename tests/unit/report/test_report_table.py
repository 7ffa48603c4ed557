import io
import json

import pytest
import run_folder as fake
from rich.console import Console

from infx.report.table import number, run_json, run_table, run_text
from infx.results.load import load_run
from infx.results.store import RunStore
from infx.schema.result import Death, Observed, Value


def loaded(tmp_path, **changes):
    return load_run(fake.write(tmp_path, **changes))


def line_of(text, layout, concurrency):
    return next(x.split() for x in text.splitlines() if x.split()[:2] == [layout, str(concurrency)])


def test_a_row_has_the_points_own_figures(tmp_path):
    text = run_text(loaded(tmp_path, tps=(2,)))
    figures = fake.curve(2, 8)
    assert line_of(text, "tp2", 8) == [
        "tp2", "8", "ok", "120", f"{figures['output-throughput-per-gpu']:.1f}",
        f"{figures['total-throughput-per-gpu']:,.0f}", f"{figures['interactivity-median']:.1f}",
        "132.0", "264.0", "8.800", "1,250", "0.0%", "0",
    ]


def test_what_is_not_ok_has_dashes_a_status_and_its_reason_below(tmp_path):
    text = run_text(loaded(tmp_path, tps=(2,), failed=("c8",), skipped=("c64",)))
    assert line_of(text, "tp2", 8)[2:6] == ["failed", "–", "–", "–"]
    assert line_of(text, "tp2", 64)[2:] == ["missing", *["–"] * 10]
    assert "- tp2 c8 is failed: engine-died: what was found: engine-died" in text
    assert "- tp2 c64 is missing: no start has measured it" in text
    assert "state     partial: 1 ok, 1 failed, 1 missing" in text


def test_a_figure_that_is_null_is_a_dash_with_its_reason(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c1",))
    with RunStore.open(folder) as store:
        figures = {**fake.curve(2, 1), "ttft-p90": None}
        store.append_visit(load_run(folder).plan.points[0], "001", fake.visit(figures))
    text = run_text(load_run(folder))
    assert line_of(text, "tp2", 1)[8] == "–"
    assert "- no TTFT, p90 at tp2 c1: not measured here" in text


def test_columns_that_no_point_has_are_left_out_and_those_some_have_stay(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c1",))
    assert "  AL" not in run_text(load_run(folder))
    with RunStore.open(folder) as store:
        engine = {"acceptance-length": Value(value=3.512, unit="tokens")}
        store.append_visit(load_run(folder).plan.points[0], "001", fake.visit(fake.curve(2, 1), engine=engine))
    text = run_text(load_run(folder))
    assert "3.512" in line_of(text, "tp2", 1)
    assert "no Acceptance length at tp2 c8, tp2 c64: not in the result" in text


def test_marks_stand_first(tmp_path):
    text = run_text(loaded(tmp_path, quick=True, run_changes={"unofficial": True}))
    assert [x.split(":")[0] for x in text.splitlines()[:3]] == ["SIMULATED", "UNOFFICIAL", "QUICK"]
    assert "SIMULATED" not in run_text(loaded(tmp_path / "2", simulated=False))


def test_an_engine_that_says_it_simulates_is_marked_whatever_the_profile(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), simulated=False)
    with RunStore.open(folder) as store:
        store.write_start(fake.start("001", "b-s-base-tp2", "s-base-tp2", simulated=True))
    assert run_text(load_run(folder)).startswith("SIMULATED")


def test_deaths_mismatches_and_drift_are_told(tmp_path):
    folder = fake.write(tmp_path, tps=(2,))
    point = load_run(folder).plan.points[0]
    again = {**fake.curve(2, 1), "output-throughput-per-gpu": fake.curve(2, 1)["output-throughput-per-gpu"] * 0.97}
    with RunStore.open(folder) as store:
        store.append_visit(point, "001", fake.visit(again))
        store.write_start(fake.start(
            "002", "b-s-base-tp2", "s-base-tp2", at=900.0,
            death=Death(reason="killed", signal="SIGKILL", message="killed by the kernel", lines=["a", "oom"]),
            observed=[Observed(name="block-size", wanted=128, found=16, verdict="mismatch", evidence="log line 7")],
        ))
    text = run_text(load_run(folder))
    assert "- tp2 c1 revisited in start 001: output -3.0% against its first visit" in text
    assert "- start 002 (b-s-base-tp2) ended: killed: killed by the kernel\n-     a\n-     oom" in text
    assert "- start 002: block-size wanted 128, found 16 (log line 7)" in text
    assert "settings  1 verified, 1 mismatch" in text


def test_the_terminal_table_says_the_same(tmp_path):
    run = loaded(tmp_path, arms=(None, "no-mono"), failed=("tp4/c8",))
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(run_table(run))
    shown = console.export_text()
    for word in ("SIMULATED", "no-mono tp2", "engine-died", "264.0", "tok/s/GPU"):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_json_holds_every_result_as_stored(tmp_path):
    run = loaded(tmp_path, tps=(2,), skipped=("c64",))
    told = json.loads(json.dumps(run_json(run)))
    assert told["state"] == "partial" and told["missing"] == [f"{fake.RECIPE}/tp2/c64"]
    assert told["points"][f"{fake.RECIPE}/tp2/c1"] == "001" and told["points"][f"{fake.RECIPE}/tp2/c64"] is None
    assert told["results"][0] == json.loads(run.results[0].model_dump_json())


def test_numbers_keep_four_digits_and_nothing_is_never_zero():
    assert [number(x) for x in (None, 0.0, 1.23456, 12.3456, 123.456, 1234.56, -0.5)] == [
        "–", "0.000", "1.235", "12.35", "123.5", "1,235", "-0.500"
    ]


def curve_with(tmp_path, **shares):
    """tp2 c1, c8, c64 with the given engine values by concurrency."""
    folder = fake.write(tmp_path, tps=(2,), skipped=("c1", "c8", "c64"))
    with RunStore.open(folder) as store:
        for place, point in enumerate(load_run(folder).plan.points):
            engine = {name: Value(value=values[place], unit="") for name, values in shares.items()}
            store.append_visit(point, "001", fake.visit(fake.curve(2, point.concurrency), engine=engine))
    return run_text(load_run(folder))


def test_a_point_off_its_curve_is_named_with_its_distance(tmp_path):
    text = curve_with(tmp_path, **{"limit-share": (0.4, 0.2, 0.4)})
    assert "- tp2 c8 is off its curve: share of the roofline is -50% against the line between its neighbours" in text
    assert line_of(text, "tp2", 8)[-2] == "20.0%"


def test_the_prediction_is_the_surer_ratio(tmp_path):
    bent = {"limit-share": (0.4, 0.2, 0.4)}
    assert "off its curve" not in curve_with(tmp_path / "a", **bent, **{"prediction-ratio": (1.0, 0.9, 1.0)})
    text = curve_with(tmp_path / "b", **{"prediction-ratio": (1.0, 0.8, 1.0)})
    assert "- tp2 c8 is off its curve: measured ÷ predicted is -20%" in text
    assert "off its curve" not in curve_with(tmp_path / "c", **{"limit-share": (0.4, 0.33, 0.4)})


def test_a_frontier_with_fewer_than_five_measured_points_is_said(tmp_path):
    # throughput and E2EL both grow along a curve: all of its points are on the frontier
    said = "- the frontier of base has 4 of 4 measured points in throughput per GPU and E2EL; 5 or more are wanted"
    assert said in run_text(loaded(tmp_path / "a", tps=(2,), concurrencies=(1, 2, 4, 8)))
    assert "R-040" not in run_text(loaded(tmp_path / "b", tps=(2,), concurrencies=(1, 2, 4, 8, 16)))


def test_points_that_another_beats_do_not_count_towards_five(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), concurrencies=(1, 2, 4, 8, 16), skipped=("c16",))
    worse = {**fake.curve(2, 16), "total-throughput-per-gpu": 1.0}
    with RunStore.open(folder) as store:
        store.append_visit(load_run(folder).plan.points[-1], "001", fake.visit(worse))
    assert "the frontier of base has 4 of 5 measured points" in run_text(load_run(folder))


@pytest.mark.parametrize("changes", [{"quick": True}, {"skipped": ("c4",)}])
def test_an_unfinished_or_quick_run_is_not_counted(changes, tmp_path):
    assert "R-040" not in run_text(loaded(tmp_path, tps=(2,), concurrencies=(1, 2, 4), **changes))
