"""Writing of run folders: each file appears whole, one writer at a time, every refusal of the disk explained.

A run folder appears together with its ``run.json`` and ``plan.json``, a result together with the columns
that it names; a process killed between any two steps leaves a run that ``results.load`` reads.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from filelock import FileLock, Timeout

from infx.errors import BusyError, ResultsError, StorageError
from infx.results.layout import RESULT_FILES, RunPaths, StartPaths, run_id, temporary
from infx.results.load import read_result
from infx.schema.plan import Plan, Point
from infx.schema.result import PointResult, Run, Start, Visit
from infx.schema.strict import Strict
from infx.schema.version import CLIENT, RUN_FORMAT

Columns = bytes | Callable[[BinaryIO], object]
"""Per-request columns: the bytes of an npz file, or a function that writes them to a binary stream."""


def new_run_id(created_unix: float, recipe: str) -> str:
    """A fresh run id: time and recipe as given, token by chance."""
    return run_id(created_unix, recipe, secrets.token_hex(3))


def dump(noun: Strict) -> bytes:
    """A noun as stored: indented JSON by alias with a final newline."""
    return noun.model_dump_json(indent=1).encode() + b"\n"


def write_whole(path: Path, data: Columns, *, kept: Callable[[], str] = lambda: "") -> None:
    """Replace ``path`` by ``data`` so that a reader sees the old file or the new one, never a part.

    Written under a hidden name in the same folder, synced, renamed, folder synced. Raises StorageError
    (with ``kept()`` as part of its hint) when the disk refuses; the hidden file is then removed.
    """
    temp = path.parent / temporary(path.name, f"{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _make_folder(path.parent)
        _write_synced(temp, data)
        temp.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        _discard(temp)
        if isinstance(error, OSError):
            raise _refused(error, path, kept()) from error
        raise


def _make_folder(folder: Path) -> None:
    """Create ``folder`` and its missing parents, each entry synced in its parent."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        try:
            folder.mkdir()
        except FileExistsError:
            if not folder.is_dir():
                raise
        _sync_folder(folder.parent)


def _write_synced(temp: Path, data: Columns) -> None:
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with io.FileIO(descriptor, "w") as raw, io.BufferedWriter(raw) as stream:
        if callable(data):
            data(stream)
        else:
            stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems sync no folders
            raise
    finally:
        os.close(descriptor)


def _discard(temp: Path) -> None:
    with contextlib.suppress(OSError):
        temp.unlink()


def _refused(error: OSError, path: Path, kept: str) -> StorageError:
    advice = {
        errno.ENOSPC: "free some space",
        errno.EDQUOT: "free some of the quota",
        errno.EROFS: "choose a folder on a writable file system",
        errno.EACCES: "choose a folder that you may write to, or change its owner",
        errno.EPERM: "choose a folder that you may write to, or change its owner",
    }.get(error.errno or 0, "look after the file system")
    hint = f"{advice}; {kept}" if kept else advice
    return StorageError(f"cannot write: {os.strerror(error.errno or errno.EIO)}", where=str(path), hint=hint)


class RunStore:
    """The one writer of a run folder; holds its lock until closed (or the process ends)."""

    def __init__(self, root: Path, lock: FileLock) -> None:
        self.paths = RunPaths(root)
        self._lock = lock

    @classmethod
    def create(cls, parent: Path, run: Run, plan: Plan) -> RunStore:
        """Make ``parent/run.id`` with its run.json and plan.json, and lock it.

        Raises BusyError when a folder of that name exists, StorageError when the disk refuses.
        """
        final = parent / run.id
        if final.exists():
            raise _exists(final)
        hidden = parent / temporary(run.id, secrets.token_hex(4))
        try:
            _make_folder(hidden)
        except OSError as error:
            raise _refused(error, hidden, "nothing was started") from error
        lock = None
        try:
            lock = _acquire(RunPaths(hidden))
            write_whole(RunPaths(hidden).plan, dump(plan), kept=lambda: "nothing was started")
            write_whole(RunPaths(hidden).run, dump(run), kept=lambda: "nothing was started")
            hidden.rename(final)
            _sync_folder(parent)
        except BaseException as error:
            if lock is not None:
                lock.release()
            _discard_tree(hidden)
            if isinstance(error, OSError):
                taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
                raise (_exists(final) if taken else _refused(error, final, "nothing was started")) from error
            raise
        return cls(final, lock)

    @classmethod
    def open(cls, root: Path) -> RunStore:
        """Lock an existing run folder for a resume.

        Raises ResultsError when it is none, BusyError when another sweep writes it.
        """
        paths = RunPaths(root)
        if not paths.run.is_file():
            raise ResultsError("not a run folder: it has no run.json", where=str(root))
        return cls(root, _acquire(paths))

    def start_folder(self, start: str) -> StartPaths:
        """The folder of a start, made; its log and telemetry files are for their writers to fill."""
        paths = self.paths.start(start)
        try:
            _make_folder(paths.metrics)
        except OSError as error:
            raise _refused(error, paths.folder, self._kept()) from error
        return paths

    def write_start(self, start: Start) -> None:
        """Write or replace the start's start.json (once when launched, again when it ended)."""
        self._write(self.paths.start(start.id).start, dump(start))

    def append_visit(self, point: Point, start: str, visit: Visit, requests: Columns | None = None) -> PointResult:
        """Add ``visit`` to the point's result.json in this start, with its per-request columns beside it.

        The store sets the visit's ordinal and the name of its requests file, and the point's status from
        its first visit. Returns the result as stored.
        """
        paths = self.paths.point(point.key, start)
        before = read_result(paths.result).visits if paths.result.is_file() else []
        ordinal = len(before)
        columns = paths.requests(ordinal)
        visit = visit.model_copy(
            update={"ordinal": ordinal, "requests_file": None if requests is None else columns.name}
        )
        visits = [*before, visit]
        result = PointResult(
            format_version=RUN_FORMAT,
            point=point.key,
            fingerprint=point.fingerprint,
            start=start,
            concurrency=point.concurrency,
            gpus=point.parallel.gpus,
            status=visits[0].status,
            reasons=visits[0].reasons,
            client_version=CLIENT,
            visits=visits,
        )
        if requests is not None:
            self._write(columns, requests)
        try:
            self._write(paths.result, dump(result))
        except StorageError:
            _discard(columns)
            raise
        return result

    def write_file(self, path: Path, data: bytes) -> Path:
        """Write another file of the run whole: a picture, a scrape, the run's own changelog."""
        self._write(path, data)
        return path

    def close(self) -> None:
        """Give the lock back; closing twice is fine."""
        self._lock.release()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, path: Path, data: Columns) -> None:
        write_whole(path, data, kept=self._kept)

    def _kept(self) -> str:
        count = sum(1 for _ in self.paths.root.glob(RESULT_FILES))
        return f"{count} finished point(s) are kept; go on with --resume {self.paths.root}"


def _exists(final: Path) -> BusyError:
    return BusyError("this run folder exists already", where=str(final), hint="resume it, or start a new run")


def _acquire(paths: RunPaths) -> FileLock:
    lock = FileLock(paths.lock, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise BusyError(
            "another sweep is writing this run folder", where=str(paths.root), hint="wait for it, or start a new run"
        ) from error
    except OSError as error:
        raise _refused(error, paths.lock, "nothing was changed") from error
    return lock


def _discard_tree(folder: Path) -> None:
    for name in (RunPaths(folder).plan, RunPaths(folder).run, RunPaths(folder).lock):
        _discard(name)
    with contextlib.suppress(OSError):
        folder.rmdir()
