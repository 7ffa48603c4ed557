"""A real Slurm cluster of three nodes with fake GPUs, for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "infra" / "slurm.sh"


@dataclass(frozen=True)
class Slurm:
    """The cluster's folder. Its client commands are first on PATH while it runs; files are shared by all nodes."""

    base: Path

    def node(self, verb: str, name: str) -> None:
        """`power-off`, `kill-slurmd` or `start-node`, on node ``name``."""
        self.call(verb, name)

    def call(self, *words: str) -> None:
        """A verb of the script. What is started by it belongs to the cluster, not to the test."""
        own = {key: value for key, value in os.environ.items() if key not in ("INFX_TEST_TOKEN", "TMPDIR")}
        subprocess.run([SCRIPT, self.base, *words], check=True, timeout=60, env=own)

    def update(self, *words: str) -> None:
        """`scontrol update WORDS…`."""
        subprocess.run(["scontrol", "update", *words], check=True, timeout=30)

    def job(self, number: str) -> dict[str, str]:
        """What the controller says of a job, by the names of `scontrol show job`."""
        words = ["scontrol", "--oneliner", "show", "job", number]
        shown = subprocess.run(words, capture_output=True, text=True, timeout=30).stdout
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

    def wait_state(self, number: str, *states: str, seconds: float = 60) -> str:
        """Waits until the job is in one of ``states``; fails with the last one seen."""
        deadline = time.monotonic() + seconds
        while (state := self.job(number)["JobState"]) not in states:
            assert time.monotonic() < deadline, f"job {number} is {state}, not {' or '.join(states)}"
            time.sleep(0.1)
        return state

    def wait_idle(self, name: str, seconds: float = 60) -> None:
        """Waits until node ``name`` takes jobs."""
        deadline = time.monotonic() + seconds
        while (state := self.state(name)) != "idle":
            assert time.monotonic() < deadline, f"node {name} is {state}"
            time.sleep(0.1)

    def state(self, name: str) -> str:
        """The short state of a node, as sinfo says it."""
        words = ["sinfo", "--noheader", "--partition=main", "--nodes", name, "--format=%T"]
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout.strip()


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """Starts the cluster in a folder of its own, and stops it."""
    missing = [name for name in ("slurmctld", "slurmd", "munged", "srun", "ip", "gcc") if shutil.which(name) is None]
    if missing or not Path("/usr/include/slurm/spank.h").exists():
        pytest.skip(f"{', '.join(missing) or 'slurm/spank.h'} missing: {SCRIPT.name} FOLDER install brings it")
    if os.geteuid() != 0:
        pytest.skip("the cluster's namespaces need root")
    base = Path(tempfile.mkdtemp(prefix="infx-slurm-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURMD_TIMEOUT", "5")
        patch.setenv("PATH", f"{base / 'bin'}:{os.environ['PATH']}")
        patch.setenv("SLURM_CONF", str(base / "etc" / "slurm.conf"))
        try:
            subprocess.run([SCRIPT, base, "start"], check=True, timeout=120, stdout=subprocess.DEVNULL)
            yield Slurm(base)
        finally:
            subprocess.run([SCRIPT, base, "stop"], check=True, timeout=120)
            shutil.rmtree(base)
