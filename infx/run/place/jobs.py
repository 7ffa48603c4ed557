"""Jobs of a sweep, pure: the script of one, the words of its submission, and what its state means."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from infx.schema.runner import Runner

QUEUED = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD",
                    "SPECIAL_EXIT", "SUSPENDED", "STOPPED", "POWER_UP_NODE"})
ACTIVE = frozenset({"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "RESIZING"})
"""States by which a job lives, as `squeue` writes them; every other is an end."""

QUEUE_FORMAT = "%i|%j|%T|%N|%r"
"""What `squeue --format` is asked for: id, name, state, node, reason."""

_WHY = {
    "NODE_FAIL": "its node failed",
    "TIMEOUT": "its time limit came; raise slurm.time-limit-min of the profile",
    "CANCELLED": "it was cancelled",
    "PREEMPTED": "it was preempted and not queued again",
    "OUT_OF_MEMORY": "it ran out of memory; raise slurm.memory of the profile",
    "BOOT_FAIL": "its node did not boot",
    "DEADLINE": "it could not end before its deadline",
    "LAUNCH_FAILED": "its node could not start it",
}


@dataclass(frozen=True)
class Seen:
    """A job as the scheduler shows it."""

    id: str
    name: str
    state: str
    node: str = ""
    reason: str = ""


class Fate(StrEnum):
    """What becomes of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    LOST = "lost"


@dataclass(frozen=True)
class Verdict:
    """A job's fate, why, and whether it may still change when the shared storage catches up."""

    fate: Fate
    why: str = ""
    settled: bool = True


def judge(seen: Seen | None, marker: Mapping[str, object] | None, *, submitted: bool = True,
          noticed: bool = False) -> Verdict:
    """The fate of a job by its completion marker, else by its state; exit codes decide nothing.

    `srun` exits 0 when its node fails, and a job's state says COMPLETED when its script could not write: only the
    marker, the script's last word on shared storage, proves that the block was run to its end. A job without one
    that has ended is not ``settled``: its files may show late. ``noticed``: it stopped at the notice
    before its time limit.
    """
    if marker is not None:
        code, node = marker.get("exit"), marker.get("node", "an unnamed node")
        return Verdict(Fate.DONE, f"on {node}" if code in (0, 1) else f"infx ended with exit code {code} on {node}")
    if seen is None:
        why = "the scheduler does not know it any more" if submitted else "it was never submitted"
        return Verdict(Fate.LOST, why, settled=not submitted)
    state = seen.state.split()[0] if seen.state else ""
    if state in QUEUED:
        return Verdict(Fate.QUEUED, seen.reason)
    if state in ACTIVE:
        return Verdict(Fate.RUNNING, f"on {seen.node}" if seen.node else "")
    if noticed and state in ("FAILED", "COMPLETED"):
        state = "TIMEOUT"
    why = _WHY.get(state, f"it ended as {state or 'unknown'} without its completion marker (is the shared storage "
                          "full?); see output.log of its folder")
    return Verdict(Fate.LOST, why + (f" ({seen.node})" if seen.node else ""), settled=False)


def parse_queue(text: str) -> dict[str, Seen]:
    """Lines of QUEUE_FORMAT → the newest job of each name; what is no such line is ignored."""
    found: dict[str, Seen] = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) != 5 or not parts[0].split("_")[0].isdigit():
            continue
        seen = Seen(*parts)
        known = found.get(seen.name)
        if known is None or int(known.id.split("_")[0]) <= int(seen.id.split("_")[0]):
            found[seen.name] = seen
    return found


def parse_marker(text: str) -> dict[str, object] | None:
    """A completion marker; None for what is none, as a half-written file."""
    try:
        fact = json.loads(text)
    except ValueError:
        return None
    return fact if isinstance(fact, dict) and {"job", "node", "exit"} <= set(fact) else None


def folder_name(block: str, token: str) -> str:
    """Name of a job's folder: the block, as far as a file name can carry it, and a token."""
    return f"{re.sub(r'[^A-Za-z0-9_.@-]', '_', block)[:80]}.{token}"


def submission(runner: Runner, folder: Path, name: str, gpus: int) -> list[str]:
    """The words of `sbatch` for a job in ``folder`` that needs ``gpus`` accelerators."""
    asked = runner.slurm
    assert asked is not None
    words = ["sbatch", "--parsable", f"--job-name={name}", f"--output={folder}/output.log", "--open-mode=append",
             "--nodes=1", "--ntasks=1", f"--time={asked.time_limit_min}",
             f"--signal=B:USR1@{notice_s(runner)}", "--requeue" if asked.requeue else "--no-requeue"]
    for option, value in (("partition", asked.partition), ("account", asked.account), ("qos", asked.qos),
                          ("cpus-per-task", asked.cpus), ("mem", asked.memory)):
        words += [f"--{option}={value}"] if value is not None else []
    words += resources(runner, gpus)
    words += ["--exclusive"] if runner.exclusive else []
    return [*words, *asked.options, str(folder / "job.sh")]


def resources(runner: Runner, gpus: int) -> list[str]:
    """The GRES of a job or a step."""
    assert runner.slurm is not None
    return [f"--gres={runner.slurm.gres.replace('{gpus}', str(gpus))}"] if runner.slurm.gres and gpus else []


def notice_s(runner: Runner) -> int:
    """Seconds before its time limit at which a job is told to stop: the engine's grace and as much again to store.

    Slurm looks once a minute or so, hence the minute; a job of few minutes is told when half of it is over.
    """
    assert runner.slurm is not None
    return int(min(60 + 2 * runner.limits.stop_s, runner.slurm.time_limit_min * 30))


def script(root: Path, folder: Path, python: str, work: Sequence[str]) -> str:
    """The text of a job: run ``work`` (words after `infx`) in ``root``, go on with what an earlier attempt left.

    It ends without its marker when it was told to stop, so that a job which is queued again goes on.
    """
    quoted = {"root": shlex.quote(str(root)), "folder": shlex.quote(str(folder)), "python": shlex.quote(python),
              "work": shlex.join(work)}
    return _SCRIPT.format_map(quoted)


_SCRIPT = """#!/bin/bash
# One block of a sweep, written by infx. Its results and its last word, done.json, lie beside it.
folder={folder}
restart=${{SLURM_RESTART_COUNT:-0}} node=${{SLURMD_NODENAME:-$(hostname)}} stopped= child=

say() {{ # say NAME EXIT: a file that appears whole
  printf '{{"job": "%s", "restart": %s, "node": "%s", "exit": %s, "unix": %s}}\\n' \\
    "$SLURM_JOB_ID" "$restart" "$node" "$2" "$(date +%s)" >"$folder/.$1.$$" && mv "$folder/.$1.$$" "$folder/$1"
}}

run() {{ # run WORDS…: infx, told of every request to stop; it stops its own engine
  {python} -m infx.cli "$@" </dev/null &
  child=$!
  while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
}}

# USR1 is the notice before the time limit; TERM reaches infx from Slurm itself, or by a request to this shell alone.
told() {{ stopped=$1; [ -z "$child" ] || kill -USR1 "$child" 2>/dev/null; }}
trap 'told TERM' TERM
trap 'told USR1' USR1
# A step (srun) is no batch job: there Slurm has set no node name for some versions.
export SLURMD_NODENAME=$node
say "started-$restart.json" null
cd {root} || {{ say done.json 9; exit 9; }}
code=10
for before in "$folder"/runs/*/run.json; do
  # a lock that a lost node may still hold: then the block is measured anew
  [ ! -e "$before" ] || run sweep --resume "${{before%/run.json}}"
done
if [ "$code" -eq 10 ] && [ -z "$stopped" ]; then
  run {work} --out "$folder/runs"
fi
if [ -n "$stopped" ]; then say "stopped-$stopped.json" "$code"; else say done.json "$code"; fi
exit "$code"
"""
