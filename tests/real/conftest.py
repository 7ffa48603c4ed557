"""What the tests against real components share: where the CPU engine and its models are, and a served engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[2]
READY = "Application startup complete"
READY_S = 240.0


@dataclass(frozen=True)
class CpuEngine:
    """What `make engine-cpu` made: vLLM's program, and folders of local models (1 M and 21 M parameters)."""

    vllm: Path
    tiny: Path
    small: Path


@pytest.fixture(scope="session")
def cpu_engine() -> CpuEngine:
    """The CPU engine; the test is skipped (or fails, by INFX_REQUIRE) where it is not installed."""
    environment = Path(os.environ.get("INFX_ENGINE_CPU", ROOT / ".venv-engine-cpu"))
    models = Path(os.environ.get("INFX_ENGINE_MODELS", ROOT / ".engines" / "models"))
    engine = CpuEngine(environment / "bin" / "vllm", models / "tiny-bf16", models / "small-bf16")
    missing = [str(path) for path in (engine.vllm, engine.tiny, engine.small) if not path.exists()]
    if missing:
        pytest.skip(f"run `make engine-cpu` first: {', '.join(missing)} missing")
    return engine


@dataclass
class Served:
    """A running engine: its address, its process and what it has printed so far."""

    url: str
    model: str
    process: subprocess.Popen[str]
    log: list[str] = field(default_factory=list)

    def get(self, path: str) -> str:
        """The body of a GET."""
        with urlopen(self.url + path, timeout=60) as reply:
            return reply.read().decode()

    def stream(self, path: str, body: dict) -> list[dict]:
        """The parsed events of a streamed POST; the stream must end with `[DONE]`."""
        data = json.dumps({"model": self.model, "stream": True, **body}).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=120) as reply:
            events = [line[6:].decode() for line in reply.read().splitlines() if line.startswith(b"data: ")]
        assert events[-1] == "[DONE]"
        return [json.loads(event) for event in events[:-1]]


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until_it_listens(served: Served) -> None:
    """The engine says that it is ready a moment before its socket listens."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            served.get("/health")
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail("the engine said that it is ready, but does not listen")


@pytest.fixture(scope="session")
def serving():
    """`with serving(cpu_engine, model, *arguments) as served:` for an engine started by its raw command."""
    return start_engine


@contextmanager
def start_engine(engine: CpuEngine, model: Path, *arguments: str) -> Iterator[Served]:
    """Starts `vllm serve` by its raw command and yields when it says that it listens; stops it with SIGTERM."""
    scratch = tempfile.mkdtemp(prefix="infx-vllm-")
    port = free_port()
    command = [engine.vllm, "serve", model, "--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    command += ["--max-num-batched-tokens", "512", "--max-num-seqs", "16", "--max-model-len", "8192", *arguments]
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "TMPDIR": scratch}
    process = subprocess.Popen(
        command,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    served = Served(f"http://127.0.0.1:{port}", str(model), process)
    ready = threading.Event()

    def follow() -> None:
        for line in process.stdout:
            served.log.append(line.rstrip())
            if READY in line:
                ready.set()
        ready.set()

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        ready.wait(READY_S)
        if not any(READY in line for line in served.log):
            pytest.fail("the engine did not become ready:\n" + "\n".join(served.log[-30:]))
        until_it_listens(served)
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join(30)
        shutil.rmtree(scratch, ignore_errors=True)
