"""RequestTable: all requests of one load as NumPy columns and ragged arrays, and its file.

100,000 requests of 200 reads are 240 MB here; as objects they would be many times that.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from infx.errors import ResultsError
from infx.measure.columns import COLUMNS, PHASES, RAGGED, VERSION, Outcome
from infx.workload.session import Phase

_FAILED_FROM = int(Outcome.CUT) + 1


@dataclass(frozen=True)
class RequestTable:
    """``columns[name]``: one value a request (n); ``offsets``: n + 1 places in the ragged arrays.

    ``read_ns`` and ``read_tokens`` hold one entry for every read that carried tokens: request i has
    ``[offsets[i]:offsets[i + 1]]``. Names, types and codes: measure/columns.
    """

    columns: dict[str, np.ndarray]
    offsets: np.ndarray
    read_ns: np.ndarray
    read_tokens: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    @classmethod
    def from_batches(cls, batches: Sequence[Mapping[str, bytes]]) -> RequestTable:
        """Build from what load workers hand over: the bytes of each array, ``read_counts`` among them."""

        def joined(name: str, code: str) -> np.ndarray:
            return np.concatenate([np.frombuffer(batch[name], dtype=code) for batch in batches] or [np.empty(0, code)])

        counts = joined("read_counts", "i")
        offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        columns = {name: joined(name, code) for name, code in COLUMNS.items()}
        return cls(columns, offsets, *(joined(name, code) for name, code in RAGGED.items()))

    def select(self, mask: np.ndarray) -> RequestTable:
        """The requests where ``mask`` (n booleans) holds, in order."""
        if mask.all():
            return self
        counts = np.diff(self.offsets)
        reads = np.repeat(mask, counts)
        offsets = np.zeros(int(mask.sum()) + 1, dtype=np.int64)
        np.cumsum(counts[mask], out=offsets[1:])
        columns = {name: column[mask] for name, column in self.columns.items()}
        return RequestTable(columns, offsets, self.read_ns[reads], self.read_tokens[reads])

    def heads(self, places: np.ndarray) -> RequestTable:
        """The requests at ``places`` (indices, any order) without their reads."""
        columns = {name: column[places] for name, column in self.columns.items()}
        empty = np.zeros(len(places) + 1, dtype=np.int64)
        return RequestTable(columns, empty, self.read_ns[:0], self.read_tokens[:0])

    def select_order(self, order: np.ndarray) -> RequestTable:
        """All requests in the given ``order`` (a permutation of n places)."""
        counts = np.diff(self.offsets)[order]
        offsets = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        reads = np.repeat(self.offsets[:-1][order] - offsets[:-1], counts) + np.arange(offsets[-1])
        columns = {name: column[order] for name, column in self.columns.items()}
        return RequestTable(columns, offsets, self.read_ns[reads], self.read_tokens[reads])

    def phase(self, phase: Phase) -> np.ndarray:
        """Mask of the requests of ``phase``."""
        return self["phase"] == PHASES.index(phase)

    @property
    def ok(self) -> np.ndarray:
        return self["outcome"] == Outcome.OK

    @property
    def cut(self) -> np.ndarray:
        return self["outcome"] == Outcome.CUT

    @property
    def failed(self) -> np.ndarray:
        return self["outcome"] >= _FAILED_FROM

    def failures(self, mask: np.ndarray | None = None) -> dict[str, int]:
        """Failed requests by kind (``Outcome.label``), of those in ``mask``."""
        outcomes = self["outcome"] if mask is None else self["outcome"][mask]
        kinds, counts = np.unique(outcomes[outcomes >= _FAILED_FROM], return_counts=True)
        return {Outcome(int(kind)).label: int(count) for kind, count in zip(kinds, counts, strict=True)}

    def to_bytes(self) -> bytes:
        """The table as a compressed .npz with its format version."""
        buffer = io.BytesIO()
        ragged = {"read_ns": self.read_ns, "read_tokens": self.read_tokens, "offsets": self.offsets}
        np.savez_compressed(buffer, version=np.array(VERSION), **self.columns, **ragged)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "requests.npz") -> RequestTable:
        """Read what ``to_bytes`` wrote; raises ResultsError for damage and for a newer version."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                stored = dict(archive)
        except (BadZipFile, ValueError, OSError, EOFError) as error:
            raise ResultsError(f"not a readable request table: {error}", where=where) from error
        version = int(stored.pop("version", np.array(0)))
        if version > VERSION:
            raise ResultsError(
                f"request table of version {version}", where=where, allowed=f"up to {VERSION}",
                hint="read it with the infx that wrote it, or a newer one",
            )  # fmt: skip
        missing = [name for name in (*COLUMNS, *RAGGED, "offsets") if name not in stored]
        if missing:
            raise ResultsError(f"request table without {', '.join(missing)}", where=where)
        return cls(
            {name: stored[name] for name in COLUMNS}, stored["offsets"], stored["read_ns"], stored["read_tokens"]
        )

    def save(self, path: Path) -> None:
        """Write to ``path`` (not atomic: the store renames)."""
        path.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> RequestTable:
        return cls.from_bytes(path.read_bytes(), str(path))
