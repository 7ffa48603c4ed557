"""Fits the constants of configs/simulator.yaml on the fit cells of table_61573.toml: ``python fit_constants.py``.

Not a test: it prints constants for a person to write down. It runs the simulator itself, so that what is fitted is
what is judged. It takes a few minutes: concurrency 256 runs in 4 waves, and its output tok/s is left out, as the drain
weighs more in them. Held-out cells are not read.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

sys.path.insert(0, str(Path(__file__).parent))

from seed_table import WAVES, cells, figures, fitted, serve  # noqa: E402

from infx.simulator.facts import load_facts  # noqa: E402
from infx.sources.tree import Packaged  # noqa: E402

NAMES = ("weight-share", "kv-share", "compute-share", "launch-graph-us", "host-seq-us", "reduce-latency-us",
         "reduce-switch-us", "link-share", "mono weight", "mono launch at TP1")  # fmt: skip
START = np.array([0.6, 0.75, 0.5, 28, 5, 6, 12, 0.7, 0.42, 0.36])
LOW = np.array([0.3, 0.4, 0.2, 8, 1, 2, 0, 0.3, 0.0, 0.0])
HIGH = np.array([0.9, 0.9, 0.8, 80, 20, 30, 60, 1.0, 0.6, 0.6])
PRIOR = 0.03


def with_values(constants, values):
    """The constants with ``values`` of NAMES; launches keep the split of the file."""
    row = dict(constants.overheads["gfx950"])
    row.update(zip(NAMES[:8], values[:8], strict=True))
    row["launch-mixed-us"] = 2 * row["launch-graph-us"]
    launches = {name: dict(entry) for name, entry in constants.launches.items()}
    layers = {"k1": 0.75, "k2": 1.0, "oproj": 0.75}
    mine = {f"dense-mono-qwen38.{name}": served for name, served in layers.items()}
    weight = sum(launches[name]["weight"] * served for name, served in mine.items())
    launch = sum(launches[name]["launch"]["1"] * served for name, served in mine.items())
    for name in mine:
        launches[name]["weight"] *= values[8] / weight
        launches[name]["launch"] = {"1": launches[name]["launch"]["1"] * values[9] / launch}
    return replace(constants, overheads={**constants.overheads, "gfx950": row}, launches=launches)


def main() -> None:
    """Fit and print."""
    catalog, constants = load_facts(Packaged())

    def residuals(values):
        trial = with_values(constants, values)
        found = []
        for arm in ("stock", "mono"):
            for cell in sorted(fitted(arm)):
                short = cell[1] > 64
                made = figures(serve(catalog, trial, arm, *cell, waves=4 if short else WAVES))
                found += [math.log(a / b) for a, b in zip(made, cells(arm)[cell], strict=True)][1 if short else 0 :]
        return found + list(PRIOR * np.log(np.maximum(values, 1e-9) / START))

    done = least_squares(residuals, START, x_scale=START, bounds=(LOW, HIGH), diff_step=0.02, max_nfev=4)
    for name, value in zip(NAMES, done.x, strict=True):
        print(f"{name}: {value:.4g}")
    print(f"cost {done.cost:.5f}")
    final = with_values(constants, done.x)
    for name, entry in final.launches.items():
        if name.startswith("dense"):
            print(name, entry)


if __name__ == "__main__":
    main()
