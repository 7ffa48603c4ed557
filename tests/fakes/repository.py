"""A small repository of its own for sweeps, and the command line as a process in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BAD_ENGINE = ROOT / "tests/fakes/bad_engine.py"
RECIPE = """image: pypi:bad-engine==1.0
model: tiny-bf16
precision: bf16
hardware: cpu
engine: vllm
runner: local
scenario: {kind: fixed-seq-len, isl: 32, osl: 8}
ladder: [{tp: 1, concurrency: [1, 2]}]
overrides: [{when: {concurrency: 2}, env: {SECOND: "1"}}]
stop: {min-requests: 8, window-s: 0.2, cap-s: 5}
"""


class Repository:
    """A folder with configs, recipes and runners; ``infx`` runs in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("configs", "recipes", "runners"):
            shutil.copytree(ROOT / name, root / name)
        self.write("recipes/bad.yaml", RECIPE)

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def engine(self, mode: str, after: int = 8, ready_s: float = 30, quiet_s: float = 2) -> None:
        """A profile ``bad`` whose engine misbehaves in this way."""
        self.write("runners/bad.yaml", f"""place: here
launch: process
serves: [local]
executable: {BAD_ENGINE}
env: {{BAD_ENGINE: {mode}, BAD_ENGINE_AFTER: "{after}"}}
limits: {{ready-s: {ready_s}, quiet-s: {quiet_s}, request-s: 20, stop-s: 1}}
""")

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "infx.cli", *words]

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "INFX_LEASE_DIR": str(self.root / "leases"), "PYTHONPATH": str(ROOT), **more}

    def infx(self, *words: str, timeout: float = 100, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*words), cwd=self.root, env=self.environment(**more), text=True,
                              capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(*words), cwd=self.root, env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def runs(self) -> list[Path]:
        return sorted(path.parent for path in self.root.glob("runs/*/run.json"))
