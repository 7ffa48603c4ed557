"""A real Docker daemon with a registry as its mirror, for the tests of this folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "infra" / "docker.sh"


@dataclass(frozen=True)
class Docker:
    """The daemon's folder and registry (host:port); `DOCKER_HOST` is set while it runs."""

    base: Path
    registry: str

    def push(self, image: str, mark: str) -> None:
        """Puts an engine image under ``image`` (name:tag) into the registry; its /engine/mark says ``mark``."""
        subprocess.run([SCRIPT, self.base, "push", image, mark], check=True, timeout=60)

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs the docker client."""
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done

    def digest(self, image: str) -> str:
        """The digest under which the local ``image`` was pulled."""
        found = self("image", "inspect", image, "--format", "{{index .RepoDigests 0}}").stdout.strip()
        return found.split("@")[1]


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    """Starts registry and daemon in a folder of their own, and stops both."""
    missing = [name for name in ("dockerd", "docker-registry", "busybox", "docker") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: {SCRIPT.name} FOLDER install brings them")
    base = Path(tempfile.mkdtemp(prefix="infx-docker-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGISTRY_PORT", port)
        patch.setenv("DOCKER_HOST", f"unix://{base}/run/docker.sock")
        try:
            subprocess.run([SCRIPT, base, "start"], check=True, timeout=90, stdout=subprocess.DEVNULL)
            yield Docker(base, f"127.0.0.1:{port}")
        finally:
            subprocess.run([SCRIPT, base, "stop"], check=True, timeout=90)
            shutil.rmtree(base)
