"""Talking to Slurm by its own commands: submit, look, cancel. Nothing here waits for a job."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from infx.errors import RemoteError, RunnerError
from infx.run.place.jobs import QUEUE_FORMAT, Seen, parse_queue, resources
from infx.schema.runner import Runner

_ANSWER_S = 60.0


class Batch:
    """Jobs by `sbatch`; they outlive whoever submits them."""

    outlives = True

    def submit(self, words: Sequence[str], folder: Path, name: str, gpus: int) -> str:
        """Submit a job and return its id. Raises RemoteError with Slurm's own words."""
        done = ask(words)
        number = done.stdout.strip().split(";")[0]
        if done.returncode != 0 or not number.isdigit():
            raise RemoteError(f"Slurm refused the job: {_last(done.stderr)}", where=name,
                              hint="correct `slurm` of the runner profile; `sinfo` lists partitions, nodes and GRES")
        return number

    def queue(self) -> dict[str, Seen] | None:
        """This user's jobs by name, those that ended lately included; None when the controller does not answer."""
        with contextlib.suppress(RemoteError):
            done = ask(["squeue", "--me", "--states=all", "--noheader", f"--format={QUEUE_FORMAT}"])
            if done.returncode == 0:
                return parse_queue(done.stdout)
        return None

    def cancel(self, ids: Sequence[str]) -> None:
        """Ask Slurm to end these jobs; what is over already is no error. Raises RemoteError when it cannot be asked."""
        if not ids:
            return
        done = ask(["scancel", "--quiet", *ids])
        if done.returncode != 0 and "nvalid job id" not in done.stderr:
            raise RemoteError(f"the jobs {', '.join(ids)} could not be cancelled: {_last(done.stderr)}",
                              hint="try again, or `scancel` them yourself")


class Steps:
    """Blocks as steps of an allocation that the caller holds (`salloc`); they end with their submitter."""

    outlives = False

    def __init__(self, runner: Runner, environment: Mapping[str, str]) -> None:
        self._runner = runner
        self._job = environment["SLURM_JOB_ID"]
        self._steps: dict[str, subprocess.Popen[bytes]] = {}

    def submit(self, words: Sequence[str], folder: Path, name: str, gpus: int) -> str:
        """Start a step; `srun` itself waits until the allocation has room for it."""
        asked = self._runner.slurm
        assert asked is not None
        command = ["srun", f"--jobid={self._job}", f"--job-name={name}", "--nodes=1", "--ntasks=1", "--exact",
                   f"--output={folder}/output.log", "--open-mode=append", *resources(self._runner, gpus)]
        command += [f"--cpus-per-task={asked.cpus}"] if asked.cpus else []
        with (folder / "srun.log").open("ab") as log:
            self._steps[name] = subprocess.Popen([*command, "bash", str(folder / "job.sh")], stdin=subprocess.DEVNULL,
                                                 stdout=log, stderr=log, start_new_session=True)
        return self._job

    def queue(self) -> dict[str, Seen]:
        """Steps by name. An ended `srun` says nothing of success: the marker does."""
        return {name: Seen(self._job, name, "RUNNING" if step.poll() is None else "COMPLETED")
                for name, step in self._steps.items()}

    def cancel(self, ids: Sequence[str]) -> None:
        """SIGTERM to every `srun`, which hands it to its step; the allocation stays the caller's."""
        for step in self._steps.values():
            if step.poll() is None:
                step.terminate()


def ask(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a client command of Slurm. Raises RunnerError when it is not installed, RemoteError when it hangs."""
    try:
        return subprocess.run(list(words), capture_output=True, text=True, timeout=_ANSWER_S, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise RunnerError(f"{words[0]} is not installed here: this is no submit host of a Slurm cluster",
                          hint="run infx on a login node, or take a runner whose place is here") from error
    except subprocess.TimeoutExpired as error:
        raise RemoteError(f"`{words[0]}` did not answer within {_ANSWER_S:.0f} s",
                          hint="see that the controller is alive: `scontrol ping`") from error


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].split("error: ")[-1] if lines else "no message"
