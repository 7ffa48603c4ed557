"""Engines in containers of a step: a stand-in plugin for pyxis, a stand-in script for enroot, a real Slurm.

The image is a folder: a busybox root whose `vllm` is the simulator, with the host's /usr and Python mounted into it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.repository import ROOT, Repository

pytestmark = pytest.mark.timeout(200)

DIGEST = "sha256:" + "ab" * 32
IMAGE = f"vllm/vllm-openai-rocm@{DIGEST}"
RECIPE = f"""image: {IMAGE}
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {{kind: fixed-seq-len, isl: 64, osl: 16}}
ladder: [{{tp: 1, concurrency: [1, 2]}}]
overrides: [{{when: {{concurrency: 2}}, env: {{SECOND: "1"}}}}]
stop: {{min-requests: 8, window-s: 0.3, cap-s: 60}}
"""
# Plays `enroot import --output FILE docker://NAME:DIGEST`: notes the call, then copies the image that lies ready.
ENROOT = """#!/bin/sh
echo "$SLURMD_NODENAME $4" >>"{base}/imports"
if [ "$SLURMD_NODENAME" = "$(cat "{base}/lacks" 2>/dev/null)" ]; then
  echo "[ERROR] Could not fetch the manifest" >&2
  exit 1
fi
sleep 0.5
cp -r "{base}/image" "$3"
"""


@pytest.fixture
def boxed(tmp_path: Path, slurm) -> Repository:
    made = Repository(tmp_path)
    made.write("recipes/toy.yaml", RECIPE)
    image = tmp_path / "image"
    for name in ("engine", "usr", "etc", "proc", "sys", "dev", "tmp"):
        (image / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (image / name).symlink_to(f"usr/{name}")
    vllm = made.write("image/engine/vllm", f'#!/bin/sh\nexec {sys.executable} -m infx.simulator "$@"\n')
    vllm.chmod(0o755)
    enroot = made.write("bin/enroot", ENROOT.format(base=tmp_path))
    enroot.chmod(0o755)
    mounts = sorted({"/usr", sys.base_prefix, str(Path(sys.prefix).resolve()), str(ROOT)} - {"/usr/local"})
    listed = "\n".join(f"    - {{source: {mount}, target: {mount}}}" for mount in mounts)
    made.write("runners/boxed.yaml", f"""place: slurm
launch: pyxis
serves: any
stands-in: true
exclusive: false
visible: ROCR_VISIBLE_DEVICES
env:
  INFX_SIM_HARDWARE: "{{hardware}}"
  INFX_SIM_IMAGE: "{{image}}"
  PYTHONPATH: {ROOT}
  PATH: /engine:/usr/bin:/bin
slurm: {{poll-s: 0.3, settle-s: 1.5, cpus: 4, time-limit-min: 10, requeue: false, images: {tmp_path}/images,
        options: [--nodelist=n1]}}
container:
  mounts:
{listed}
limits: {{ready-s: 60, quiet-s: 10, request-s: 60, stop-s: 2}}
""")
    return made


def infx(boxed: Repository, *words: str) -> subprocess.CompletedProcess[str]:
    return boxed.infx(*words, PATH=f"{boxed.root}/bin:{os.environ['PATH']}", timeout=150)


def starts(boxed: Repository) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(boxed.root.glob("runs/*/starts/*/start.json"))]


def test_two_blocks_of_a_node_share_one_import(boxed):
    done = infx(boxed, "sweep", "toy", "--runner", "boxed")
    assert done.returncode in (0, 1), done.stderr
    (one, two) = starts(boxed)
    assert one["death"] is None and two["death"] is None and "ready-s" in one
    (imported,) = (boxed.root / "imports").read_text().splitlines()
    assert imported == f"n1 docker://vllm/vllm-openai-rocm:{DIGEST}"
    for start in (one, two):
        assert start["digest"] == DIGEST and start["simulated"] and start["node"] == "n1"
        assert start["argv"][0] == "srun" and any(word.startswith("--container-image=") for word in start["argv"])
    assert one["devices"] != two["devices"], "both ran at once, on a GPU each"
    again = infx(boxed, "sweep", "toy", "--runner", "boxed", "--only", "tp1/c1")
    assert again.returncode in (0, 1), again.stderr
    assert len((boxed.root / "imports").read_text().splitlines()) == 1
    shutil.rmtree(next((boxed.root / "images").glob("*.sqsh")))  # as after a cleaned disk
    assert infx(boxed, "sweep", "toy", "--runner", "boxed", "--only", "tp1/c1").returncode in (0, 1)
    assert len((boxed.root / "imports").read_text().splitlines()) == 2


@pytest.mark.long
def test_an_image_that_one_node_cannot_have(boxed):
    profile = boxed.root / "runners/boxed.yaml"
    profile.write_text(profile.read_text().replace("cpus: 4", "cpus: 10").replace("--nodelist=n1", "--exclude=n3")
                       .replace(f"images: {boxed.root}/images", f"images: {boxed.root}/images-$SLURMD_NODENAME"))
    (boxed.root / "lacks").write_text("n2")
    done = infx(boxed, "sweep", "toy", "--runner", "boxed")
    assert done.returncode == 1, done.stderr
    assert "infx ended with exit code 12 on n2" in done.stderr and "Could not fetch the manifest" in done.stderr
    assert {start["node"] for start in starts(boxed)} == {"n1"}
    (boxed.root / "lacks").unlink()
    (run,) = boxed.runs()
    resumed = infx(boxed, "sweep", "--resume", str(run))
    assert resumed.returncode in (0, 1), resumed.stderr
    assert json.loads(infx(boxed, "show", str(run), "--json").stdout)["state"] == "complete"
