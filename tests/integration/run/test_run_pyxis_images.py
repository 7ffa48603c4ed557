"""Images for pyxis: the digest of a tag from a registry, and imports that happen once, whole and by digest.

The registry is a small server here; enroot is a stand-in script that writes a file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from infx.errors import RemoteError, RunnerError
from infx.run.launch.pyxis import imported, prepare
from infx.run.launch.registry import digest_of
from infx.schema.runner import Container

DIGEST = "sha256:" + "cd" * 32
IMAGE = f"vllm/vllm-openai-rocm@{DIGEST}"


class Registry(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        known = self.path == "/v2/a/b/manifests/v1"
        self.send_response(200 if known else 404)
        if known:
            self.send_header("Docker-Content-Digest", DIGEST)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def enroot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that notes its calls; a file `fail` beside it makes it leave half a file and fail."""
    script = tmp_path / "bin" / "enroot"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\nsleep 0.2\nprintf half >"$3"\n'
                      f'[ ! -e {tmp_path}/fail ] || {{ echo "[ERROR] disk quota exceeded" >&2; exit 1; }}\n'
                      'printf whole >"$3"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    return tmp_path


def calls(enroot: Path) -> list[str]:
    return (enroot / "calls").read_text().splitlines()


def test_the_digest_of_a_tag(registry):
    assert digest_of(f"{registry}/a/b", "v1", scheme="http") == DIGEST
    with pytest.raises(RemoteError, match="names no digest .status 404."):
        digest_of(f"{registry}/a/b", "v2", scheme="http")


def test_a_registry_that_is_not_there():
    with pytest.raises(RemoteError, match="does not answer"):
        digest_of("127.0.0.1:9/a/b", "v1", scheme="http")


def test_callers_at_once_import_once(enroot):
    found = []
    threads = [threading.Thread(target=lambda: found.append(imported(enroot / "images", IMAGE))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({(image.file, image.digest) for image in found}) == 1
    (call,) = calls(enroot)
    assert call.endswith(f"docker://vllm/vllm-openai-rocm:{DIGEST}")
    assert found[0].file.read_text() == "whole"


def test_a_file_that_is_not_whole_is_imported_again(enroot):
    file = imported(enroot / "images", IMAGE).file
    file.write_text("cut")
    assert imported(enroot / "images", IMAGE).file.read_text() == "whole"
    assert len(calls(enroot)) == 2


def test_a_failed_import_leaves_nothing_that_passes_for_an_image(enroot):
    (enroot / "fail").touch()
    with pytest.raises(RemoteError, match="disk quota exceeded"):
        imported(enroot / "images", IMAGE)
    assert not list((enroot / "images").glob("*.sqsh"))
    (enroot / "fail").unlink()
    assert imported(enroot / "images", IMAGE).file.read_text() == "whole"


def test_another_digest_than_the_runs_is_refused(enroot):
    with pytest.raises(RunnerError, match="has moved") as caught:
        imported(enroot / "images", IMAGE, known="sha256:" + "00" * 32)
    assert DIGEST in str(caught.value) and "00" * 32 in str(caught.value)
    assert not (enroot / "calls").exists()


def test_without_enroot(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunnerError, match="enroot is not installed on this node"):
        imported(tmp_path / "images", IMAGE)


def test_container_flags_stand_on_srun(enroot):
    image = imported(enroot / "images", IMAGE)
    container = Container.model_validate({"mounts": [{"source": str(enroot), "target": "/models"}]})
    made = prepare(container, image, program=["vllm", "serve"], argv=["m", "--port", "1"], env={"A": "1"},
                   passed={"HF_TOKEN": "planted-secret"}, caller={"SLURM_CPUS_PER_TASK": "8", "SLURM_JOB_ID": "7",
                                                                  "HOME": "/root", "OTHER": "x"})
    assert made.shown[0] == "srun" and made.shown[-5:] == ["vllm", "serve", "m", "--port", "1"]
    for word in (f"--container-image={image.file}", f"--container-mounts={enroot}:/models:ro",
                 "--container-env=A,HF_TOKEN", "--cpus-per-task=8"):
        assert word in made.shown
    assert "planted-secret" not in " ".join(made.shown) and made.spawn_env["HF_TOKEN"] == "planted-secret"
    assert made.spawn_env["SLURM_JOB_ID"] == "7" and "OTHER" not in made.spawn_env
    with pytest.raises(RunnerError, match="not on this node: /nowhere"):
        prepare(Container.model_validate({"mounts": [{"source": "/nowhere", "target": "/m"}]}), image, program=["v"],
                argv=[], env={}, passed={}, caller={})
