"""A stored request table read piece by piece: columns one at a time, reads in chunks, so that size costs no memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

import numpy as np

from infx.errors import ResultsError
from infx.measure.columns import VERSION

CHUNK = 1 << 20


class StoredTable:
    """The file that ``RequestTable.save`` wrote, open for reading; use as a context manager.

    Raises ResultsError for damage and for a newer version, FileNotFoundError when there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = ZipFile(path)
        except BadZipFile as error:
            raise self._damaged(error) from error
        version = int(self.column("version")[0])
        if version > VERSION:
            self._zip.close()
            raise ResultsError(f"request table of version {version}", where=str(path), allowed=f"up to {VERSION}",
                               hint="read it with the infx that wrote it, or a newer one")

    def column(self, name: str) -> np.ndarray:
        """One whole column, n values."""
        return np.concatenate([*self.chunks(name)] or [np.empty(0)])

    def chunks(self, name: str, size: int = CHUNK) -> Iterator[np.ndarray]:
        """The array called ``name`` in order, at most ``size`` values at a time."""
        try:
            with self._zip.open(f"{name}.npy") as stream:
                dtype, count = _header(stream)
                while count > 0:
                    wanted = min(size, count) * dtype.itemsize
                    data = stream.read(wanted)
                    if len(data) != wanted:
                        raise ValueError(f"{name} is cut short")
                    yield np.frombuffer(data, dtype=dtype)
                    count -= size
        except (KeyError, ValueError, OSError, EOFError, BadZipFile, zlib.error) as error:
            raise self._damaged(error) from error

    def __enter__(self) -> StoredTable:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def _damaged(self, error: Exception) -> ResultsError:
        return ResultsError(f"not a readable request table: {error}", where=str(self.path))


def _header(stream: IO[bytes]) -> tuple[np.dtype, int]:
    """Type and number of values of a one-dimensional (or scalar) .npy stream."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("holds objects")
    return dtype, int(np.prod(shape, dtype=np.int64))
