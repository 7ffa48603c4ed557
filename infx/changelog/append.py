"""Owns the one way a changelog file grows: under a lock, checked, and whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from infx.changelog.entries import ledger
from infx.changelog.gate import check
from infx.changelog.render import render
from infx.changelog.spans import join, split
from infx.changelog.syntax import Entry
from infx.errors import BusyError, ChangelogError, StorageError
from infx.schema.changelog import Results, Retract

LOCK_TIMEOUT_S = 60.0
"""How long an append waits for the others."""


def append(path: Path, entries: Sequence[Entry], *, trunk: bool = True, timeout_s: float = LOCK_TIMEOUT_S) -> list[str]:
    """Add entries at the physical end of ``path`` (made if missing); every byte before them stays as it is.

    Returns the ids of the new entries. Raises ChangelogError where an entry is not acceptable there, BusyError where
    the lock is not had in ``timeout_s`` seconds and StorageError where the disk refuses; the file is then unchanged.
    """
    return _grow(path, lambda _: entries, trunk, timeout_s)


def append_results(path: Path, entry: Results, *, trunk: bool = True, timeout_s: float = LOCK_TIMEOUT_S) -> list[str]:
    """Record a run; returns the ids of the new entries, none where the file records just this already.

    An earlier entry of the same run (it was resumed since) is retracted first. Errors as `append`.
    """

    def entries(before: bytes) -> list[Entry]:
        standing = [record for record in ledger(before, path.name)
                    if isinstance(record.entry, Results) and record.entry.run == entry.run and not record.retracted]
        if any(record.entry == entry for record in standing):
            return []
        reason = "the run was resumed; its results are recorded again"
        return [*(Retract(kind="retract", entry=record.id, reason=reason) for record in standing), entry]

    return _grow(path, entries, trunk, timeout_s)


def _grow(path: Path, wanted: Callable[[bytes], Sequence[Entry]], trunk: bool, timeout_s: float) -> list[str]:
    count = 0

    def grown(before: bytes) -> bytes:
        nonlocal count
        bodies = [render(entry) for entry in wanted(before)]
        count = len(bodies)
        after = join(before, bodies, len(before))
        found = check(after, before, path=path.name, at="pr", trunk=trunk)
        if found:
            raise ChangelogError(f"the entry cannot be added to {path}:\n" + "\n".join(f"  {item}" for item in found))
        return after

    after = rewrite(path, grown, timeout_s=timeout_s)
    return list(split(after).ids[len(split(after).ids) - count:])


def rewrite(path: Path, change: Callable[[bytes], bytes], *, timeout_s: float = LOCK_TIMEOUT_S) -> bytes:
    """Replace a file's bytes by ``change`` of them while holding its lock; returns the new bytes.

    The new bytes go to a temporary file beside it, are synced, and take its name in one step, so that a reader, a
    crash or a full disk sees the old file or the new one. Errors as `append`; what ``change`` raises leaves the file
    alone.
    """
    target = path.resolve()
    try:
        with FileLock(f"{target}.lock", timeout=timeout_s):
            _sweep(target)
            before = target.read_bytes() if target.exists() else b""
            after = change(before)
            if after != before or not target.exists():
                replace_bytes(target, after)
            return after
    except Timeout as error:
        raise BusyError(f"{target} is being written by another process for over {timeout_s:g} s",
                        hint=f"wait, or see who holds {target}.lock") from error
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror or error}; it is unchanged",
                           hint="free some space, or check the folder's permissions") from error


def replace_bytes(target: Path, data: bytes) -> None:
    """Give ``target`` these bytes in one step, synced to the disk. Raises OSError; the old bytes then remain."""
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _prefix(target: Path) -> str:
    return f".{target.name}."


def _sweep(target: Path) -> None:
    """Remove what a killed writer left; the caller holds the lock, so nobody is writing now."""
    for left in target.parent.glob(f"{_prefix(target)}*.tmp"):
        left.unlink(missing_ok=True)
