"""The cluster of tests/infra behaves as production ones do in what infx relies on, its traps included."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(240)


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert not check or done.returncode == 0, done.stderr
    return done


def batch(folder: Path, body: str, *options: str) -> str:
    script = folder / "job.sh"
    script.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    return run("sbatch", "--parsable", f"--output={folder}/out", *options, str(script)).stdout.strip()


def test_a_job_runs_on_its_node_with_its_gpus(slurm, tmp_path):
    show = 'echo "$(hostname) $SLURMD_NODENAME $ROCR_VISIBLE_DEVICES $SLURM_JOB_GPUS ${CUDA_VISIBLE_DEVICES-none}"'
    job = batch(tmp_path, show, "--nodelist=n2", "--gpus=3", "--wait")
    assert slurm.job(job)["JobState"] == "COMPLETED"
    assert (tmp_path / "out").read_text() == "n2 n2 0,1,2 0,1,2 none\n"


def test_two_jobs_never_share_a_gpu(slurm, tmp_path):
    show = "srun sh -c 'echo $ROCR_VISIBLE_DEVICES; read _ < hold'"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run("mkfifo", str(tmp_path / "a" / "hold"), str(tmp_path / "b" / "hold"))
    options = ("--nodelist=n1", "--gpus=4", "--cpus-per-task=4")
    jobs = [batch(tmp_path / name, show, f"--chdir={tmp_path / name}", *options) for name in "ab"]
    for name in "ab":
        # opening the pipe for writing waits until the job reads, so both run at once
        (tmp_path / name / "hold").write_text("go\n")
    for job in jobs:
        slurm.wait_state(job, "COMPLETED")
    assert {(tmp_path / name / "out").read_text() for name in "ab"} == {"0,1,2,3\n", "4,5,6,7\n"}


@pytest.mark.long
def test_srun_exits_0_when_its_node_fails(slurm, tmp_path):
    """Why infx looks at a completion marker and the job's state, and never at srun's exit code."""
    marker = tmp_path / "started"
    body = f"touch {marker}; exec sleep 600"
    step = subprocess.Popen(
        ["srun", "--nodelist=n3", "--no-kill", "sh", "-c", body], stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for_file(marker)
        slurm.node("power-off", "n3")
        _, complaint = step.communicate(timeout=120)
    finally:
        step.kill()
        step.wait()
        slurm.node("start-node", "n3")
    assert step.returncode == 0
    assert "NODE FAILURE" in complaint.upper()
    slurm.wait_idle("n3")


def wait_for_file(path: Path) -> None:
    run("timeout", "60", "sh", "-c", f"until [ -e {path} ]; do sleep 0.05; done")


@pytest.mark.long
def test_a_power_cut_ends_the_job_as_node_fail(slurm, tmp_path):
    marker = tmp_path / "started"
    job = batch(tmp_path, f"touch {marker}; exec sleep 600", "--nodelist=n3", "--no-requeue")
    wait_for_file(marker)
    slurm.node("power-off", "n3")
    try:
        assert slurm.wait_state(job, "NODE_FAIL", seconds=120) == "NODE_FAIL"
    finally:
        slurm.node("start-node", "n3")
        slurm.wait_idle("n3")


def test_a_job_outlives_its_slurmd(slurm, tmp_path):
    marker, hold = tmp_path / "started", tmp_path / "hold"
    run("mkfifo", str(hold))
    job = batch(tmp_path, f"touch {marker}; read _ < {hold}; echo done", "--nodelist=n1")
    wait_for_file(marker)
    slurm.node("kill-slurmd", "n1")
    hold.write_text("go\n")
    try:
        run("timeout", "60", "sh", "-c", f"until grep -qx done {tmp_path}/out; do sleep 0.05; done")
        assert slurm.job(job)["JobState"] in ("RUNNING", "COMPLETING")
    finally:
        slurm.node("start-node", "n1")
    slurm.wait_state(job, "COMPLETED")


def test_a_cancelled_job_gets_term_and_time_to_clean_up(slurm, tmp_path):
    marker = tmp_path / "started"
    body = f"trap 'echo cleaned; exit 0' TERM; touch {marker}; sleep 600 & wait"
    job = batch(tmp_path, body)
    wait_for_file(marker)
    run("scancel", "--full", job)
    slurm.wait_state(job, "CANCELLED")
    run("timeout", "60", "sh", "-c", f"until grep -q cleaned {tmp_path}/out; do sleep 0.05; done")


def test_the_stand_in_for_pyxis_changes_the_root(slurm, tmp_path):
    root, shared = tmp_path / "image", tmp_path / "shared"
    (root / "bin").mkdir(parents=True)
    shared.mkdir()
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    (shared / "wanted").write_text("here\n")
    options = (f"--container-image={root}", f"--container-mounts={shared}:/data:ro", "--container-workdir=/data")
    script = "/bin/busybox cat wanted; /bin/busybox ls /; /bin/busybox touch wanted || echo read-only"
    words = run("srun", *options, "/bin/busybox", "sh", "-c", script).stdout.split()
    assert words[0] == "here"
    assert "read-only" in words
    assert not {"usr", "etc"} & set(words)


@pytest.mark.parametrize(
    ("option", "complaint"),
    [("--container-image=/nowhere", "failed to import /nowhere"), ("--container-picture=/x", "unrecognized option")],
)
def test_a_wrong_container_flag_is_refused(slurm, option, complaint):
    done = run("srun", option, "true", check=False)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_stopping_leaves_neither_process_nor_namespace(request):
    script = Path(__file__).parents[2] / "infra" / "slurm.sh"
    base = tempfile.mkdtemp(prefix="infx-slurm-", dir="/tmp")
    request.addfinalizer(lambda: shutil.rmtree(base))
    request.addfinalizer(lambda: call("stop"))

    def call(*words: str) -> str:
        done = subprocess.run([script, base, *words], check=True, text=True, stdout=subprocess.PIPE, timeout=90)
        return done.stdout

    before = run("ip", "netns", "list").stdout
    assert call("start") == call("start") == call("env")
    assert "down" not in call("status")
    call("stop")
    assert call("status") == ""
    assert run("ip", "netns", "list").stdout == before
