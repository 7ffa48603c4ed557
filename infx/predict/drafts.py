"""Owns the table of a drafter's stored precision: which tensors are the draft's, their dtypes, scales and granularity.

Pure: it works on names, dtypes and shapes of tensors, however they were read.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

_NAMES = re.compile(r"(^|[._])(mtp|nextn|drafter|draft|draft_model|eagle\d?|medusa\w*|dspark|speculator\w*)([._]|$)",
                    re.IGNORECASE)
_WHOLE = re.compile(r"eagle|medusa|mtp|nextn|dspark|draft|speculator", re.IGNORECASE)
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_SCALES = ("weight_scale_inv", "weight_scale", "weight_scales", "scales", "scale")
_SECOND = ("weight_scale_2", "weight_global_scale", "input_scale")
_WEIGHTS = ("weight", "weight_packed", "qweight")
_WIDTH = {"U8": 8, "I8": 8, "I32": 32, "U32": 32}
_FLOATS = ("F64", "F32", "F16", "BF16")


class Stored(Protocol):
    """What is known of one tensor."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True)
class Row:
    """Tensors of one role, dtype and scaling: ``name`` has * for numbers; ``bytes`` count their scales as well."""

    name: str
    count: int
    dtype: str
    values: str
    scales: str
    granularity: str
    bytes: int


@dataclass(frozen=True)
class DraftTable:
    """``why``: how the draft's tensors were told apart. ``digest``: SHA-256 over their names, dtypes and shapes."""

    why: str
    rows: tuple[Row, ...]
    tensors: int
    of: int
    bytes: int
    digest: str


def draft_table(tensors: Mapping[str, Stored], config: Mapping[str, Any], pattern: str | None = None) -> DraftTable:
    """The table of a checkpoint's draft tensors; ``pattern`` (a glob of tensor names) takes the place of the rules."""
    chosen, why = _chosen(tensors, config, pattern)
    mine = {name: tensors[name] for name in sorted(chosen)}
    scales = {scale.name for name in mine for scale in _partners(name, mine)}
    groups: dict[tuple[str, str, str, str, str], list[int]] = {}
    for name, tensor in mine.items():
        if name not in scales:
            values, words, granularity, size = _stored(tensor, mine)
            key = (re.sub(r"(?<=\.)\d+(?=\.)", "*", name), tensor.dtype, values, words, granularity)
            groups.setdefault(key, []).append(tensor.bytes + size)
    rows = tuple(Row(key[0], len(sizes), *key[1:], sum(sizes)) for key, sizes in sorted(groups.items()))
    facts = [[name, tensor.dtype, list(tensor.shape)] for name, tensor in mine.items()]
    digest = hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()
    return DraftTable(why, rows, len(mine), len(tensors), sum(tensor.bytes for tensor in mine.values()), digest)


def differences(ours: DraftTable, theirs: DraftTable) -> list[str]:
    """How the first table's tensors are stored differently from the second's, one sentence a role."""
    found = []
    first, second = _by_name(ours.rows), _by_name(theirs.rows)
    for name in sorted({*first, *second}):
        if name not in second:
            found.append(f"{name} is not in the other checkpoint")
        elif name not in first:
            found.append(f"{name} is in the other checkpoint alone")
        elif first[name] != second[name]:
            here, there = " and ".join(first[name]), " and ".join(second[name])
            found.append(f"{name} is {here}; the other checkpoint has {there}")
    return found


def _by_name(rows: Iterable[Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        scaled = f" with {row.scales} scales {row.granularity}" if row.scales else ""
        found.setdefault(row.name, []).append(f"{row.count} × {row.values}{scaled}")
    return found


def _chosen(tensors: Mapping[str, Stored], config: Mapping[str, Any], pattern: str | None) -> tuple[list[str], str]:
    if pattern is not None:
        return fnmatch.filter(tensors, pattern), f"names that match {pattern}"
    architectures = config.get("architectures")
    for word in architectures if isinstance(architectures, list) else []:
        if isinstance(word, str) and _WHOLE.search(word):
            return list(tensors), f"the whole checkpoint is a drafter ({word})"
    layers = _layers(config)
    named = [name for name in tensors if _NAMES.search(name)]
    behind = [name for name in tensors if layers is not None and (match := _LAYER.search(name)) is not None
              and int(match[1]) >= layers]  # fmt: skip
    reasons = ["names of a drafter"] if named else []
    reasons += [f"layers from {layers} on, behind the {layers} of config.json"] if behind else []
    return [*dict.fromkeys([*named, *behind])], " and ".join(reasons)


def _layers(config: Mapping[str, Any]) -> int | None:
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        count = part.get("num_hidden_layers")
        if isinstance(count, int) and not isinstance(count, bool):
            return count
    return None


def _partners(name: str, tensors: Mapping[str, Stored]) -> list[Stored]:
    """What scales the tensor: siblings of ``….weight``, or names that begin with its own (``…_scale``)."""
    stem, _, last = name.rpartition(".")
    if last in _WEIGHTS:
        names = [f"{stem}.{word}" for word in (*_SCALES, *_SECOND)]
    else:
        bare = name.removesuffix("_blocks")
        names = [f"{bare}_{word}" for word in ("scale_inv", "scale", "scales")]
    return [tensors[one] for one in names if one in tensors]


def _stored(tensor: Stored, tensors: Mapping[str, Stored]) -> tuple[str, str, str, int]:
    """What its values are, the dtype of its scales, their granularity, and the bytes of all its scales."""
    last = tensor.name.rpartition(".")[2]
    partners = _partners(tensor.name, tensors)
    if not partners:
        plain = tensor.dtype in _FLOATS or last not in _WEIGHTS
        return tensor.dtype if plain else f"{tensor.dtype}, no scales found", "", "", 0
    scale = partners[0]
    packed = _packing(tensor, scale)
    grain = _granularity(tensor.shape, scale.shape, packed)
    if last == "qweight":
        grain = _grouped(tensor.shape, scale.shape)
    words = " × ".join(dict.fromkeys(one.dtype for one in partners if not one.name.endswith("input_scale")))
    values = tensor.dtype
    if packed > 1:
        values += f" with {packed} values of {_WIDTH[tensor.dtype] // packed} bits each"
    if any(one.name.endswith("input_scale") for one in partners):
        values += ", static input scales"
    return values, words, grain, sum(one.bytes for one in partners)


def _packing(tensor: Stored, scale: Stored) -> int:
    """Values in one stored element: whole words hold 8 of 4 bits; bytes hold 2 where block scales prove them."""
    if tensor.dtype in ("I32", "U32"):
        return 8
    small = scale.dtype in ("F8_E8M0", "F8_E4M3", "U8")
    return 2 if tensor.dtype in ("U8", "I8") and small else 1


def _granularity(shape: tuple[int, ...], scales: tuple[int, ...], packed: int) -> str:
    """``1×32``: values along the output and the input that share a scale; or per tensor, expert, output channel."""
    if len(shape) < 2 or not scales or set(scales) == {1}:
        return "per tensor"
    lead, (rows, columns) = shape[:-2], shape[-2:]
    columns *= packed
    rest = scales[len(lead):] if scales[: len(lead)] == lead else scales
    if lead and not rest:
        return "per expert"
    if len(rest) == 1:
        return "per output channel" if rest[0] == rows else "per tensor" if rest[0] == 1 else "unknown"
    if len(rest) != 2 or min(rest) < 1:
        return "unknown"
    if rest == (rows, 1):
        return "per output channel"
    return f"{-(-rows // rest[0])}×{-(-columns // rest[1])}"


def _grouped(shape: tuple[int, ...], scales: tuple[int, ...]) -> str:
    """Words that pack 8 inputs (GPTQ, scales as wide as they) or 8 outputs (AWQ): inputs that share a scale."""
    if len(shape) != 2 or len(scales) != 2 or scales[0] < 1:
        return "unknown"
    inputs = shape[0] * 8 if scales[1] == shape[1] else shape[0]
    return f"1×{-(-inputs // scales[0])}"
