"""`infx compare`, `infx noise` and `infx ab` on run folders, as typed."""

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from infx.cli import ab as ab_command
from infx.cli import compare as compare_command
from infx.cli import noise as noise_command
from infx.errors import ComparisonError, InputError, UsageError

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("compare_cli_folders", ROOT / "tests" / "fakes" / "run_folder.py")
folders = importlib.util.module_from_spec(spec)
sys.modules["compare_cli_folders"] = folders
spec.loader.exec_module(folders)

METRIC = ("--metric", "tpot-p50")


def run(module, *words):
    if hasattr(module, "app"):
        app = module.app
    else:
        app = typer.Typer()
        app.command()(module.command)
    result = CliRunner().invoke(app, [str(w) for w in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i, (slow, fast) in enumerate([(1.0, 1.2), (1.004, 1.207), (0.997, 1.196)]):
        folders.write(tmp_path / "runs", f"2026120{i + 1}T090000Z-demo-a{i}", speed=slow)
        folders.write(tmp_path / "runs", f"2026120{i + 1}T100000Z-demo-b{i}", speed=fast)
    return tmp_path / "runs"


def test_sets_of_starts(runs):
    said = run(compare_command, "a0,a1,a2", "b0,b1,b2", *METRIC)
    assert "tp2/c1   tpot-p50  6.35 → 5.29 (+16.7%)" in said
    assert said.count("  better") == 6
    assert "area under Output throughput per GPU over Interactivity, median" in said


def test_json_and_markdown(runs):
    data = json.loads(run(compare_command, "a0,a1,a2", "b0,b1,b2", *METRIC, "--json"))
    cell = data["curves"][0]["cells"][0]
    assert (cell["point"], cell["metric"], cell["verdict"]) == ("tp2/c1", "tpot-p50", "better")
    assert len(cell["first"]) == 3
    assert run(compare_command, "a0", "b0", *METRIC, "--md").startswith("**a0 → b0** (a positive percentage")
    with pytest.raises(UsageError, match="exclude each other"):
        run(compare_command, "a0", "b0", "--md", "--json")


def test_single_runs_need_a_floor_and_noise_makes_one(runs):
    assert "start-to-start" not in run(compare_command, "a0,a1", "b0,b1", *METRIC)
    alone = run(compare_command, "a0", "b1", *METRIC)
    assert alone.count("undecided: one start a side and no stored noise floor") == 6
    assert "floors from 3 run(s)" in run(noise_command, "add", "a0", "a1", "a2", "--noise", "floors.yaml")
    judged = run(compare_command, "a0", "b1", *METRIC, "--noise", "floors.yaml")
    assert judged.count("better: n = 1 against pooled floor") == 6
    assert "demo-fp4-mi355x-vllm  *  tpot-p50" in run(noise_command, "show", "--noise", "floors.yaml")
    with pytest.raises(UsageError, match="already in the noise floors"):
        run(noise_command, "add", "a0", "b0", "--noise", "floors.yaml")
    with pytest.raises(UsageError, match="two starts of one identity"):
        run(noise_command, "add", "b0", "--noise", "floors.yaml")
    Path("floors.yaml").write_text("floors: 3\n")
    with pytest.raises(InputError, match="not readable"):
        run(compare_command, "a0", "b1", "--noise", "floors.yaml")


def test_rerun_points_follow_the_declared_policy(runs):
    every = json.loads(run(compare_command, "a0,a1,a2", "b0", *METRIC, "--json"))
    latest = json.loads(run(compare_command, "a0,a1,a2", "b0", *METRIC, "--rerun", "latest", "--json"))
    assert len(every["curves"][0]["cells"][0]["first"]) == 3
    assert len(latest["curves"][0]["cells"][0]["first"]) == 1
    assert {n["code"] for n in latest["notes"]} >= {"set-aside"}
    with pytest.raises(UsageError, match="--rerun 'newest'"):
        run(compare_command, "a0", "b0", "--rerun", "newest")


def test_a_narrower_run_is_named(runs):  # P44
    folders.write(runs, "20261209T090000Z-demo-narrow", skipped=("tp4/c8", "tp4/c64"), failed=("tp2/c64",))
    said = run(compare_command, "a0", "narrow", *METRIC)
    assert "coverage, tp4: 1 of 3 points of the old curve; missing: tp4/c8, tp4/c64" in said
    assert "without a usable start: tp2/c64 (failed)" in said
    assert "not comparable: failed in 20261209T090000Z-demo-narrow:001 (second side): what was found" in said


def test_wrong_input(runs):
    folders.write(runs, "20261209T090000Z-real-1", simulated=False)
    folders.write(runs, "20261209T090000Z-other-1", recipe="other-fp8-h200-vllm")
    assert "simulated results against measured ones" in run(compare_command, "a0", "real-1", *METRIC)
    assert "recipes differ: demo-fp4-mi355x-vllm against other-fp8-h200-vllm" in run(
        compare_command, "a0", "other-1", *METRIC)
    assert "nothing is compared with itself" in run(compare_command, "a0", "a0", *METRIC)
    for words, message in ((("a0", "b0", "--metric", "tpot"), "unknown metric"), (("a0", "b9"), "no run folder"),
                           (("a0", "b0@fast"), "no arm 'fast'"), (("a0", "b0", "--margin", "2"), "--margin '2'"),
                           (("a0",), "there is no changelog"), (("entry", "entry"), "one side only")):
        with pytest.raises(UsageError, match=message):
            run(compare_command, *words)


def test_arms_of_one_run(runs):
    folders.write(runs, "20261209T090000Z-arms-1", arms=("no-mono", None))
    said = run(compare_command, "arms-1", *METRIC)
    assert said.startswith("no-mono → base")
    assert "(+6.0%)" in said


CHANGE = """- config-keys: [demo-fp4-mi355x-vllm]
  description: [Faster kernels.]
  pr-link: https://github.com/o/r/pull/1
  expect:
  - {{points: "c<=8", metric: tpot-p50, verdict: {first}}}
  - {{points: "tp=4, c=64", metric: ttft-p50, verdict: better}}
"""


def test_claims_have_an_exit_code_and_evidence(runs):  # P58
    Path("log.yaml").write_text(CHANGE.format(first="better"))
    words = ("a0,a1,a2", "b0,b1,b2", "--claims", "--changelog", "log.yaml")
    said = run(compare_command, *words)
    assert said.count("met: ") == 2
    assert said.count("runs") == 0
    data = json.loads(run(compare_command, *words, "--json"))
    evidence = data["claims"][1]["evidence"]
    assert len(evidence) == 6
    file = runs / "20261201T090000Z-demo-a0/points/base/tp4-c64/002/result.json"
    import hashlib

    assert evidence["20261201T090000Z-demo-a0:002 tp4/c64"] == hashlib.sha256(file.read_bytes()).hexdigest()
    Path("log.yaml").write_text(CHANGE.format(first="same"))
    with pytest.raises(ComparisonError, match="1 of 2 claims of .* not met") as refused:
        run(compare_command, *words)
    assert refused.value.exit_code == 11
    Path("log.yaml").write_text(CHANGE.format(first="better"))
    with pytest.raises(ComparisonError, match="2 of 2 claims"):
        run(compare_command, "b0", "--claims", "--changelog", "log.yaml")


def test_a_run_against_the_latest_entry(runs):
    from infx.changelog.append import append_results
    from infx.changelog.entries import results_entry
    from infx.changelog.record import summary
    from infx.results.load import load_run

    folders.write(runs, "20261210T090000Z-real-1", simulated=False)
    folders.write(runs, "20261211T090000Z-real-2", simulated=False, speed=1.3)
    old = runs / "20261210T090000Z-real-1"
    append_results(Path("log.yaml"), results_entry(summary(load_run(old))), trunk=True)
    said = run(compare_command, "real-2", *METRIC, "--changelog", "log.yaml")
    assert said.startswith("entry 20261210T090000Z-real-1 → real-2")
    old.rename(runs.parent / "gone")
    said = run(compare_command, "entry", "real-2", *METRIC, "--changelog", "log.yaml")
    assert said.startswith("entry 20261210T090000Z-real-1 (figures as recorded) → real-2")
    assert "6.33 → 4.87 (+23.1%)" in said or "6.35 → 4.88 (+23.1%)" in said


def test_ab_dry_run_says_what_it_costs_and_finds(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    key = "qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono"
    said = run(ab_command, key, "--arm", "no-mono", "--runner", "simulator", "--repeats", "6", "--only", "tp1/*",
               "--dry-run", "--out", tmp_path)
    assert "12 engine starts, at least" in said
    assert "order ABBAABBAABBA" in said
    assert "looks after 3, 4, 6 starts an arm" in said
    assert "smallest gain" in said
    assert list(tmp_path.iterdir()) == []
    for words, message in (((key, "--runner", "simulator"), "say what to compare"),
                           ((key, "--arm", "base", "--runner", "simulator"), "A and B are both"),
                           ((key, "--arm", "no-mono", "--runner", "simulator", "--repeats", "1"), "no spread"),
                           ((key, "--arm", "no-mono", "--runner", "simulator", "--budget", "0.1"), "GPU-hours allow"),
                           ((key, "--arm", "mono", "--runner", "simulator"), "no arm 'mono'")):
        with pytest.raises(UsageError, match=message):
            run(ab_command, *words, "--dry-run")


def test_two_hundred_runs_of_forty_points_within_bounds(tmp_path):
    """100 starts a side, 40 points, four metrics: the comparison itself, from loaded runs."""
    from infx.compare.frontier import axes_of_curves, figures
    from infx.compare.sides import side_of
    from infx.compare.verdict import Options, compare
    from infx.results.load import load_run

    concurrencies = tuple(range(1, 21))
    paths = [folders.write(tmp_path, f"20261201T{i:06d}Z-demo-{i}", concurrencies=concurrencies,
                           speed=1 + 0.001 * (i % 7) + (0.1 if i >= 4 else 0)) for i in range(8)]
    loaded = [load_run(path) for path in paths]
    many = [loaded[:4] * 25, loaded[4:] * 25]
    sides = []
    for name, group in zip("ab", many, strict=True):
        copies = []
        for number, one in enumerate(group):
            run_ = one.run.model_copy(update={"id": f"{one.run.id}-{name}{number}"})
            copies.append(type(one)(one.path, run_, one.plan, one.starts, one.results))
        sides.append(copies)
    before = time.process_time()
    first, second = (side_of(n, group) for n, group in zip("ab", sides, strict=True))
    metrics = ("output-throughput-per-gpu", "ttft-p50", "tpot-p50", "e2el-p50")
    found = compare(first, second, Options(metrics=metrics))
    assert len(figures(axes_of_curves(found))) == 2
    assert len(found.cells) == 160
    assert {len(c.estimate.first.values) for c in found.cells} == {100}
    assert time.process_time() - before < 60, "far beyond the bound of 10 s"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000
