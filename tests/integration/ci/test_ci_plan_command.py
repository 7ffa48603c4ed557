"""`infx ci plan` as a process in a real git repository whose branch makes the headline change to the seed's recipe."""

from __future__ import annotations

import json

import pytest

from tests.fakes.pull_world import ENTRY, KEY, LOG, RECIPE, make_world

LADDER = "  - {tp: 2, concurrency: {from: 1, to: 64}}\n"
LOWEST = ["base-tp2", "base-tp4"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("ci"))


def blocks(matrix: dict) -> list[tuple[str, list[str]]]:
    return [(row["block"], [point.rpartition("/")[2] for point in row["points"]]) for row in matrix["include"]]


ALL = [f"c{2 ** power}" for power in range(7)]


@pytest.mark.parametrize(("label", "canary", "fail_fast", "then"), [
    ("sweep-enabled", [], False, [("base-tp2", ["c1"]), ("base-tp4", ["c1"])]),
    ("full-sweep-enabled", [("canary-base-tp2", ["c1"])], False, [("base-tp2", ALL[1:]), ("base-tp4", ALL)]),
    ("full-sweep-fail-fast", [("canary-base-tp2", ["c1"])], True, [("base-tp2", ALL[1:]), ("base-tp4", ALL)]),
    ("full-sweep-enabled-no-canary", [], False, [("base-tp2", ALL), ("base-tp4", ALL)]),
    ("full-sweep-fail-fast-no-canary", [], True, [("base-tp2", ALL), ("base-tp4", ALL)]),
])
def test_the_plan_of_each_label(world, label, canary, fail_fast, then):
    made = world.json(world.seed, label)
    assert (blocks(made["canary"]), made["fail-fast"], blocks(made["sweep"])) == (canary, fail_fast, then)
    assert (made["canary-jobs"], made["sweep-jobs"]) == (len(canary), len(then))
    for row in made["sweep"]["include"]:
        assert row["runner"] == "mi355x-docker" and row["runs-on"] == ["self-hosted", "cluster:mi355x-amds"]


def test_costs_are_worked_out_from_windows_and_the_stated_start_up(world):
    costs = world.json(world.seed, "full-sweep-enabled-no-canary", more=("--startup-s", "600"))["estimate"]
    each = 600 + 8 * 3600  # seven points and the revisit of the first
    assert costs["starts"] == 2 and costs["points"] == 14 and costs["assumed-startup-s"] == 600
    assert costs["gpu-hours"] == pytest.approx([each * 6 / 3600] * 2)
    assert costs["wall-s"] == [each] * 2 and costs["one-runner-wall-s"] == [2 * each] * 2


def test_shards_trade_starts_against_wall_time(world):
    made = world.json(world.seed, "full-sweep-enabled-no-canary", more=("--shards", "3", "--startup-s", "600"))
    assert blocks(made["sweep"])[:3] == [
        ("base-tp2-1of3", ["c1", "c2"]), ("base-tp2-2of3", ["c4", "c8"]), ("base-tp2-3of3", ["c16", "c32", "c64"])]
    assert made["estimate"]["starts"] == 6 and made["estimate"]["wall-s"] == [600 + 4 * 3600] * 2


def test_plan_files_are_what_a_runner_takes_and_fast_ones_are_unofficial(world):
    world.json(world.seed, "full-sweep-enabled", "agentx-fast", more=("--out", "plans", "--github-output", "out.txt"))
    plan = json.loads((world.root / f"plans/{KEY}.canary-base-tp2.json").read_text())
    assert plan["unofficial"] is True and [block["id"] for block in plan["blocks"]] == ["canary-base-tp2"]
    assert plan["points"][0]["workload"]["duration-s"] == 1200
    outputs = dict(line.split("=", 1) for line in (world.root / "out.txt").read_text().splitlines())
    assert json.loads(outputs["sweep-jobs"]) == 2 and outputs["fail-fast"] == "false"
    refused = world.infx("sweep", "--plan", f"plans/{KEY}.canary-base-tp2.json", "--block", "canary-base-tp2",
                         "--runner", "local")
    assert refused.returncode == 4 and "does not serve the label" in refused.stderr


@pytest.mark.parametrize(("labels", "note"), [
    (["full-sweep-enabled", "evals-only"], "infx has no evals yet"), ([], "no label asks for one"),
])
def test_what_runs_nothing_says_why(world, labels, note):
    done = world.plan(world.seed, *labels)
    assert done.returncode == 0 and "runs      nothing" in done.stdout and note in done.stdout


@pytest.mark.parametrize(("labels", "throughput", "evals"), [
    (["sweep-enabled"], 2, []),
    (["full-sweep-enabled"], 14, [("evals-base-tp4", ["c64"])]),
    (["full-sweep-enabled", "evals-only"], 0, [("evals-base-tp4", ["c64"])]),
    (["sweep-enabled", "all-evals"], 2, [("evals-base-tp2", ALL), ("evals-base-tp4", ALL)]),
    (["full-sweep-fail-fast", "agentx-fast"], 14, [("evals-base-tp4", ["c64"])]),
])
def test_the_evals_that_labels_ask_for_are_listed(world, labels, throughput, evals):
    made = world.json(world.seed, *labels)
    assert made["estimate"]["points"] == throughput and blocks(made["evals"]) == evals
    assert made["evals-jobs"] == len(evals)


def test_a_priority_label_restarts_nothing(world):  # P42
    made = world.json(world.seed, "full-sweep-enabled", "skip_queue", action="labeled", label="skip_queue")
    assert (made["canary-jobs"], made["sweep-jobs"]) == (0, 0)
    assert made["why"] == "the label 'skip_queue' does not change the plan"
    assert world.json(world.seed, "full-sweep-enabled", action="labeled", label="full-sweep-enabled")["sweep-jobs"] == 2


def test_a_fork_gets_no_runner(world):
    made = world.json(world.seed, "full-sweep-enabled", fork="stranger/name")
    assert made["sweep-jobs"] == 0 and "a fork" in made["why"]


def test_wrong_events_are_explained(world):
    two = world.plan(world.seed, "sweep-enabled", "full-sweep-enabled")
    assert two.returncode == 3 and "contradict each other" in two.stderr
    gone = world.plan(world.seed, "sweep-enabled", fork=None)
    assert gone.returncode == 3 and "the repository of 'mono' is deleted" in gone.stderr
    lost = world.plan("0" * 40, "sweep-enabled")
    assert lost.returncode == 3 and "is deleted, was force-pushed, or is not fetched" in lost.stderr
    other = world.infx("ci", "plan", "--event", world.event(world.seed), "--base", "main", "--head", "mono",
                       "--repository", "other/name")
    assert other.returncode == 3 and "the event is of org/name, but this is other/name" in other.stderr
    pushed = world.infx("ci", "plan", "--event", world.event("1" * 40), "--base", "main", "--head", "mono",
                        "--repository", "org/name")
    assert pushed.returncode == 3 and "the event is about commit 111111111111, but mono is" in pushed.stderr
    (world.root / "event.json").write_text('{"action": "labeled", "pull_request": {"number": "7"}}')
    bare = world.infx("ci", "plan", "--event", "event.json", "--base", "main", "--head", "mono")
    assert bare.returncode == 3
    for name in ("pull_request.number", "repository.full_name", "pull_request.head.sha", "pull_request.labels",
                 "label.name"):
        assert name in bare.stderr
    assert "Traceback" not in bare.stderr


def test_changed_recipes_without_an_entry_are_named(world):  # P36, P41
    sha = world.branch("uncovered", {RECIPE: world.old.replace("8192", "16384")})
    done = world.plan(sha, "full-sweep-enabled")
    assert done.returncode == 8 and f"C-021 recipe {KEY} changed (14 points changed)" in done.stderr


def test_append_only_runs_added_points_alone_and_proves_the_rest_unchanged(world):
    entry = "# The changelog.\n" + ENTRY.format(key=KEY, more="  append-only: true\n")
    more = world.old.replace(LADDER, LADDER.replace("to: 64", "to: 128"))
    assert more != world.old
    sha = world.branch("append", {RECIPE: more, LOG: entry})
    made = world.json(sha, "full-sweep-enabled-no-canary")
    assert blocks(made["sweep"]) == [("base-tp2", ["c128"])]
    sha = world.branch("append-and-change", {RECIPE: more.replace("8192", "16384"), LOG: entry})
    done = world.plan(sha, "full-sweep-enabled")
    assert done.returncode == 8 and "C-023 append-only, but recipe" in done.stderr


def test_a_skipping_head_commit_and_a_claim_that_names_an_arm(world):
    entry = "# The changelog.\n" + ENTRY.format(
        key=KEY, more="  expect: [{points: c<=8, metric: itl-p50, verdict: better, against: no-mono}]\n")
    sha = world.branch("claim", {RECIPE: world.new, LOG: entry})
    made = world.json(sha, "sweep-enabled")
    assert [row["block"] for row in made["sweep"]["include"]] == [*LOWEST, "no-mono-tp2", "no-mono-tp4"]
    assert "arms before change too" in made["notes"][0]
    sha = world.commit("Reword\n\n[skip-sweep]")
    assert "the head commit says [skip-sweep]" in world.plan(sha, "sweep-enabled").stdout


def test_a_plan_without_an_event_is_of_the_labels_that_are_named(world):
    def plan(*words):
        return world.infx("ci", "plan", "--base", "main", "--head", world.seed, *words)

    made = plan("--label", "full-sweep-enabled-no-canary", "--json")
    assert json.loads(made.stdout)["estimate"]["points"] == 14
    typo = plan("--label", "full-sweep")
    assert typo.returncode == 3 and "'full-sweep' is no label of a sweep" in typo.stderr
    for words in ([], ["--label", "sweep-enabled", "--event", world.event(world.seed)]):
        refused = plan(*words)
        assert refused.returncode == 2 and "give either --event or --label" in refused.stderr
