"""What the vendor's tool says of accelerators before a sweep: pure parsing, and the checks made of it.

``nvidia-smi --query-gpu=… --format=csv`` writes cells with their unit; ``amd-smi static --json`` and ``amd-smi
metric --json`` write ``{"value": …, "unit": …}`` or ``N/A``, as a list (ROCm 6) or below ``gpu_data`` (ROCm 7).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infx.run.preflight.check import Check, fails, ok, unknown

NVIDIA_QUERY = ("index", "name", "memory.used", "utilization.gpu", "power.limit", "power.default_limit",
                "mig.mode.current")
IDLE_MIB = 1024.0
"""Device memory that an idle accelerator's driver may hold; more belongs to somebody."""
IDLE_PERCENT = 5.0


@dataclass(frozen=True)
class Gpu:
    """One accelerator: MiB in use, utilisation in %, its power cap and its full power in W, how it is partitioned.

    None where the tool does not say. ``whole``: it is one undivided device.
    """

    index: str
    name: str | None = None
    used_mib: float | None = None
    busy_percent: float | None = None
    cap_w: float | None = None
    full_w: float | None = None
    partition: str | None = None
    whole: bool | None = None


def nvidia_gpus(text: str) -> list[Gpu]:
    """The accelerators of a table that `nvidia-smi` wrote; rows that are cut are left out."""
    rows = [[cell.strip() for cell in line] for line in csv.reader(text.splitlines())]
    head: list[str] = []
    found = []
    for cells in rows:
        if "index" in cells:
            head = [cell.split(" [")[0] for cell in cells]
        elif head and len(cells) == len(head):
            row = dict(zip(head, cells, strict=True))
            if row["index"].isdecimal():
                mig = row.get("mig.mode.current", "")
                known = mig in ("Enabled", "Disabled", "[N/A]", "N/A")
                found.append(Gpu(
                    row["index"], row.get("name"), _cell(row.get("memory.used")), _cell(row.get("utilization.gpu")),
                    _cell(row.get("power.limit")), _cell(row.get("power.default_limit")),
                    f"MIG {mig}" if known else None, mig != "Enabled" if known else None))
    return found


def amd_gpus(static: str, metric: str) -> list[Gpu]:
    """The accelerators of `amd-smi static --json`, with memory and utilisation of `amd-smi metric --json`."""
    now = {str(item.get("gpu")): item for item in _amd_items(metric)}
    found = []
    for item in _amd_items(static):
        index = str(item.get("gpu"))
        measured = now.get(index, {})
        limit = _dig(item, "limit", "ppt0") or item.get("limit")
        parts = [_dig(item, "partition", name) for name in ("accelerator_partition", "compute_partition",
                                                            "memory_partition")]
        said = [part for part in parts if isinstance(part, str) and part != "N/A"]
        found.append(Gpu(
            index, _word(_dig(item, "asic", "market_name")), _mib(_dig(measured, "mem_usage", "used_vram")),
            _amount(_dig(measured, "usage", "gfx_activity")),
            _amount(_dig(limit, "socket_power_limit") or _dig(limit, "socket_power")),
            _amount(_dig(limit, "max_power_limit") or _dig(limit, "max_power")),
            "/".join(said) or None, set(said) <= {"SPX", "NPS1"} if said else None))
    return found


def gpu_checks(gpus: Sequence[Gpu], wanted: int | None) -> list[Check]:
    """Count, idleness, leftover memory, power cap and partition mode; the worst of all accelerators each."""
    count = ok("gpus", f"{len(gpus)} accelerators: {', '.join(sorted({gpu.name or 'unnamed' for gpu in gpus}))}")
    if wanted is not None and len(gpus) != wanted:
        count = fails("gpus", f"{len(gpus)} accelerators are visible, the profile has gpus: {wanted}",
                      "correct `gpus` of the profile, or find the missing device")
    return [count, _each("gpu-idle", gpus, _idle), _each("gpu-memory", gpus, _leftover),
            _each("power-cap", gpus, _cap), _each("partition", gpus, _partition)]


def _each(name: str, gpus: Sequence[Gpu], one: Any) -> Check:
    found = [one(gpu) for gpu in gpus]
    for state in ("fails", "unknown"):
        worst = [(gpu.index, check) for gpu, check in zip(gpus, found, strict=True) if check.state == state]
        if worst:
            said = "; ".join(f"GPU {index}: {check.reason}" for index, check in worst)
            return Check(name, worst[0][1].state, said, worst[0][1].hint)
    return ok(name, f"all {len(gpus)}: {found[0].reason}" if found else "no accelerator")


def _idle(gpu: Gpu) -> Check:
    if gpu.busy_percent is None:
        return unknown("gpu-idle", "the tool says no utilisation", "look at the tool by hand")
    if gpu.busy_percent > IDLE_PERCENT:
        return fails("gpu-idle", f"{gpu.busy_percent:g} % busy", "somebody computes on it; wait, or end that process")
    return ok("gpu-idle", f"{gpu.busy_percent:g} % busy")


def _leftover(gpu: Gpu) -> Check:
    if gpu.used_mib is None:
        return unknown("gpu-memory", "the tool says no memory in use", "look at the tool by hand")
    if gpu.used_mib > IDLE_MIB:
        return fails("gpu-memory", f"{gpu.used_mib:.0f} MiB in use", "`infx runner clean` ends what dead sweeps left; "
                     "else ask the vendor's tool for the processes that hold it")
    return ok("gpu-memory", f"{gpu.used_mib:.0f} MiB in use")


def _cap(gpu: Gpu) -> Check:
    if gpu.cap_w is None or gpu.full_w is None:
        return unknown("power-cap", "the tool says no power limit", "look at the tool by hand")
    if gpu.cap_w < gpu.full_w:
        return fails("power-cap", f"capped at {gpu.cap_w:g} of {gpu.full_w:g} W", "a capped device is another device: "
                     "lift the cap, or say so in the profile's description")
    return ok("power-cap", f"{gpu.cap_w:g} of {gpu.full_w:g} W")


def _partition(gpu: Gpu) -> Check:
    if gpu.whole is None:
        return unknown("partition", "the tool says no partition mode", "AMD: see `amd-smi partition -c`")
    if not gpu.whole:
        return fails("partition", f"{gpu.partition}: divided", "figures per GPU want whole devices (SPX/NPS1, MIG off)")
    return ok("partition", gpu.partition or "whole")


def _amd_items(text: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(text)
    except ValueError:
        return []
    items = data.get("gpu_data") if isinstance(data, dict) else data
    return [item for item in items if isinstance(item, dict) and "gpu" in item] if isinstance(items, list) else []


def _dig(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value != "N/A" else None


def _amount(value: Any) -> float | None:
    value = value.get("value") if isinstance(value, dict) else value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mib(value: Any) -> float | None:
    """amd-smi writes mebibytes and calls them MB; other units are read by their name."""
    found = _amount(value)
    unit = str(value.get("unit", "MB")).upper() if isinstance(value, dict) else "MB"
    return None if found is None else found * {"KB": 1 / 1024, "GB": 1024.0}.get(unit, 1.0)


def _cell(text: str | None) -> float | None:
    try:
        return float((text or "").split()[0])
    except (IndexError, ValueError):
        return None
