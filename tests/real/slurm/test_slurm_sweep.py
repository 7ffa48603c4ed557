"""Sweeps over a real Slurm: a job a block, and after every fault a run that can be resumed and no job left.

The engine is the simulator; nodes, power cuts, preemption and the queue are real.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.fakes.repository import Repository

pytestmark = pytest.mark.timeout(200)

RECIPE = """image: pypi:vllm==1.0
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {kind: fixed-seq-len, isl: 64, osl: 16}
ladder: [{tp: 1, concurrency: [1, 2]}]
overrides: [{when: {concurrency: 2}, env: {SECOND: "1"}}]
stop: {min-requests: 8, window-s: 0.3, cap-s: 60}
"""
ONE_BLOCK = RECIPE.replace('overrides: [{when: {concurrency: 2}, env: {SECOND: "1"}}]\n', "")


class Fleet(Repository):
    """A repository whose profile ``fleet`` sends blocks to the cluster, one a node."""

    def profile(self, *options: str, requeue: bool = False, **slurm: str) -> None:
        asked = {"poll-s": "0.3", "settle-s": "1.5", "cpus": "10", "time-limit-min": "10",
                 "gres": '"gpu:mi355x:{gpus}"',
                 "requeue": str(requeue).lower(), "options": json.dumps(list(options)), **slurm}
        self.write("runners/fleet.yaml", f"""place: slurm
launch: process
serves: any
stands-in: true
exclusive: false
executable: infx-sim
visible: ROCR_VISIBLE_DEVICES
env:
  INFX_SIM_HARDWARE: "{{hardware}}"
  INFX_SIM_IMAGE: "{{image}}"
slurm: {{{", ".join(f"{name}: {value}" for name, value in asked.items())}}}
limits: {{ready-s: 60, quiet-s: 10, request-s: 60, stop-s: 2}}
""")

    def recipe(self, text: str = RECIPE, window_s: float = 0.3) -> None:
        self.write("recipes/toy.yaml", text.replace("window-s: 0.3", f"window-s: {window_s}"))

    @property
    def run(self) -> Path:
        (run,) = self.runs()
        return run

    def starts(self) -> list[dict]:
        return [json.loads(path.read_text()) for path in sorted(self.run.glob("starts/*/start.json"))]

    def statuses(self) -> dict[str, str]:
        """Point → status, over every start; a busy machine may hold the client back."""
        found = [json.loads(path.read_text()) for path in sorted(self.run.glob("points/*/*/*/result.json"))]
        return {result["point"].split("/", 1)[1]: result["status"].replace("client-bound", "ok") for result in found}

    def listed(self) -> dict:
        (row,) = json.loads(self.infx("runs", "--json").stdout)
        return row

    def wait(self, pattern: str, limit_s: float = 60) -> Path:
        """The first file of the run that matches."""
        return until(lambda: next(iter(sorted(self.root.glob(f"runs/*/{pattern}"))), None), limit_s)

    def measuring(self) -> Path:
        """Waits until an engine of some job is ready; the job's folder."""
        def ready() -> Path | None:
            for path in self.root.glob("runs/*/jobs/*/runs/[!.]*/starts/*/start.json"):
                if json.loads(path.read_text()).get("ready-s"):
                    return path.parents[4]
            return None

        return until(ready)

    def finish(self, sweep: subprocess.Popen[str], code: int) -> str:
        out, err = sweep.communicate(timeout=150)
        assert "Traceback" not in err
        assert sweep.returncode in ((0, 1) if code == 0 else (code,)), out + err
        return err


def until(fact, limit_s: float = 60):
    deadline = time.monotonic() + limit_s
    while not (found := fact()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return found


@pytest.fixture
def fleet(tmp_path: Path, slurm) -> Fleet:
    made = Fleet(tmp_path)
    made.profile()
    made.recipe()
    return made


def node_of(folder: Path, restart: int = 0) -> str:
    return json.loads((folder / f"started-{restart}.json").read_text())["node"]


def resumed(fleet: Fleet) -> None:
    """The rest of the run is measured, and every point is there."""
    done = fleet.infx("sweep", "--resume", str(fleet.run))
    assert done.returncode in (0, 1), done.stderr
    assert fleet.statuses() == {"tp1/c1": "ok", "tp1/c2": "ok"}
    assert fleet.listed()["state"] == "complete"


def test_two_nodes_measure_one_run(fleet):
    fleet.recipe(RECIPE.replace("tp: 1", "tp: 2"))
    done = fleet.infx("sweep", "toy", "--runner", "fleet")
    assert done.returncode in (0, 1), done.stderr
    assert fleet.statuses() == {"tp2/c1": "ok", "tp2/c2": "ok"}
    starts = fleet.starts()
    assert len({start["node"] for start in starts}) == 2, "a node each: either asks for 10 of 16 CPUs"
    for start in starts:
        assert start["devices"] == ["0", "1"] and start["env"]["ROCR_VISIBLE_DEVICES"] == "0,1"
    for word in ("jobs: 2 queued", "2 done"):
        assert word in done.stderr
    shown = fleet.infx("show", str(fleet.run)).stdout
    assert all(start["node"] in shown for start in starts) and "each start's node" in shown
    assert fleet.listed()["jobs"] == []


@pytest.mark.parametrize(("option", "says"), [("--partition=nowhere", "Invalid partition"),
                                              ("--gres=gpu:b200:1", "node configuration is not available")])
def test_a_refusal_is_told_in_slurms_words(fleet, option, says):
    fleet.profile(option)
    done = fleet.infx("sweep", "toy", "--runner", "fleet")
    assert done.returncode == 12 and "Slurm refused the job" in done.stderr and "sinfo" in done.stderr
    assert says in done.stderr, done.stderr
    assert fleet.listed()["jobs"] == [] and fleet.listed()["state"] == "partial"


def test_a_power_cut_in_mid_sweep(fleet, slurm):
    fleet.recipe(ONE_BLOCK, window_s=3)
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    fleet.wait("jobs/*/runs/[!.]*/points/*/*/*/result.json")
    (job,) = fleet.run.glob("jobs/*")
    node = node_of(job)
    slurm.node("power-off", node)
    try:
        said = fleet.finish(sweep, 1)
        assert f"its node failed ({node})" in said
        assert fleet.statuses()["tp1/c1"] == "ok" and fleet.listed()["state"] == "partial"
        assert not (job / "done.json").exists()
        fleet.recipe()
        resumed(fleet)
        assert len({start["node"] for start in fleet.starts()} - {node}) == 1, "the rest ran elsewhere"
    finally:
        slurm.node("start-node", node)
        slurm.wait_idle(node)


def test_preempted_and_queued_again_it_goes_on_where_it_was(fleet, slurm):
    fleet.recipe(ONE_BLOCK, window_s=3)
    fleet.profile("--nodelist=n2", requeue=True, partition="low")
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    fleet.wait("jobs/*/runs/[!.]*/points/*/*/*/result.json")
    (job,) = fleet.run.glob("jobs/*")
    number = json.loads((job / "job.json").read_text())["job"]
    urgent = ["sbatch", "--parsable", "--nodelist=n2", "--exclusive", "--output=/dev/null", "--wrap=true"]
    subprocess.run([*urgent, "--wait"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    slurm.wait_state(number, "PENDING", "RUNNING")
    assert not (job / "done.json").exists()
    slurm.update(f"JobId={number}", "StartTime=now")  # Slurm itself would wait for two minutes
    said = fleet.finish(sweep, 0)
    assert "1 queued, 0 running" in said.split("1 running", 1)[1], "it was seen in the queue again"
    assert json.loads((job / "done.json").read_text())["restart"] == 1
    assert fleet.statuses() == {"tp1/c1": "ok", "tp1/c2": "ok"}
    assert len(list(fleet.run.glob("points/base/tp1-c1/*"))) == 1, "the finished point was not measured again"


@pytest.mark.long
def test_a_lost_slurmd_loses_nothing(fleet, slurm):
    """The controller gives the node up, the job lives on: its marker counts, not its state."""
    fleet.recipe(ONE_BLOCK, window_s=8)
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    node = node_of(fleet.measuring())
    slurm.node("kill-slurmd", node)
    try:
        fleet.finish(sweep, 0)
        assert fleet.statuses() == {"tp1/c1": "ok", "tp1/c2": "ok"}
    finally:
        slurm.node("start-node", node)
        slurm.wait_idle(node)


@pytest.mark.long
def test_a_restarted_controller(fleet, slurm):
    fleet.recipe(window_s=3)
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    fleet.measuring()
    slurm.call("kill-controller")
    try:
        time.sleep(4)  # some looks at a scheduler that is not there
    finally:
        slurm.call("start-controller")
    fleet.finish(sweep, 0)
    assert fleet.statuses() == {"tp1/c1": "ok", "tp1/c2": "ok"}
    # A script that ended while there was no controller is reported late; by its marker the sweep knew before.
    subprocess.run(["scancel", "--user=root"], check=True, timeout=30)


def test_a_killed_submitter_is_followed_by_another(fleet):
    fleet.recipe(window_s=2)
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    fleet.measuring()
    sweep.kill()
    sweep.communicate()
    assert len(fleet.listed()["jobs"]) == 2
    refused = fleet.infx("sweep", "--resume", str(fleet.run))
    assert refused.returncode == 10 and "infx runs attach" in refused.stderr
    done = fleet.infx("runs", "attach", "latest")
    assert done.returncode in (0, 1), done.stderr
    assert fleet.statuses() == {"tp1/c1": "ok", "tp1/c2": "ok"}
    assert fleet.listed()["jobs"] == []


@pytest.mark.parametrize("how", ["ctrl-c", "cancel", "scancel"])
def test_cancelled(fleet, how):
    fleet.recipe(window_s=30)
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    job = fleet.measuring()
    if how == "ctrl-c":
        sweep.send_signal(signal.SIGINT)
        fleet.finish(sweep, 130)
    elif how == "cancel":
        said = fleet.infx("runs", "cancel", "latest")
        assert said.returncode == 0 and "cancelled 2 jobs" in said.stdout and "another infx watches" in said.stdout
        assert "it was cancelled" in fleet.finish(sweep, 1)
    else:
        subprocess.run(["scancel", "--user=root"], check=True, timeout=30)
        assert "it was cancelled" in fleet.finish(sweep, 1)
    assert not (job / "done.json").exists()
    assert fleet.listed()["state"] == "partial"
    assert all(start["ended-unix"] for start in fleet.starts()), "every engine was stopped by its own sweep"
    if how == "ctrl-c":
        fleet.run.joinpath("plan.json").write_text(
            fleet.run.joinpath("plan.json").read_text().replace('"window-s": 30.0', '"window-s": 0.3'))
        resumed(fleet)


def test_the_notice_before_the_time_limit(fleet, slurm):
    fleet.recipe(ONE_BLOCK, window_s=45)
    fleet.profile(**{"time-limit-min": "1"})
    sweep = fleet.start("sweep", "toy", "--runner", "fleet")
    said = fleet.finish(sweep, 1)
    (job,) = fleet.run.glob("jobs/*")
    assert not (job / "done.json").exists() and "time limit" in said
    assert all(start["ended-unix"] for start in fleet.starts()), "the engine was stopped in time"
    assert fleet.listed()["state"] == "partial"


@pytest.mark.long
def test_full_shared_storage(fleet, slurm):
    small = slurm.base / "small" / fleet.root.name
    fleet.recipe(ONE_BLOCK, window_s=3)
    sweep = fleet.start("sweep", "toy", "--runner", "fleet", "--out", str(small))
    until(lambda: list(small.glob("*/jobs/*/runs/[!.]*/starts/*/start.json")))
    ballast = small / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    out, err = sweep.communicate(timeout=100)
    assert sweep.returncode in (1, 9) and "Traceback" not in err, out + err
    assert "shared storage" in err or "No space left" in err, err
    ballast.unlink()
    (run,) = (path.parent for path in small.glob("*/run.json"))
    attached = fleet.infx("runs", "attach", str(run))
    assert "Traceback" not in attached.stderr
    done = fleet.infx("sweep", "--resume", str(run))
    assert done.returncode in (0, 1), done.stderr
    shown = json.loads(fleet.infx("show", str(run), "--json").stdout)
    assert shown["state"] == "complete" and len(shown["points"]) == 2


@pytest.mark.long
def test_a_hundred_blocks_wait_for_drained_nodes(fleet, slurm):
    steps = ", ".join(str(step) for step in range(1, 101))
    each = ", ".join(f'{{when: {{concurrency: {step}}}, env: {{STEP: "{step}"}}}}' for step in range(1, 101))
    fleet.recipe(RECIPE.replace("[1, 2]", f"[{steps}]").replace(
        'overrides: [{when: {concurrency: 2}, env: {SECOND: "1"}}]', f"overrides: [{each}]"))
    slurm.update("NodeName=n[1-3]", "State=DRAIN", "Reason=maintenance")
    try:
        done = fleet.infx("sweep", "toy", "--runner", "fleet", "--detach")
        assert done.returncode == 0, done.stderr
        row = until(lambda: (row := fleet.listed())["queue"] == "known" and row)
        assert len(row["jobs"]) == 100 and {job["fate"] for job in row["jobs"]} == {"queued"}
        assert any("DRAINED" in job["why"] for job in row["jobs"]), row["jobs"][:3]
        assert len({job["job"] for job in row["jobs"]}) == 100
        assert "100 queued" in fleet.infx("runs").stdout
        cancelled = fleet.infx("runs", "cancel", "latest")
        assert cancelled.returncode == 0 and "cancelled 100 jobs" in cancelled.stdout, cancelled.stderr
        assert fleet.listed()["jobs"] == []
    finally:
        slurm.update("NodeName=n[1-3]", "State=RESUME")


@pytest.mark.long
def test_inside_an_allocation(fleet):
    """`salloc` on the submit host: blocks are steps of the job that the caller holds."""
    words = ["salloc", "--quiet", "--nodes=2", "--cpus-per-task=10", "--gres=gpu:mi355x:1", "--nodelist=n1,n3"]
    done = subprocess.run([*words, *fleet.command("sweep", "toy", "--runner", "fleet")], cwd=fleet.root,
                          env=fleet.environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    assert fleet.statuses() == {"tp1/c1": "ok", "tp1/c2": "ok"}
    assert {start["node"] for start in fleet.starts()} <= {"n1", "n3"}


@pytest.mark.parametrize(("words", "says"), [
    (("sweep", "toy", "--runner", "fleet", "--fail-fast"), "--fail-fast does not go with place: slurm"),
    (("sweep", "toy", "--runner", "simulator", "--detach"), "--detach goes with jobs"),
    (("runs", "attach", "nothing"), "no run folder 'nothing'"),
])  # fmt: skip
def test_wrong_words(fleet, words, says):
    done = fleet.infx(*words)
    assert done.returncode == 2 and says in done.stderr


def test_without_slurm(fleet):
    path = ":".join(part for part in os.environ["PATH"].split(":") if not (Path(part) / "sbatch").exists())
    done = fleet.infx("sweep", "toy", "--runner", "fleet", PATH=path)
    assert done.returncode == 4 and "sbatch is not installed here" in done.stderr
