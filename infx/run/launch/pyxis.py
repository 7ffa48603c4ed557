"""Launching an engine through pyxis: the pinned image, imported once a node by enroot, as a step of srun."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from infx.errors import RemoteError, RunnerError, StorageError
from infx.run.launch.prepared import Prepared
from infx.run.launch.registry import DEFAULT, digest_of, split_registry
from infx.schema.image import parse_image
from infx.schema.runner import Container

_IMPORT_S = 7200.0


@dataclass(frozen=True)
class Imported:
    """An image on this node: the squash file that runs and the digest that it was imported by."""

    file: Path
    digest: str


def imported(folder: Path, reference: str, *, known: str | None = None) -> Imported:
    """The image on this node, imported at most once a node; a second caller waits for the first.

    The digest is the reference's own, else what the registry says of the tag now; the import is by that digest, so
    that what runs is what is recorded. ``known``: the digest that this run has used; another one is refused.
    Raises RunnerError, RemoteError or StorageError.
    """
    image = parse_image(reference)
    digest = image.digest or digest_of(image.repository, image.tag)
    if known is not None and digest != known:
        raise RunnerError(f"the tag {reference} has moved: this run has used {known}, now it is {digest}",
                          hint="pin the digest in the recipe, or plan anew")
    stem = f"{image.repository.replace('/', '+')}@{digest.removeprefix('sha256:')}"
    file, note = folder / f"{stem}.sqsh", folder / f"{stem}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{stem}.lock", mode=0o666):
            if not _complete(file, note, digest):
                _import(folder / f".{stem}.{os.getpid()}.tmp", file, image.repository, digest)
                note.write_text(json.dumps({"digest": digest, "bytes": _size(file)}))
    except OSError as error:
        raise StorageError(f"the image cannot be kept: {error.strerror}", where=str(folder),
                           hint="free some space, or name another folder in `slurm.images`") from error
    return Imported(file, digest)


def _complete(file: Path, note: Path, digest: str) -> bool:
    """True for a file that was imported to its end by this digest and has kept its size."""
    try:
        fact = json.loads(note.read_text())
    except (OSError, ValueError):
        return False
    return file.exists() and fact == {"digest": digest, "bytes": _size(file)}


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _import(temporary: Path, file: Path, repository: str, digest: str) -> None:
    registry, name = split_registry(repository)
    uri = f"docker://{'' if registry == DEFAULT else registry + '#'}{name}:{digest}"
    words = ["enroot", "import", "--output", str(temporary), uri]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_IMPORT_S, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise RunnerError("enroot is not installed on this node", hint="install it beside pyxis") from error
    except subprocess.TimeoutExpired as error:
        raise RemoteError(f"the import of {uri} did not end within {_IMPORT_S:.0f} s") from error
    if done.returncode != 0 or not temporary.exists():
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise RemoteError(f"cannot import {uri}: {lines[-1] if lines else 'enroot gave no reason'}",
                          hint="check the reference, the registry and enroot's credentials")
    temporary.rename(file)


def prepare(container: Container, image: Imported, *, program: Sequence[str], argv: Sequence[str],
            env: Mapping[str, str], passed: Mapping[str, str], caller: Mapping[str, str]) -> Prepared:
    """The `srun` command of an engine; container flags are its options. Raises RunnerError for missing mounts.

    A step's processes are the job's own: none outlives the job, whatever kills it.
    """
    words = ["srun", "--ntasks=1", "--nodes=1", "--overlap", "--unbuffered", "--kill-on-bad-exit=1",
             f"--container-image={image.file}", "--container-workdir=/", "--no-container-entrypoint",
             "--no-container-mount-home"]
    if cpus := caller.get("SLURM_CPUS_PER_TASK"):
        words.append(f"--cpus-per-task={cpus}")
    if mounts := _mounts(container):
        words.append(f"--container-mounts={','.join(mounts)}")
    if names := sorted({*env, *passed}):
        words.append(f"--container-env={','.join(names)}")
    client = {name: value for name, value in caller.items()
              if name.startswith(("SLURM", "SPANK", "ENROOT", "PMI")) or name in ("PATH", "HOME", "USER", "TMPDIR")}
    return Prepared(shown=[*words, *program, *argv], env=env, spawn_env={**client, **passed, **env},
                    passed=list(passed), digest=image.digest)


def _mounts(container: Container) -> list[str]:
    found, missing = [], []
    for mount in container.mounts:
        source = os.path.expandvars(Path(mount.source).expanduser())
        if not Path(source).exists():
            missing.append(source)
        found.append(f"{source}:{mount.target}:{'ro' if mount.read_only else 'rw'}")
    if missing:
        raise RunnerError(f"not on this node: {', '.join(missing)}", hint="correct `mounts` of the profile")
    return found
