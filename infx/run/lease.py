"""The lease on a machine: two sweeps never measure on one machine at once unless the profile allows it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from infx.errors import BusyError, StorageError


def lease_folder(environment: Mapping[str, str]) -> Path:
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
        _make(folder)
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


def held(folder: Path, gpus: int) -> list[str]:
    """Who holds the machine, and which of its first ``gpus`` accelerators are held; empty when nobody holds any."""
    _make(folder)
    found = [] if _free(folder / "machine.lock") else [f"machine ({_holder(folder)})"]
    return found + [f"GPU {index}" for index in range(gpus) if not _free(folder / f"gpu-{index}.lock")]


def stale_note(folder: Path) -> Path | None:
    """The note of a holder that is gone (its lock is free); None when there is none."""
    note = folder / "machine.json"
    return note if note.exists() and _free(folder / "machine.lock") else None


def drop_note(folder: Path) -> bool:
    """Remove the note of a dead holder, under the lock; False when a living sweep holds it."""
    try:
        with FileLock(folder / "machine.lock", timeout=0, mode=0o666):
            (folder / "machine.json").unlink(missing_ok=True)
    except Timeout:
        return False
    return True


def _free(path: Path) -> bool:
    if not path.exists():
        return True
    lock = FileLock(path, timeout=0, mode=0o666)
    try:
        lock.acquire()
    except Timeout:
        return False
    lock.release()
    return True


def _make(folder: Path) -> None:
    """The folder, writable for all users: a lease that only one user could see would be none."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)


def _holder(folder: Path) -> str:
    try:
        facts = json.loads((folder / "machine.json").read_text())
    except (OSError, ValueError):
        return "(it did not say who it is)"
    return ", ".join(f"{name} {value}" for name, value in facts.items())


class GpuLease:
    """Accelerators held by index, one lock file each; the kernel drops them when the process ends."""

    def __init__(self, folder: Path, total: int, count: int) -> None:
        """Take ``count`` free ones of ``total``. Raises BusyError naming how many are free."""
        self.indices: list[int] = []
        self._locks: list[FileLock] = []
        _make(folder)
        for index in range(total):
            if len(self.indices) == count:
                break
            lock = FileLock(folder / f"gpu-{index}.lock", timeout=0, mode=0o666)
            with contextlib.suppress(Timeout):
                lock.acquire()
                self._locks.append(lock)
                self.indices.append(index)
        if len(self.indices) < count:
            free = len(self.indices)
            self.release()
            raise BusyError(f"{count} of {total} accelerators are needed, {free} are free",
                            hint="wait for the other sweeps on this machine")

    def release(self) -> None:
        """Give all of them back; twice is fine."""
        for lock in self._locks:
            lock.release()
        self._locks.clear()
