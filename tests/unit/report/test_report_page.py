import json
import re

import numpy as np
import pytest
import run_folder as fake

from infx.errors import ResultsError
from infx.measure.columns import COLUMNS
from infx.measure.stored import StoredTable
from infx.report.costs import with_costs
from infx.report.detail import detail
from infx.report.figure import build_figure
from infx.report.html import inline, render
from infx.report.page import page_data
from infx.results.load import load_run
from infx.results.store import RunStore

PRICES = {"mi355x": 1.5}


def data_of(page):
    """The page's data, its columns turned back into each point's values as the page itself does."""
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    for i, point in enumerate(data["points"]):
        point["values"] = {
            name: [part and part[i] for part in parts] for name, parts in data["columns"].items()
            if parts[0] is not None and parts[0][i] is not None
        }
        point["empty"] = {name: data["texts"][number] for name, number in point["empty"].items()}
    return data


def test_costs_come_from_price_and_power_or_say_what_is_missing(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c8",))
    with RunStore.open(folder) as store:
        figures = {"output-throughput-per-gpu": 500.0, "total-throughput-per-gpu": 4000.0, "power-mean": 2500.0}
        store.append_visit(load_run(folder).plan.points[1], "001", fake.visit(figures))
    run = load_run(folder)
    metrics = {r.concurrency: r.visits[0].metrics for r in with_costs(run, PRICES).results}
    cost = metrics[8]["usd-per-million-output-tokens"]
    assert cost.value == pytest.approx(1.5 / (500 * 3600) * 1e6)
    assert cost.low == pytest.approx(1.5 / (510 * 3600) * 1e6) and cost.low < cost.value < cost.high
    assert metrics[8]["total-throughput-per-megawatt"].value == pytest.approx(4000 / 1250 * 1e6)
    assert metrics[1]["total-throughput-per-megawatt"].reason == "power was not measured"
    unpriced = with_costs(run, {}).results[0].visits[0].metrics["usd-per-million-total-tokens"]
    assert unpriced.reason == "the price book has no price for mi355x"
    assert with_costs(run, PRICES).chosen(run.results[0].point).start == "001"


def test_detail_shows_what_the_requests_did(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,), concurrencies=(1,), columns=True))
    path = run.requests_file(run.results[0], run.results[0].visits[0])
    path.write_bytes(fake.requests(tpot_ms=5.0, ttft_ms=100.0).to_bytes())
    found = detail(run, run.results[0], run.results[0].visits[0])
    for name, value in (("ttft", 100.0), ("tpot", 5.0), ("e2el", 180.0)):
        low, high, counts = found.histograms[name]
        assert sum(counts) == 60 and low <= value <= high
    assert found.seconds == pytest.approx(15 * 0.180, rel=0.01)
    flying = found.lines["in-flight"]
    assert max(flying) == 4 and np.mean(flying) == pytest.approx(4, abs=0.1)
    assert sum(found.lines["output-rate"]) * found.seconds / len(flying) == pytest.approx(60 * 17, rel=0.01)
    assert found.engine == {} and found.missing is None


def test_chunks_of_any_size_give_the_same_detail(tmp_path):
    table = fake.requests(tpot_ms=5.0, ttft_ms=100.0)
    table.save(tmp_path / "requests.npz")
    with StoredTable(tmp_path / "requests.npz") as stored:
        for name in ("sent_ns", "outcome"):
            assert np.array_equal(stored.column(name), table[name])
        for size in (1, 7, 5000):
            pieces = list(stored.chunks("read_ns", size))
            assert max(map(len, pieces)) <= size and np.array_equal(np.concatenate(pieces), table.read_ns)


def test_a_damaged_table_is_named(tmp_path):
    path = tmp_path / "requests.npz"
    data = bytearray(fake.requests(tpot_ms=5.0, ttft_ms=100.0).to_bytes())
    data[len(data) // 3] ^= 255
    path.write_bytes(data)
    with pytest.raises(ResultsError, match="not a readable"), StoredTable(path) as stored:
        for name in COLUMNS:
            stored.column(name)
        list(stored.chunks("read_ns"))


def test_gauges_of_the_engine_are_shown_where_a_run_keeps_them(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,), concurrencies=(1,), columns=True))
    path = run.paths.timeline(run.results[0].point, "001", 0)
    path.write_text("seconds,running,kv-share\n0,1,\n1.5,2,0.25\n")
    found = detail(run, run.results[0], run.results[0].visits[0])
    assert found.engine == {"running": ([0.0, 1.5], [1.0, 2.0]), "kv-share": ([1.5], [0.25])}
    assert data_of(render([run], {}))["points"][0]["detail"]["engine"]["running"] == {"x": [0, 1.5], "y": [1, 2]}


def test_detail_without_columns_says_why(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,), failed=("c1",)))
    bad, unreadable = run.results[0], run.results[1]
    assert detail(run, bad, bad.visits[0]).missing == "the visit stored no per-request columns"
    assert "not a readable" in detail(run, unreadable, unreadable.visits[0]).missing
    run.requests_file(unreadable, unreadable.visits[0]).unlink()
    assert detail(run, unreadable, unreadable.visits[0]).missing == "requests.npz is missing"


def test_the_page_shows_the_figures_of_the_figure(tmp_path):
    run = load_run(fake.write(tmp_path, failed=("tp2/c64",), columns=True))
    data = data_of(render([run], PRICES))
    figure = build_figure([run])
    panel = figure.panels[0]
    dots = data["panels"][f"{panel.x}|{panel.y}"]["dots"]
    for label, series in panel.dots.items():
        points = [data["points"][i] for i in dots[label]]
        assert [p["concurrency"] for p in points] == [d.concurrency for d in series]
        for point, dot in zip(points, series, strict=True):
            assert point["values"][panel.x][0] == pytest.approx(dot.x, rel=1e-5)
            assert point["values"][panel.y][:3] == pytest.approx([dot.y, *dot.y_range], rel=1e-5)
    front = data["panels"][f"{panel.x}|{panel.y}"]["frontier"]["this run"]
    assert [data["points"][i]["key"] for i in front] == [d.point for d in panel.frontier_of(["tp2", "tp4"])]
    assert data["left_out"] == ["tp2 c64: failed, engine-died: what was found: engine-died"]
    assert all(p["detail"]["histograms"] for p in data["points"] if p["status"] == "ok")


def test_nothing_missing_becomes_a_number(tmp_path):
    run = load_run(fake.write(tmp_path, tps=(2,), failed=("c8",), skipped=("c64",)))
    by_status = {p["status"]: p for p in data_of(render([run], {}))["points"]}
    assert by_status["missing"]["values"] == {}
    assert set(by_status["failed"]["values"]) == {"prefix-hit-share"}
    assert by_status["ok"]["empty"]["usd-per-million-total-tokens"] == "the price book has no price for mi355x"


def test_a_rung_that_buys_nothing_is_marked_saturated(tmp_path):
    folder = fake.write(tmp_path, tps=(2,), skipped=("c64",))
    with RunStore.open(folder) as store:
        rate = fake.curve(2, 8)["output-throughput-per-gpu"] * 1.01
        figures = {**fake.curve(2, 64), "output-throughput-per-gpu": rate}
        store.append_visit(load_run(folder).plan.points[2], "001", fake.visit(figures))
    data = page_data([load_run(folder)], {})
    assert [data["points"][i]["concurrency"] for i in data["saturated"]] == [64]


def test_arms_and_runs_are_compared_and_one_start_decides_nothing(tmp_path):
    runs = [
        load_run(fake.write(tmp_path, "20261201T090000Z-demo-aaaaaa", tps=(2,), arms=(None, "no-mono"))),
        load_run(fake.write(tmp_path, "20261201T090001Z-demo-bbbbbb", tps=(2,), speed=1.5)),
    ]
    found = page_data(runs, {})["deltas"]
    assert [(d["first"], d["second"]) for d in found] == [
        ("aaaaaa base", "aaaaaa no-mono"), ("aaaaaa base", "bbbbbb base")]
    cell = next(c for c in found[1]["cells"] if (c["label"], c["metric"]) == ("tp2/c8", "tpot-p50"))
    assert cell["change"] == pytest.approx(1 / 1.5 - 1)
    assert cell["verdict"] == "undecided" and cell["reasons"]


def test_the_page_is_one_file_with_its_marks_and_no_foreign_link(tmp_path):
    page = render([load_run(fake.write(tmp_path, run_changes={"unofficial": True}))], PRICES, "mi355x $1.5")
    assert page == render([load_run(tmp_path / "20261201T090000Z-demo-000001")], PRICES, "mi355x $1.5")
    head = page[: page.index('<script type="application/json"')]
    assert "[SIMULATED] [UNOFFICIAL]" in re.search("<title>(.*?)</title>", head)[1]
    assert head.count('class="banner"') == 2
    assert not re.search(r'(?:src|href)="(?!data:|#)', page.split('id="data"')[0])
    assert "SIMULATED" not in render([load_run(fake.write(tmp_path / "2", simulated=False))], {}).split("<style>")[0]


def test_hostile_text_stays_text(tmp_path):
    attack = "</script><script>alert(1)</script>"
    run = load_run(fake.write(tmp_path, tps=(2,), run_changes={"client_host": attack, "command": ["<img onerror=x>"]}))
    page = render([run], {}, attack)
    assert attack not in page and "<img onerror" not in page
    odd = {"a": attack, "b": float("nan"), "c": "\u2028"}
    assert json.loads(inline(odd)) == {**odd, "b": None}
    assert "<" not in inline({"a": attack})
