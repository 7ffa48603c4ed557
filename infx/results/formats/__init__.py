"""Other tools' result files: one explicit table of formats, each with its recogniser and reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infx.errors import InputError, UsageError
from infx.findings import did_you_mean
from infx.results.formats import aiperf, guidellm, inference_perf, inferencex, sglang_bench, vllm_bench
from infx.results.formats.imported import Imported


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format: whether a parsed document is one, and the points that it holds."""

    recognises: Callable[[Any], bool]
    read: Callable[[dict[str, Any], str], list[Imported]]


FORMATS: dict[str, Format] = {
    sglang_bench.NAME: Format(sglang_bench.recognises, sglang_bench.read),
    vllm_bench.NAME: Format(vllm_bench.recognises, vllm_bench.read),
    inferencex.AGENTIC: Format(inferencex.recognises_agentic, inferencex.read_agentic),
    inferencex.FIXED: Format(inferencex.recognises_fixed, inferencex.read_fixed),
    aiperf.NAME: Format(aiperf.recognises, aiperf.read),
    guidellm.NAME: Format(guidellm.recognises, guidellm.read),
    inference_perf.NAME: Format(inference_perf.recognises, inference_perf.read),
}
"""By name, in the order in which a file is tried."""


def import_path(path: Path, name: str | None = None) -> list[Imported]:
    """Every point of a file, or of an AIPerf export folder; ``name`` forces the format.

    UsageError for an unknown name; InputError when the file cannot be read, is not JSON (lines), or is of no
    known format.
    """
    if name is not None and name not in FORMATS:
        raise UsageError(f"no format {name!r}", allowed=", ".join(FORMATS), hint=did_you_mean(name, FORMATS))
    if path.is_dir():
        folder = path if aiperf.is_folder(path) else path / "aiperf_artifacts"
        if aiperf.is_folder(folder):
            return aiperf.read_folder(folder)
        raise InputError("no export of AIPerf in this folder", where=str(path), hint="name the files themselves")
    documents = parse(path)
    points: list[Imported] = []
    for number, document in enumerate(documents, 1):
        source = str(path) if len(documents) == 1 else f"{path}:{number}"
        points += _read(document, source, path, name)
    return points


def parse(path: Path) -> list[Any]:
    """The JSON documents of a file: one, a list's items, or one a line; ``Infinity`` and ``NaN`` are read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", where=str(path)) from error
    try:
        whole = json.loads(text)
        return whole if isinstance(whole, list) else [whole]
    except ValueError:
        pass
    documents = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                documents.append(json.loads(line))
            except ValueError as error:
                raise InputError(f"not JSON: {error}", where=f"{path}:{number}") from error
    if not documents:
        raise InputError("the file is empty", where=str(path))
    return documents


def _read(document: Any, source: str, path: Path, name: str | None) -> list[Imported]:
    for known, form in FORMATS.items():
        if name in (None, known) and form.recognises(document):
            try:
                return form.read(document, source)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise InputError(f"damaged {known}: {type(error).__name__} {error}", where=source) from error
    wanted = f"not of format {name}" if name else "of no known format"
    raise InputError(wanted, where=str(path), allowed=", ".join(FORMATS))
