"""Owns reading what a checkpoint says about its tensors: safetensors headers, their index and config.json, no data.

A header is 8 bytes of length (little-endian) and that many bytes of JSON: tensor name → dtype, shape and the range of
its bytes after the header. Everything amiss is a finding; nothing raises for bad content.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from infx.findings import Finding, Mark, Severity
from infx.sources.codes import Code

LONGEST_HEADER = 100_000_000
INDEX = "model.safetensors.index.json"
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of one element by safetensors' name of a dtype."""

_E, _W = Severity.ERROR, Severity.WARNING
CODES: dict[str, Code] = {
    "T-001": Code(_E, "no checkpoint", "Name a folder with .safetensors files, one such file, or an index (.json)."),
    "T-002": Code(_E, "truncated checkpoint file", "The file ends before its header or its tensors: fetch it again."),
    "T-003": Code(_E, "not a safetensors header", "The length or the JSON at the start is no header: the file is "
                  "another format (a pickle, an LFS pointer, an error page) or is damaged."),
    "T-004": Code(_E, "tensor that contradicts itself", "Dtype, shape and byte range of a tensor do not fit together."),
    "T-005": Code(_E, "index and files disagree", "The index names a file or a tensor that is not there."),
    "T-006": Code(_W, "config.json unreadable", "What it would say (layers, quantization, architecture) is unknown."),
    "T-007": Code(_W, "no drafter recognised", "No tensor has a name of a drafter; name them with --draft PATTERN."),
    "T-008": Code(_E, "draft precision differs", "A draft tensor is stored in another dtype or with other scales than "
                  "in the checkpoint that it is compared with: drafts are served as they ship."),
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """One stored tensor: its name, safetensors dtype, shape, bytes, and the file that holds it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: str


@dataclass(frozen=True)
class Checkpoint:
    """Every readable tensor by name, config.json where there is one, and what was amiss."""

    path: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def read_checkpoint(path: Path) -> Checkpoint:
    """Headers of the checkpoint at ``path``: a folder, a ``.safetensors`` file or an index; data stays unread."""
    found: list[Finding] = []
    folder = path if path.is_dir() else path.parent
    files, promised = _files(path, found)
    tensors: dict[str, Tensor] = {}
    for file in files:
        for tensor in _header(file, found):
            if tensor.name in tensors:
                found.append(_finding("T-004", file, f"{tensor.name} is in {tensors[tensor.name].file} already"))
            tensors.setdefault(tensor.name, tensor)
    broken = {finding.where.path for finding in found}
    for name, file in promised.items():
        if name not in tensors and str(folder / file) not in broken:
            found.append(_finding("T-005", folder / file, f"the index says it holds {name}; it does not"))
    config = _config(folder, found) if files else {}
    return Checkpoint(str(path), tensors, config, tuple(sorted(found)))


def _files(path: Path, found: list[Finding]) -> tuple[list[Path], dict[str, str]]:
    """Files to read, and tensor → file as the index promises."""
    if path.is_dir():
        index = path / INDEX
        if index.is_file():
            return _indexed(index, found)
        files = sorted(path.glob("*.safetensors"))
        if not files:
            found.append(_finding("T-001", path, "the folder has no .safetensors files"))
        return files, {}
    if not path.is_file():
        found.append(_finding("T-001", path, "there is no such file or folder"))
        return [], {}
    return _indexed(path, found) if path.suffix == ".json" else ([path], {})


def _indexed(index: Path, found: list[Finding]) -> tuple[list[Path], dict[str, str]]:
    document = _json(index, found, "T-003")
    promised = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(promised, dict) or not all(isinstance(name, str) for name in promised.values()):
        if document is not None:
            found.append(_finding("T-003", index, "it has no weight_map of tensor names to file names"))
        return [], {}
    files, kept = [], {}
    for name in sorted(set(promised.values())):
        inside = not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts and "\0" not in name
        if not inside:
            found.append(_finding("T-005", index, f"it names {name!r}, which lies outside of its folder"))
        elif not (index.parent / name).is_file():
            found.append(_finding("T-005", index, f"it names {name}, which is not there"))
        else:
            files.append(index.parent / name)
            kept |= {tensor: file for tensor, file in promised.items() if file == name}
    return files, kept


def _header(file: Path, found: list[Finding]) -> list[Tensor]:
    """The tensors of one file; a finding in place of what its header does not say."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8:
                found.append(_finding("T-002", file, f"{size} bytes are not even a header's length"))
                return []
            if not 2 <= length <= LONGEST_HEADER:
                found.append(_finding("T-003", file, f"its first 8 bytes give a header of {length:,} bytes"))
                return []
            text = stream.read(min(length, size))
    except OSError as error:
        found.append(_finding("T-001", file, os.strerror(error.errno or 0)))
        return []
    if len(text) < length:
        found.append(_finding("T-002", file, f"the header has {length:,} bytes; the file ends after {len(text):,}"))
        return []
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        found.append(_finding("T-003", file, f"its {length:,} bytes of header are no JSON mapping"))
        return []
    return _tensors(file, header, size - 8 - length, found)


def _tensors(file: Path, header: dict[str, Any], room: int, found: list[Finding]) -> list[Tensor]:
    kept, short = [], 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        wrong = _wrong(entry)
        if wrong:
            found.append(_finding("T-004", file, f"{name}: {wrong}"))
            continue
        start, end = entry["data_offsets"]
        short += end > room
        kept.append(Tensor(name, entry["dtype"], tuple(entry["shape"]), end - start, file.name))
    if short:
        found.append(_finding("T-002", file, f"{short} of {len(kept)} tensors end behind the file's {room:,} bytes"))
    return kept


def _wrong(entry: Any) -> str:
    """What an entry of a header contradicts, or nothing."""
    if not isinstance(entry, dict):
        return "it is no mapping"
    dtype, shape, span = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str):
        return "it has no dtype"
    if not isinstance(shape, list) or not all(_count(size) for size in shape):
        return "its shape is no list of sizes"
    if not isinstance(span, list) or len(span) != 2 or not all(_count(at) for at in span) or span[0] > span[1]:
        return "its data_offsets are no range"
    bits = BITS.get(dtype)
    wanted = math.prod(shape) * bits if bits else None
    if wanted is not None and (wanted + 7) // 8 != span[1] - span[0]:
        return f"{dtype} of {shape} takes {(wanted + 7) // 8:,} bytes, not {span[1] - span[0]:,}"
    return ""


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _config(folder: Path, found: list[Finding]) -> dict[str, Any]:
    file = folder / "config.json"
    if not file.is_file():
        found.append(_finding("T-006", file, "it is not there"))
        return {}
    document = _json(file, found, "T-006")
    if document is not None and not isinstance(document, dict):
        found.append(_finding("T-006", file, "it is no mapping"))
    return document if isinstance(document, dict) else {}


def _json(file: Path, found: list[Finding], code: str) -> Any:
    try:
        with file.open("rb") as stream:
            return json.loads(stream.read(LONGEST_HEADER))
    except (OSError, ValueError, RecursionError) as error:
        found.append(_finding(code, file, f"it cannot be read as JSON: {str(error):.120}"))
        return None


def _finding(code: str, file: Path, message: str) -> Finding:
    return Finding(Mark(str(file)), code, CODES[code].severity, message)
