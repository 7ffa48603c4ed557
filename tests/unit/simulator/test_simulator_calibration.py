"""The simulator against vLLM #61573's table: fitted on a few cells, judged on the others. ``-s`` prints the table."""

from __future__ import annotations

import itertools
import statistics
import tomllib
from pathlib import Path

import pytest

from infx.simulator.offline import closed_loop, steady

TABLE = tomllib.loads((Path(__file__).parent / "table_61573.toml").read_text())
QWEN = "amd/Qwen3.8-27B-Quark-AWQ-MXFP4"
NAMES = ("output tok/s", "ITL", "TPOT")
# QuickReduce is part of that stack ("replay the stock CUDA graph, including FlyDSL QuickReduce"); its codec is not
# stated, and INT4 is assumed. The chunk is one prompt.
STACK = {
    "INFX_SIM_HARDWARE": "mi355x",
    "INFX_SIM_IMAGE": "placeholder:vllm-61573-dense-mono",
    "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": "INT4",
}
CAPS = {f"VLLM_ROCM_QWEN38_DENSE_MONO_{kernel}_MAX_ROWS": "8" for kernel in ("K1", "K2")}


def cells(arm: str) -> dict[tuple[int, int], tuple[float, float, float]]:
    """(TP, concurrency) → output tok/s, median ITL, median TPOT."""
    found = {}
    for key, (output, _, itl, tpot) in TABLE[arm].items():
        tp, concurrency = key.split("/")
        found[int(tp), int(concurrency)] = (output, itl, tpot)
    return found


def fitted(arm: str) -> set[tuple[int, int]]:
    return {tuple(cell) for cell in TABLE["fit"][arm]}


@pytest.fixture(scope="module")
def simulated(facts):
    """arm → (TP, concurrency) → steady figures of the simulator, and the run."""
    from infx.simulator.argv import parse
    from infx.simulator.deployment import resolve

    catalog, constants = facts
    made: dict[str, dict] = {"stock": {}, "mono": {}}
    for arm, table in made.items():
        for tp, concurrency in cells(arm):
            env = {**STACK, **({"VLLM_ROCM_MONO_DECODE": "1", **(CAPS if tp == 1 else {})} if arm == "mono" else {})}
            flags = ["-tp", str(tp), "--max-model-len", "9472", "--max-num-batched-tokens", "8192"]
            server = resolve(parse(["serve", QWEN, *flags]), env, catalog, constants)
            if arm == "mono" and concurrency > 32:  # nothing engages there, which the smaller ones show
                table[tp, concurrency] = made["stock"][tp, concurrency]
                continue
            waves = 10 if concurrency < 16 else 4 if concurrency < 64 else 3  # whole ones: the load is periodic
            run = closed_loop(
                server.scheduler(), concurrency, itertools.repeat((8192, 1024)), requests=waves * concurrency
            )
            table[tp, concurrency] = (steady(run), run)
    return made


def figures(point) -> tuple[float, float, float]:
    return point.output_s, point.median_itl * 1e3, point.median_tpot * 1e3


def relative(made: tuple[float, ...], seen: tuple[float, ...]) -> list[float]:
    return [a / b - 1 for a, b in zip(made, seen, strict=True)]


def interpolated(arm: str, tp: int, concurrency: int) -> list[float]:
    """Straight lines in concurrency between the fitted cells: of ITL, TPOT, and concurrency ÷ tok/s."""
    known = {}
    for cell in sorted(fitted("stock") | (fitted("mono") if arm == "mono" else set())):
        if cell[0] == tp:
            known[cell[1]] = cells("mono" if arm == "mono" and list(cell) in TABLE["fit"]["mono"] else "stock")[cell]
    low = max(c for c in known if c <= concurrency)
    high = min(c for c in known if c >= concurrency)
    at = 0.0 if high == low else (concurrency - low) / (high - low)
    (a, b, c), (d, e, f) = known[low], known[high]
    per_stream = low / a + at * (high / d - low / a)
    return [concurrency / per_stream, b + at * (e - b), c + at * (f - c)]


def held_out() -> list[tuple[str, int, int]]:
    return [(arm, *cell) for arm in ("stock", "mono") for cell in cells(arm) if cell not in fitted("stock")]


def test_print_the_table(simulated, capsys):
    lines = [f"{'arm':5} TP    C  {'':4} " + "".join(f"{name:>26}" for name in NAMES)]
    for arm in ("stock", "mono"):
        for cell, seen in cells(arm).items():
            point = simulated[arm][cell][0]
            used = "fit" if cell in fitted(arm) else "seen" if cell in fitted("stock") else "held"
            row = "".join(
                f"{a:10.2f} ({b:8.2f}, {error:+5.1%})" for a, b, error in
                zip(figures(point), seen, relative(figures(point), seen), strict=True)
            )  # fmt: skip
            lines.append(f"{arm:5} {cell[0]:2} {cell[1]:4}  {used:4} {row}  mono steps {point.mono_steps:.0%}")
    with capsys.disabled():
        print("\n" + "\n".join(lines))


def test_held_out_errors_are_within_their_bounds(simulated):
    errors = {name: [] for name in NAMES}
    for arm, *cell in held_out():
        found = relative(figures(simulated[arm][tuple(cell)][0]), cells(arm)[tuple(cell)])
        for name, error in zip(NAMES, found, strict=True):
            errors[name].append(abs(error))
    for name, found in errors.items():
        assert statistics.median(found) <= 0.06, (name, found)
        assert max(found) <= 0.20, (name, found)


def test_it_is_better_than_interpolating_between_the_same_cells(simulated):
    simulator, line = [], []
    for arm, *cell in held_out():
        seen = cells(arm)[tuple(cell)]
        simulator += [abs(e) for e in relative(figures(simulated[arm][tuple(cell)][0]), seen)]
        line += [abs(e) for e in relative(interpolated(arm, *cell), seen)]
    print(statistics.median(simulator), statistics.median(line), max(simulator), max(line))
    assert statistics.median(simulator) < statistics.median(line)


@pytest.mark.parametrize("tp", [1, 2])
def test_the_gain_of_mono_decode_is_right_in_sign_and_within_five_points(simulated, tp):
    for position, name in enumerate(NAMES):
        seen = cells("mono")[tp, 8][position] / cells("stock")[tp, 8][position]
        mono, stock = (figures(simulated[arm][tp, 8][0])[position] for arm in ("mono", "stock"))
        assert (mono / stock > 1) == (seen > 1), name
        assert abs(mono / stock - seen) <= 0.05, (name, mono / stock, seen)


def test_no_step_outside_the_caps_is_mono(simulated):
    for (tp, concurrency), (point, run) in simulated["mono"].items():
        for names, rows, prompt in zip(run.step_engaged, run.step_rows, run.step_prompt, strict=True):
            engaged = any(name.startswith("dense-mono") for name in names)
            assert engaged == (0 < rows <= 8 and not prompt)
        assert (point.mono_steps > 0.9) == (concurrency <= 8)
        assert concurrency <= 8 or point.mono_steps == 0.0, (tp, concurrency, point.mono_steps)
