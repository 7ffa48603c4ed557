"""The oracle as a process, and loads against it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infx.run.load.client import LoadOutput, run_load
from infx.run.load.spec import LoadSpec, WindowRule
from infx.workload.lanes import FixedLength
from infx.workload.random import TokenIds

ORACLE = Path(__file__).parents[2] / "oracle"
sys.path.insert(0, str(ORACLE))

IDS = TokenIds(1000)


@dataclass
class Oracle:
    """A running oracle; ``truth`` is what it logged."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def truth(self) -> dict:
        with urllib.request.urlopen(f"{self.url}/oracle/log") as answer:
            return json.load(answer)

    def load(self, *, concurrency: int = 2, window: WindowRule | None = None, source: object = None,
             processes: int = 0, isl: int = 10, osl: int = 20, salt: str = "a", hooks: dict | None = None,
             **spec: object) -> LoadOutput:  # fmt: skip
        """A closed loop of ``osl`` tokens a request; by default eight requests in the window."""
        source = source or FixedLength(IDS, isl, osl, seed=1, salt=salt)
        rule = window or WindowRule(minimum_requests=8, cap_s=20)
        return run_load(LoadSpec(self.url, "m", concurrency, rule, **spec), source, processes=processes,
                        **(hooks or {}))  # fmt: skip


@pytest.fixture
def oracle(tmp_path: Path) -> Iterator[Callable[[list], Oracle]]:
    """A function that starts an oracle playing the given plays for the model ``m``."""
    running: list[subprocess.Popen[str]] = []

    def start(plays: list) -> Oracle:
        script = tmp_path / f"script{len(running)}.json"
        script.write_text(json.dumps({"m": plays}))
        process = subprocess.Popen(
            [sys.executable, str(ORACLE / "oracle_server.py"), str(script)], stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        line = process.stdout.readline()
        assert line.startswith("PORT ")
        made = Oracle(int(line.split()[1]))
        made.process = process
        return made

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()
