"""Owns finding a trace corpus by its name: shipped with the repository, or in a folder that the user gives."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from infx.findings import Mark
from infx.schema.catalog import Trace
from infx.sources.tree import Packaged, Tree
from infx.workload.traces.codes import finding
from infx.workload.traces.read import Reading, read

ENDINGS = (".json", ".jsonl", ".csv")


def corpus_hash(trace: Trace, tree: Tree, folder: Path | None) -> str | None:
    """sha256 over the bytes of the corpus's files, in the order of their names; None where it is not at hand."""
    with ExitStack() as stack:
        files = _files(trace, tree, folder, stack)
        return _hash(files) if files else None


def read_corpus(trace: Trace, tree: Tree, folder: Path | None) -> Reading:
    """The corpus ``trace`` and every finding about it.

    A shipped corpus is read from ``tree`` (from the package where the tree lacks it); any other one from
    ``folder``: the subfolder or file called after it, or ``folder`` itself. T-017 where it is not there, T-016
    where its bytes are not the pinned ones.
    """
    with ExitStack() as stack:
        files = _files(trace, tree, folder, stack)
        if not files:
            place = f"in {folder}" if folder else "and no folder was given"
            hint = f"put it into DIR/{trace.key}/ or DIR/{trace.key}.jsonl; it is published as {trace.source}"
            message = f"corpus {trace.key!r} is not at hand {place}"
            return Reading(None, [finding("T-017", Mark(trace.path or trace.key), message, hint)])
        found = _hash(files)
        if trace.sha256 not in (None, found):
            message = f"corpus {trace.key!r} has sha256 {found}, pinned is {trace.sha256}"
            return Reading(None, [finding("T-016", Mark(files[0][0]), message, "take the pinned corpus")])
        return read(files, trace.key, found)


def trace_files(folder: Path) -> list[Path]:
    """The trace files of a folder, by name; subfolders are not entered."""
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in ENDINGS)


def _files(trace: Trace, tree: Tree, folder: Path | None, stack: ExitStack) -> list[tuple[str, BinaryIO]]:
    if trace.path is not None:
        home = tree if tree.exists(trace.path) else Packaged()
        if not home.exists(trace.path):
            return []
        return [(trace.path, io.BufferedReader(io.BytesIO(home.read_bytes(trace.path))))]
    if folder is None:
        return []
    return [(str(path), stack.enter_context(path.open("rb"))) for path in _candidates(trace.key, folder)]


def _candidates(key: str, folder: Path) -> list[Path]:
    if (folder / key).is_dir():
        return trace_files(folder / key)
    for ending in ENDINGS:
        if (folder / f"{key}{ending}").is_file():
            return [folder / f"{key}{ending}"]
    return trace_files(folder) if folder.name == key and folder.is_dir() else []


def _hash(files: list[tuple[str, BinaryIO]]) -> str:
    digest = hashlib.sha256()
    for _, stream in files:
        for part in _parts(stream):
            digest.update(part)
        stream.seek(0)
    return digest.hexdigest()


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    while part := stream.read(1 << 20):
        yield part
