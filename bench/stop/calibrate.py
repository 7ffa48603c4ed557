"""Calibrate the stop rule in virtual time: coverage, bias and cost on the Qwen3.8-27B 8k/1k ladder.

    python bench/stop/calibrate.py [--seeds 500] [--concurrency 4,8,16,32,64,128,256] [--ratio 0.8] [--target 0.01]

For every seed the shipped rule (infx.measure.stop) watches a virtual engine until it would close the window. Printed:
how often its intervals hold the long-run value, the bias and root-mean-square error of the value at the stop, the
engine time from the first request to the last measured one; and the same of the usual way, 10 × concurrency requests
over the whole wall.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from virtual import Trace, closed_loop  # noqa: E402

from infx.measure.stop import Ended, SequentialStop  # noqa: E402

CAP_CYCLES = 30
OPEN_LATER = 0.5


@dataclass
class Curve:
    """Cumulative tokens over time (piecewise linear) and requests as columns sent, first, end, tokens."""

    at: np.ndarray
    tokens: np.ndarray
    requests: np.ndarray

    @classmethod
    def of(cls, trace: Trace) -> Curve:
        segments = np.array(trace.segments)
        at = np.concatenate([[0.0], segments[:, 1]])
        return cls(at, np.concatenate([[0.0], np.cumsum(segments[:, 2])]), np.array(trace.requests))

    def rate(self, start: float, end: float) -> float:
        return float((np.interp(end, self.at, self.tokens) - np.interp(start, self.at, self.tokens)) / (end - start))

    @property
    def opening(self) -> float:
        """When every lane has ended one request (the first wave was sent at 0), and a little later, as shipped."""
        first = self.requests[self.requests[:, 0] == 0]
        return float(first[:, 2].max()) * (1 + OPEN_LATER / len(first))


def tpots(requests: np.ndarray) -> np.ndarray:
    return (requests[:, 2] - requests[:, 1]) / np.maximum(1, requests[:, 3] - 1) * 1000


def watch(curve: Curve, target: float) -> tuple[SequentialStop, float]:
    """Let the rule look whenever it is due, on what had ended by then; returns it and the end of the window."""
    rule, opening = SequentialStop(target), curve.opening
    measured = curve.requests[curve.requests[:, 0] >= opening]
    measured = measured[np.argsort(measured[:, 2])]
    cycle = float((measured[:, 2] - measured[:, 0]).mean())
    now = opening
    while now < opening + CAP_CYCLES * cycle:
        now += cycle / 20
        done = measured[measured[:, 2] <= now]
        if not len(done):
            continue
        ended = Ended((done[:, 0] * 1e9).astype(np.int64), done[:, 2] - done[:, 0], tpots(done))
        if rule.due(now - opening, ended.cycle_s):
            inside = (curve.at > opening) & (curve.at < now)
            at = np.concatenate([[opening], curve.at[inside], [now]])
            if rule.look(at - opening, np.interp(at, curve.at, curve.tokens), ended, now - opening):
                break
    return rule, now


def whole_wall(concurrency: int, seed: int, ratio: float) -> tuple[float, float]:
    """The usual way: 10 × concurrency requests, all tokens over the whole wall, drain in; rate and seconds."""
    trace = closed_loop(concurrency, 10 * concurrency, seed, ratio=ratio, spread=False, limit=10 * concurrency)
    requests = np.array(trace.requests)
    return float(requests[:, 3].sum() / requests[:, 2].max()), float(requests[:, 2].max())


@dataclass
class Line:
    """The findings at one concurrency."""

    concurrency: int
    cover_rate: float
    cover_tpot: float
    cycles: float
    bias: float
    rmse: float
    bias_tpot: float
    seconds: float
    usual_rmse: float
    usual_bias: float
    usual_seconds: float
    truth: float


def calibrate(concurrency: int, seeds: int, ratio: float, target: float) -> Line:
    """Run ``seeds`` virtual loads at one concurrency and compare with one long run."""
    long = Curve.of(closed_loop(concurrency, max(1000 * concurrency, 20_000), 10**6, ratio=ratio))
    truth = long.rate(long.opening, float(long.at[-1]))
    later = long.requests[long.requests[:, 0] >= long.opening]
    true_tpot = float(np.median(tpots(later)))
    held = held_tpot = 0
    errors, errors_tpot, cycles, seconds, usual = [], [], [], [], []
    for seed in range(seeds):
        curve = Curve.of(closed_loop(concurrency, (CAP_CYCLES + 6) * concurrency, seed, ratio=ratio))
        rule, end = watch(curve, target)
        look = rule.looks[-1]
        held += look.throughput.low <= truth <= look.throughput.high
        started = curve.requests[(curve.requests[:, 0] >= curve.opening) & (curve.requests[:, 0] < end)]
        final = float(np.median(tpots(started)))
        half = final * (look.tpot.half_width() or 1.0)
        held_tpot += abs(final - true_tpot) <= half
        errors.append(look.throughput.value / truth - 1)
        errors_tpot.append(final / true_tpot - 1)
        cycles.append(look.cycles)
        seconds.append(float(started[:, 2].max()))
        usual.append(whole_wall(concurrency, seed, ratio))
    wall = np.array(usual)
    off = wall[:, 0] / truth - 1
    return Line(concurrency, held / seeds, held_tpot / seeds, float(np.mean(cycles)), float(np.mean(errors)),
                float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(errors_tpot)), float(np.mean(seconds)),
                float(np.sqrt(np.mean(off**2))), float(off.mean()), float(wall[:, 1].mean()), truth)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--concurrency", default="4,8,16,32,64,128,256")
    parser.add_argument("--ratio", type=float, default=0.8)
    parser.add_argument("--target", type=float, default=0.01)
    options = parser.parse_args()
    print("| C | covers tok/s | covers TPOT | cycles | bias | RMSE | TPOT bias | engine s | "
          "10×C: bias | 10×C: RMSE | 10×C: engine s |")
    print("|" + "---|" * 11)
    for concurrency in map(int, options.concurrency.split(",")):
        line = calibrate(concurrency, options.seeds, options.ratio, options.target)
        print(f"| {concurrency} | {line.cover_rate:.1%} | {line.cover_tpot:.1%} | {line.cycles:.1f} | {line.bias:+.3%} "
              f"| {line.rmse:.3%} | {line.bias_tpot:+.3%} | {line.seconds:.0f} | {line.usual_bias:+.2%} "
              f"| {line.usual_rmse:.2%} | {line.usual_seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
