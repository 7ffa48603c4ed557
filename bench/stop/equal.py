"""What the stop rule saves: engine time at EQUAL root-mean-square error beside a fixed number of requests.

    python bench/stop/equal.py [--seeds 500] [--concurrency 4,8,16,32,64,128,256] [--ratio 0.8] [--target 0.01]

In virtual time on the Qwen3.8-27B 8k/1k ladder. The usual way sends k × concurrency requests (10 is common) and
divides all tokens by the whole wall. Its error is mostly the ramp and the drain, so k is scaled until its root-mean-
square error is that of the shipped rule; then the mean engine times, from the first request to the last one, are
compared. The other way round is not possible: the rule's shortest window is already better than 10 × concurrency.

Where an interval holds the long-run value in more than 97 % of the seeds the rule was more cautious than it had to be.
``caution`` is the engine time that a rule with a lower confidence a look would have taken whose intervals, of
throughput and of TPOT, both still hold in at least 95 %, as a share of the shipped rule's.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate import Line, calibrate  # noqa: E402
from virtual import closed_loop  # noqa: E402

from infx.measure import stop  # noqa: E402

CONFIDENCES = (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.3)
CLOSE = 0.02


@dataclass(frozen=True)
class Usual:
    """k × concurrency requests over the whole wall, over the seeds."""

    k: float
    rmse: float
    bias: float
    seconds: float


def usual(concurrency: int, k: float, seeds: int, ratio: float, truth: float) -> Usual:
    """Run the usual way; ``truth`` is the long-run rate in tokens a second."""
    count = max(concurrency, round(k * concurrency))
    off, seconds = [], []
    for seed in range(seeds):
        requests = np.array(closed_loop(concurrency, count, seed, ratio=ratio, spread=False, limit=count).requests)
        wall = float(requests[:, 2].max())
        off.append(float(requests[:, 3].sum()) / wall / truth - 1)
        seconds.append(wall)
    return Usual(count / concurrency, math.sqrt(np.mean(np.square(off))), float(np.mean(off)), float(np.mean(seconds)))


def at_equal_error(concurrency: int, rmse: float, seeds: int, ratio: float, truth: float) -> tuple[Usual, Usual]:
    """The usual 10 × concurrency, and the k whose error is within 2 % of ``rmse`` (secants in the logarithms)."""
    ten = usual(concurrency, 10, seeds, ratio, truth)
    low, found = ten, usual(concurrency, 10 * ten.rmse / rmse, seeds, ratio, truth)
    for _ in range(8):
        if abs(found.rmse / rmse - 1) < CLOSE or found.k == low.k:
            break
        slope = math.log(found.rmse / low.rmse) / math.log(found.k / low.k)
        step = math.log(rmse / found.rmse) / min(slope, -0.3)
        low, found = found, usual(concurrency, found.k * math.exp(step), seeds, ratio, truth)
    return ten, found


def caution(shipped: Line, concurrency: int, seeds: int, ratio: float, target: float) -> tuple[float, Line] | None:
    """The lowest confidence a look whose intervals still hold in at least 95 %; None: no lower one does."""
    kept, best = stop.LOOK_CONFIDENCE, None
    try:
        for confidence in CONFIDENCES:
            stop.LOOK_CONFIDENCE = confidence
            line = calibrate(concurrency, seeds, ratio, target)
            if min(line.cover_rate, line.cover_tpot) < 0.95 or line.seconds > shipped.seconds:
                break
            best = confidence, line
    finally:
        stop.LOOK_CONFIDENCE = kept
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--concurrency", default="4,8,16,32,64,128,256")
    parser.add_argument("--ratio", type=float, default=0.8)
    parser.add_argument("--target", type=float, default=0.01)
    options = parser.parse_args()
    print("| C | covers tok/s | covers TPOT | bias | RMSE | engine s | 10×C: bias | RMSE | engine s | "
          "k of equal RMSE | its RMSE | engine s | saved | caution: confidence | its cover | engine s | "
          "its RMSE |")
    print("|" + "---|" * 17)
    ours = theirs = 0.0
    for concurrency in map(int, options.concurrency.split(",")):
        line = calibrate(concurrency, options.seeds, options.ratio, options.target)
        ten, equal = at_equal_error(concurrency, line.rmse, options.seeds, options.ratio, line.truth)
        ours, theirs = ours + line.seconds, theirs + equal.seconds
        cells = [f"{line.cover_rate:.1%}", f"{line.cover_tpot:.1%}", f"{line.bias:+.3%}", f"{line.rmse:.3%}",
                 f"{line.seconds:.0f}", f"{ten.bias:+.2%}", f"{ten.rmse:.2%}", f"{ten.seconds:.0f}", f"{equal.k:.0f}",
                 f"{equal.rmse:.3%}", f"{equal.seconds:.0f}", f"{1 - line.seconds / equal.seconds:.0%}"]  # fmt: skip
        bold = None
        if max(line.cover_rate, line.cover_tpot) > 0.97:
            bold = caution(line, concurrency, options.seeds, options.ratio, options.target)
        cells += ["–"] * 4 if bold is None else [
            f"{bold[0]:.0%}", f"{bold[1].cover_rate:.1%}, {bold[1].cover_tpot:.1%}",
            f"{bold[1].seconds:.0f} ({bold[1].seconds / line.seconds - 1:+.0%})", f"{bold[1].rmse:.3%}",
        ]  # fmt: skip
        print(f"| {concurrency} | {' | '.join(cells)} |", flush=True)
    print(f"\nWhole ladder: {ours:.0f} s beside {theirs:.0f} s at equal error, {1 - ours / theirs:.0%} saved.")


if __name__ == "__main__":
    main()
