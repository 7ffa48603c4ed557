"""The commands that read runs, as a user types them: output in a pipe, files they write, exit codes of wrong input."""

import csv
import io
import json
import subprocess
import sys

import pytest
import run_folder as fake


def infx(folder, *words):
    """Run the command line in ``folder``."""
    return subprocess.run(
        [sys.executable, "-c", "from infx.cli.app import main; main()", *words],
        cwd=folder, capture_output=True, text=True, timeout=60,
    )


@pytest.fixture
def runs(tmp_path):
    fake.write(tmp_path / "runs", "20261201T090000Z-demo-aaaaaa", tps=(2,), failed=("c64",))
    return tmp_path


def test_show_and_its_json(runs):
    shown = infx(runs, "show")
    assert shown.returncode == 0 and shown.stdout.startswith("SIMULATED: no hardware was measured\n")
    assert "tp2 c64 is failed: engine-died" in shown.stdout
    told = json.loads(infx(runs, "show", "aaaa", "--json").stdout)
    assert told["tally"] == {"ok": 2, "failed": 1}


def test_plot_writes_beside_the_run_or_where_it_is_told(runs):
    drawn = infx(runs, "plot", "latest")
    assert drawn.stdout.strip().endswith("20261201T090000Z-demo-aaaaaa/pareto.svg")
    assert (runs / drawn.stdout.strip()).read_bytes().startswith(b"<?xml")
    assert infx(runs, "plot", "latest", "-o", "p.png").returncode == 0
    assert (runs / "p.png").read_bytes().startswith(b"\x89PNG")


def test_report_and_export(runs):
    assert infx(runs, "report", "latest", "-o", "r.html").returncode == 0
    assert "[SIMULATED]" in (runs / "r.html").read_text()
    table = list(csv.DictReader(io.StringIO(infx(runs, "export", "latest").stdout)))
    assert [row["status"] for row in table] == ["ok", "ok", "failed"]
    exported = infx(runs, "export", "latest", "--format", "inferencex", "-o", "agg.json")
    assert "not exported: demo-fp4-mi355x-vllm/tp2/c64: failed" in exported.stderr
    again = infx(runs, "import", "agg.json", "--json")
    points = json.loads(again.stdout)
    assert [p["concurrency"] for p in points] == [1, 8]
    assert points[0]["hardware"] == "simulated-mi355x"


def test_import_goes_on_after_a_bad_file_and_says_so(runs):
    (runs / "bad.json").write_text("{")
    infx(runs, "export", "latest", "--format", "inferencex", "-o", "agg.json")
    done = infx(runs, "import", "bad.json", "agg.json")
    assert done.returncode == 3 and "bad.json" in done.stderr and "Traceback" not in done.stderr
    assert done.stdout.count("inferencex-aggregate") == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "nothing"), 2, "no run folder"),
        (("plot", "latest", "-o", "p.jpg"), 2, ".svg or .png"),
        (("plot", "latest", "--x", "ttft-p05"), 2, "perhaps you meant"),
        (("export", "latest", "--format", "xml"), 2, "csv, inferencex"),
        (("import", "none.json"), 3, "cannot read"),
    ],
)
def test_wrong_words_are_explained(runs, words, code, said):
    done = infx(runs, *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_of_a_newer_format_is_refused_with_advice(runs):
    path = runs / "runs/20261201T090000Z-demo-aaaaaa/run.json"
    path.write_text(path.read_text().replace('"format-version": 1', '"format-version": 9'))
    done = infx(runs, "show")
    assert done.returncode == 7 and "format 9 is newer" in done.stderr and "upgrade" in done.stderr
