"""What the vendors' tools print, in the shapes seen in the field, read to the figure."""

from __future__ import annotations

import pytest

from infx.run.telemetry import parse_amd, parse_nvidia
from infx.run.telemetry.samples import GpuSample, number, samples_csv, samples_of_csv

NVIDIA = """timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz], temperature.gpu, \
memory.used [MiB], utilization.gpu [%]
2026/06/10 20:42:54.693, 0, 78.74 W, 345 MHz, 3201 MHz, 42, 13 MiB, 0 %
2026/06/10 20:42:54.697, 1, [N/A], 1980 MHz, 3201 MHz, 71, 81559 MiB, 100 %
2026/06/10 20:42:55.69
"""
AMD = """CTRL + C to stop

timestamp,gpu,gfx_activity,xcp,socket_power,power_management,gfx_0_clk,gfx_7_clk,mem_0_clk,edge,hotspot,mem,used_vram
1772939616,0,97,"['N/A', 'N/A']",1350,ENABLED,2100,2395,1900,N/A,84,71,262144
1772939616,1,0,"['N/A', 'N/A']",N/A,ENABLED,133,N/A,900,39,41,40,N/A
timestamp,gpu,gfx_activity,xcp,socket_power,power_management,gfx_0_clk,gfx_7_clk,mem_0_clk,edge,hotspot,mem,used_vram
1772939617,0,95,"['N/A', 'N/A']",1340,ENABLED,2100,2300,1900,N/A,85,71,2621
"""


def test_nvidia_rows_to_the_figure():
    first, second = parse_nvidia.parse(NVIDIA.splitlines())
    # 2026-06-10 20:42:54.693 UTC
    assert first == GpuSample(pytest.approx(1781124174.693), "0", 78.74, 345.0, 3201.0, 42.0, 13.0, 0.0)
    assert second.watts is None and second.memory_mib == 81559.0
    assert second.unix - first.unix == pytest.approx(0.004, abs=1e-5)


def test_nvidia_names_of_another_driver():
    text = "timestamp, index, power.draw.average [W], clocks.sm [MHz]\n2026/06/10 20:42:54.693, 3, 700.10 W, 1755 MHz"
    (found,) = parse_nvidia.parse(text.splitlines())
    assert (found.gpu, found.watts, found.core_mhz, found.celsius) == ("3", 700.1, 1755.0, None)


def test_amd_stream_with_preamble_repeated_header_and_lists():
    found = parse_amd.parse(AMD.splitlines())
    assert [(s.unix, s.gpu, s.watts) for s in found] == [
        (1772939616.5, "0", 1350.0), (1772939616.5, "1", None), (1772939617.5, "0", 1340.0)]
    assert (found[0].core_mhz, found[0].memory_mhz, found[0].celsius, found[0].memory_mib, found[0].busy_percent) == (
        2395.0, 1900.0, 84.0, 262144.0, 97.0)
    assert (found[1].core_mhz, found[1].celsius, found[1].memory_mib) == (133.0, 41.0, None)


def test_words_that_are_no_table_give_nothing():
    for text in ("", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
                 "gpu,total_energy_consumption\n0,339360563.211\n", "timestamp,gpu\nnever,x\n"):
        assert parse_amd.parse(text.splitlines()) == [] and parse_nvidia.parse(text.splitlines()) == []


def test_the_tools_are_asked_for_a_row_a_second():
    assert parse_nvidia.command("nvidia-smi", 1.0)[-1] == "--loop-ms=1000" and parse_nvidia.ENVIRONMENT["TZ"] == "UTC"
    assert parse_amd.command("amd-smi", 0.5) == ["amd-smi", "metric", "-p", "-c", "-t", "-u", "-m", "-w", "1", "--csv"]


def test_samples_round_trip_with_holes():
    samples = parse_amd.parse(AMD.splitlines())
    data = samples_csv(samples)
    assert b"1772939616.500,1,,133,900,41,,0\n" in data
    assert samples_of_csv(data) == samples
    with pytest.raises(ValueError, match="not a table of GPU samples"):
        samples_of_csv(b"unix,gpu\n1,0\n")


@pytest.mark.parametrize(("cell", "value"), [("78.74 W", 78.74), ("135", 135.0), ("N/A", None), ("[N/A]", None),
                                             ("", None), (None, None), ("nan", None), ("inf W", None)])
def test_cells(cell, value):
    assert number(cell) == value
