"""The lease on a machine: two sweeps never measure on one machine at once unless the profile allows it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from infx.errors import BusyError, StorageError


def lease_folder(environment: dict[str, str]) -> Path:
    """Folder of lease files: ``INFX_LEASE_DIR``, else one for all users below the temporary folder."""
    return Path(environment.get("INFX_LEASE_DIR") or Path(tempfile.gettempdir()) / "infx-leases")


@contextlib.contextmanager
def machine_lease(folder: Path, holder: dict[str, object], *, wanted: bool = True) -> Iterator[None]:
    """Hold the machine while the block runs. Raises BusyError naming who holds it.

    The kernel drops the lock when its process ends, so a killed sweep leaves nothing to clean.
    """
    if not wanted:
        yield
        return
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o1777)
        lock = FileLock(folder / "machine.lock", timeout=0, mode=0o666)
        lock.acquire()
    except Timeout as error:
        raise BusyError(f"another sweep holds this machine: {_holder(folder)}",
                        hint="wait for it to end; two sweeps at once would measure each other") from error
    except OSError as error:
        raise StorageError(f"no lease on this machine: {error.strerror}", where=str(folder),
                           hint="set INFX_LEASE_DIR to a folder that you may write to") from error
    try:
        with contextlib.suppress(OSError):
            (folder / "machine.json").write_text(json.dumps({"pid": os.getpid(), **holder}))
        yield
    finally:
        with contextlib.suppress(OSError):
            (folder / "machine.json").unlink()
        lock.release()


def _holder(folder: Path) -> str:
    try:
        facts = json.loads((folder / "machine.json").read_text())
    except (OSError, ValueError):
        return "(it did not say who it is)"
    return ", ".join(f"{name} {value}" for name, value in facts.items())
