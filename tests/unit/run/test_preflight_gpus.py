"""What is made of the words of nvidia-smi and amd-smi, in the shapes that they print."""

from __future__ import annotations

import json

import pytest

from infx.run.preflight.gpus import Gpu, amd_gpus, gpu_checks, nvidia_gpus
from infx.run.preflight.look import numa_balancing

NVIDIA = """index, name, memory.used [MiB], utilization.gpu [%], power.limit [W], power.default_limit [W], \
mig.mode.current
0, NVIDIA H200, 4 MiB, 0 %, 700.00 W, 700.00 W, Disabled
1, NVIDIA H200, 61234 MiB, 97 %, 500.00 W, 700.00 W, Enabled
2, NVIDIA H200, 4 MiB, [N/A], [N/A], [Unknown Error], [N/A]
3, NVIDIA H2
"""


def test_nvidia_rows():
    assert nvidia_gpus(NVIDIA) == [
        Gpu("0", "NVIDIA H200", 4, 0, 700, 700, "MIG Disabled", True),
        Gpu("1", "NVIDIA H200", 61234, 97, 500, 700, "MIG Enabled", False),
        Gpu("2", "NVIDIA H200", 4, None, None, None, "MIG [N/A]", True),
    ]
    assert nvidia_gpus("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n") == []


def amd(index: int, cap: int = 1400, **more: object) -> dict:
    limit = {"ppt0": {"max_power_limit": {"value": 1400, "unit": "W"}, "socket_power_limit": {"value": cap,
                      "unit": "W"}},
             "ppt1": {"max_power_limit": "N/A"}}
    return {"gpu": index, "asic": {"market_name": "AMD Instinct MI355X"}, "limit": limit, **more}


def used(index: int, mib: object, busy: object) -> dict:
    return {"gpu": index, "mem_usage": {"used_vram": mib}, "usage": {"gfx_activity": busy}}


PERCENT = {"value": 0, "unit": "%"}


@pytest.mark.parametrize("wrapped", [True, False])
def test_amd_of_two_releases(wrapped):
    static = [amd(0, partition={"accelerator_partition": "SPX", "memory_partition": "NPS1"}), amd(1, 1000)]
    metric = [used(0, {"value": 283, "unit": "MB"}, PERCENT), used(1, {"value": 3, "unit": "GB"}, "N/A")]
    texts = [json.dumps({"gpu_data": items} if wrapped else items) for items in (static, metric)]
    assert amd_gpus(*texts) == [
        Gpu("0", "AMD Instinct MI355X", 283, 0, 1400, 1400, "SPX/NPS1", True),
        Gpu("1", "AMD Instinct MI355X", 3072, None, 1000, 1400, None, None),
    ]


def test_amd_without_a_driver_or_metrics():
    assert amd_gpus("ERROR:root:Unable to detect any GPU devices", "") == []
    assert amd_gpus(json.dumps({"gpu_data": [amd(0)]}), "not json") == [
        Gpu("0", "AMD Instinct MI355X", None, None, 1400, 1400, None, None)]


def states(gpus: list[Gpu], wanted: int | None) -> dict[str, str]:
    return {check.name: check.state for check in gpu_checks(gpus, wanted)}


GOOD = Gpu("0", "X", 4, 0, 700, 700, "SPX", True)


def test_the_worst_of_all_decides_and_is_named():
    assert set(states([GOOD, GOOD], 2).values()) == {"ok"}
    assert states(nvidia_gpus(NVIDIA), 8) == {"gpus": "fails", "gpu-idle": "fails", "gpu-memory": "fails",
                                              "power-cap": "fails", "partition": "fails"}
    bare = Gpu("1")
    assert states([GOOD, bare], 2) == {"gpus": "ok", "gpu-idle": "unknown", "gpu-memory": "unknown",
                                       "power-cap": "unknown", "partition": "unknown"}
    said = {check.name: check for check in gpu_checks(nvidia_gpus(NVIDIA), None)}
    assert said["gpu-memory"].reason == "GPU 1: 61234 MiB in use" and "runner clean" in said["gpu-memory"].hint
    assert said["power-cap"].reason == "GPU 1: capped at 500 of 700 W"


def test_numa_balancing():
    assert [numa_balancing(value).state for value in ("0", "1", None)] == ["ok", "fails", "unknown"]
