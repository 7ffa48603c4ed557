"""This machine, as a job of Slurm sees it: whether it is one, its name, and the accelerators that it was given."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from infx.errors import RunnerError


@dataclass(frozen=True)
class Given:
    """Accelerators that the scheduler gave; ``indices`` as the node counts them, ``seen`` as the job's processes do.

    The two differ where Slurm confines a job's devices: inside, they are counted from 0.
    """

    indices: list[int]
    seen: list[int]

    def named(self, *, by_daemon: bool) -> list[int]:
        """The numbers by which an engine names them: the node's for a container daemon's, else the job's own."""
        return self.indices if by_daemon or not self.seen else self.seen

    def release(self) -> None:
        """The scheduler takes them back when the job ends."""


def on_node(environment: Mapping[str, str]) -> bool:
    """True inside a job, on one of its nodes: there blocks are run, elsewhere they are submitted."""
    return "SLURM_JOB_ID" in environment and "SLURMD_NODENAME" in environment


def in_allocation(environment: Mapping[str, str]) -> bool:
    """True in a shell of `salloc` that stayed on the submit host: nodes are held, but this is none of them."""
    return "SLURM_JOB_ID" in environment and "SLURMD_NODENAME" not in environment


def node_name(environment: Mapping[str, str]) -> str:
    """Slurm's name of this node inside a job, else the host's."""
    return environment.get("SLURMD_NODENAME") or socket.gethostname()


def given(environment: Mapping[str, str], count: int, visible: str | None) -> Given:
    """The job's accelerators. Raises RunnerError outside a job, or when fewer were given than ``count``."""
    if not on_node(environment):
        raise RunnerError("place: slurm starts engines inside a job only", allowed="infx sweep, which submits jobs",
                          hint="run this command in an allocation: `srun --pty bash`, or a batch script")
    words = environment.get("SLURM_STEP_GPUS") or environment.get("SLURM_JOB_GPUS") or ""
    indices = expand(words)
    if indices and len(indices) < count:
        raise RunnerError(f"{count} accelerators are needed, job {environment['SLURM_JOB_ID']} has {len(indices)}",
                          hint="ask for more by GRES (`slurm.gres` of the profile)")
    seen = expand(environment.get(visible, "") if visible else "")
    return Given(indices[:count], seen[:count])


def expand(words: str) -> list[int]:
    """`0-2,5` → [0, 1, 2, 5]; what is no list of indices gives none."""
    found: list[int] = []
    for word in filter(None, words.split(",")):
        first, dash, last = word.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return []
        found += range(int(first), int(last if dash else first) + 1)
    return found


def job_label(environment: Mapping[str, str]) -> str:
    """`JOB.RESTART` inside a job, for the label of its containers; empty outside."""
    if not on_node(environment):
        return ""
    return f"{environment['SLURM_JOB_ID']}.{environment.get('SLURM_RESTART_COUNT', '0')}"
