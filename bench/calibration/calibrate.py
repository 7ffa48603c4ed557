"""Calibrate the verdicts of `infx compare` and `infx ab` by simulation, stop rules on.

    python bench/calibration/calibrate.py [--seeds 2000] [--only fixed|aa|planner|virtual]

Starts have a shared effect (normal, the between-start spread) and points an own one within a start: normal at 0.3 %,
or, in the part `virtual`, what the shipped stop rule of a window leaves on a virtual engine (bench/stop). Verdicts
come from infx.measure.stats.family at the levels of infx.measure.stats.sequential, as infx.compare.verdict takes
them: an A/B ends at the first look that leaves nothing undecided. Printed as Markdown, for docs/comparing.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from infx.measure.stats.family import cosines, family_p_differs, family_p_equivalent  # noqa: E402
from infx.measure.stats.power import Question, starts_for_gain, starts_for_margin  # noqa: E402
from infx.measure.stats.sequential import look_levels, looks  # noqa: E402

UNDECIDED, SAME, BETTER, WORSE = range(4)
WITHIN = 0.003
MARGIN = 0.02
SPREADS = (0.005, 0.02, 0.04)
ROTATIONS = 1999
Within = Callable[[np.random.Generator, tuple[int, int, int]], np.ndarray]


def normal_within(rng: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
    """(seeds, starts, cells) independent relative errors of 0.3 %."""
    return WITHIN * rng.standard_normal(shape)


@dataclass(frozen=True)
class Design:
    """What is simulated: starts an arm, cells of the curve, spread between starts, true effect (log) by cell."""

    starts: int
    cells: int
    sd: float
    effect: np.ndarray | float = 0.0
    margin: float = MARGIN
    within: Within = normal_within


def verdicts(design: Design, seeds: int, seed: int = 1, rotations: int = ROTATIONS) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, cells) verdict codes, and the starts an arm that each simulated A/B used."""
    rng = np.random.default_rng(seed)
    schedule = looks(design.starts)
    found = np.zeros((seeds, design.cells), dtype=int)
    used = np.full(seeds, design.starts)
    chunk = max(1, 4_000_000 // (rotations * design.cells))
    for first in range(0, seeds, chunk):
        size = min(chunk, seeds - first)
        table = design.sd * rng.standard_normal((size, 2 * design.starts, 1))
        table = table + design.within(rng, (size, 2 * design.starts, design.cells))
        table[:, design.starts :] += design.effect
        made, taken = judged(table, schedule, design.margin, rotations)
        found[first : first + size], used[first : first + size] = made, taken
    return found, used


def judged(table: np.ndarray, schedule: tuple[int, ...], margin: float, rotations: int = ROTATIONS
           ) -> tuple[np.ndarray, np.ndarray]:
    """Verdicts of simulated A/Bs (seeds, rows, cells), looked at by ``schedule`` and stopped when all is decided."""
    starts = table.shape[1] // 2
    low, high = (np.full(table.shape[2], np.log1p(sign * margin)) for sign in (-1, 1))
    found = np.zeros((table.shape[0], table.shape[2]), dtype=int)
    used = np.full(table.shape[0], starts)
    live = np.ones(table.shape[0], dtype=bool)
    for n, level in zip(schedule, look_levels(schedule), strict=True):
        rows = np.concatenate([table[live, :n], table[live, starts : starts + n]], axis=1)
        differs = family_p_differs(rows, n, rotations) <= level
        same = family_p_equivalent(rows, n, low, high, rotations) <= level
        up = cosines(rows, n)[0] > 0
        fresh = np.where(same, SAME, np.where(differs, np.where(up, BETTER, WORSE), UNDECIDED))
        kept = np.where(found[live] == UNDECIDED, fresh, found[live])
        found[live] = kept
        done = (kept != UNDECIDED).all(axis=1)
        index = np.flatnonzero(live)[done]
        used[index] = n
        live[index] = False
        if not live.any():
            break
    return found, used


def differs(found: np.ndarray) -> np.ndarray:
    return (found == BETTER) | (found == WORSE)


def null_and_margin(seeds: int) -> None:
    """A/A and a true difference on the margin: what is falsely said of a curve, and of a cell."""
    print("| between starts | starts an arm | cells | false better/worse, a curve | false same at the margin, a curve "
          "| a cell | A/A called same, a cell |\n" + "|---" * 7 + "|")
    for sd in SPREADS:
        for starts in (2, 3, 6):
            for cells in (1, 7, 28):
                none, _ = verdicts(Design(starts, cells, sd), seeds)
                edge, _ = verdicts(Design(starts, cells, sd, np.log1p(MARGIN)), seeds, seed=2)
                same = edge == SAME
                print(f"| {sd:.1%} | {starts} | {cells} | {differs(none).any(axis=1).mean():.1%} "
                      f"| {same.any(axis=1).mean():.1%} | {same.mean():.1%} | {(none == SAME).mean():.1%} |",
                      flush=True)


def planner(seeds: int) -> None:
    """The planner's own number of starts: how often the verdict is right, a cell at a time and in all cells at once."""
    print("| asked | between starts | cells | planned starts | right verdict, a cell | all cells right | mean starts "
          "used |\n" + "|---" * 7 + "|")
    for sd in SPREADS:
        total = float(np.hypot(sd, WITHIN))
        for cells in (1, 7, 28):
            question = Question(total, cells, sd**2 / total**2, early=True, together=True)
            cases = [("5 % gain", starts_for_gain(0.05, question), np.log1p(0.05), BETTER),
                     ("same within 2 %", starts_for_margin(MARGIN, question), 0.0, SAME)]
            for name, starts, effect, right in cases:
                found, used = verdicts(Design(starts, cells, sd, effect), seeds, seed=3)
                hit = found == right
                print(f"| {name} | {sd:.1%} | {cells} | {starts} | {hit.mean():.1%} "
                      f"| {hit.all(axis=1).mean():.1%} | {used.mean():.1f} |", flush=True)


def fixed_planner() -> None:
    """Starts an arm that the planner names for one declared point, without and with looks on the way."""
    print("| between starts | same within 2 %: fixed | with looks | 5 % gain: fixed | with looks |")
    print("|---" * 5 + "|")
    for sd in (0.005, 0.01, 0.02, 0.04):
        row = [f(x, Question(sd, early=early)) for f, x in ((starts_for_margin, MARGIN), (starts_for_gain, 0.05))
               for early in (False, True)]
        print(f"| {sd:.1%} | " + " | ".join(map(str, row)) + " |")


def virtual(seeds: int, pool: int = 300) -> None:
    """The same with within-start errors that the shipped stop rule leaves on a virtual engine in virtual time."""
    within, sizes = stopped_within(pool)
    print("within a start, at the stop (relative spread of output throughput and median TPOT): "
          + ", ".join(f"c{c} {rate:.2%} and {tpot:.2%}" for c, rate, tpot in sizes) + "\n")
    print("| between starts | starts an arm | false better/worse, a curve | false same at the margin, a curve | "
          "A/A called same, a cell | 5 % gain found, a cell |\n" + "|---" * 6 + "|")
    cells = 2 * len(sizes)
    for sd in SPREADS:
        for starts in (2, 3, 6):
            none, _ = verdicts(Design(starts, cells, sd, within=within), seeds)
            edge, _ = verdicts(Design(starts, cells, sd, np.log1p(MARGIN), within=within), seeds, seed=2)
            gain, _ = verdicts(Design(starts, cells, sd, np.log1p(0.05), within=within), seeds, seed=3)
            print(f"| {sd:.1%} | {starts} | {differs(none).any(axis=1).mean():.1%} "
                  f"| {(edge == SAME).any(axis=1).mean():.1%} | {(none == SAME).mean():.1%} "
                  f"| {(gain == BETTER).mean():.1%} |", flush=True)


def stopped_within(pool: int, concurrencies: tuple[int, ...] = (4, 8, 16, 32)
                   ) -> tuple[Within, list[tuple[int, float, float]]]:
    """Draws of log errors by (concurrency, throughput | TPOT) from ``pool`` windows closed by the shipped rule."""
    stop = _stop_bench()

    columns, sizes = [], []
    for c in concurrencies:
        pairs = []
        for seed in range(pool):
            rule, _ = stop.watch(stop.Curve.of(stop.closed_loop(c, (stop.CAP_CYCLES + 6) * c, seed)), 0.01)
            look = rule.looks[-1]
            pairs.append((np.log(look.throughput.value), -np.log(look.tpot.value)))
        errors = np.array(pairs) - np.mean(pairs, axis=0)
        columns.append(errors)
        sizes.append((c, float(errors[:, 0].std()), float(errors[:, 1].std())))

    def within(rng: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
        drawn = [errors[rng.integers(0, pool, size=shape[:2])] for errors in columns]
        return np.concatenate(drawn, axis=2)

    return within, sizes


def _stop_bench() -> ModuleType:
    """bench/stop/calibrate.py, which drives the shipped stop rule on a virtual engine."""
    spec = importlib.util.spec_from_file_location("stop_bench", ROOT / "bench" / "stop" / "calibrate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["stop_bench"] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--only", choices=["aa", "planner", "virtual", "fixed"])
    options = parser.parse_args()
    parts = {"fixed": lambda seeds: fixed_planner(), "aa": null_and_margin, "planner": planner, "virtual": virtual}
    for name, part in parts.items():
        if options.only in (None, name):
            print(f"\n### {name}: {(part.__doc__ or fixed_planner.__doc__ or '').splitlines()[0]}\n", flush=True)
            part(options.seeds)


if __name__ == "__main__":
    main()
