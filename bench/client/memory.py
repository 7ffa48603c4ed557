"""Peak memory of the parent for 100,000 requests of 200 reads: batches in, table, summary, file.

    python bench/client/memory.py [--requests 100000] [--reads 200]

The batches are those that load workers hand over (a worker itself holds a tenth of a second of them); they are made
here without a network, so that the peak is that of the client alone.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from infx.measure.columns import COLUMNS, CountSource, Outcome  # noqa: E402
from infx.measure.summary import summarise  # noqa: E402
from infx.measure.table import RequestTable  # noqa: E402
from infx.measure.window import Span  # noqa: E402

BATCH = 1000


def batch(first: int, reads: int) -> dict[str, bytes]:
    """One batch of ``BATCH`` requests, one a millisecond, 5 ms a token."""
    sent = (np.arange(first, first + BATCH, dtype=np.int64) + 1) * 1_000_000
    times = sent[:, None] + 20_000_000 + 5_000_000 * np.arange(reads, dtype=np.int64)
    values = {"outcome": Outcome.OK, "scheduled_ns": sent, "sent_ns": sent, "first_ns": times[:, 0],
              "answer_ns": times[:, 0], "last_ns": times[:, -1], "end_ns": times[:, -1], "prompt_sent": 8192,
              "prompt_usage": 8192, "output_asked": reads, "output_tokens": reads, "first_tokens": 1,
              "count_source": CountSource.USAGE_PER_READ}  # fmt: skip
    made = {name: np.broadcast_to(np.asarray(values.get(name, 0), dtype=code), BATCH).tobytes()
            for name, code in COLUMNS.items()}  # fmt: skip
    made["read_ns"] = times.tobytes()
    made["read_tokens"] = np.ones(BATCH * reads, dtype=np.int32).tobytes()
    made["read_counts"] = np.full(BATCH, reads, dtype=np.int32).tobytes()
    return made


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--reads", type=int, default=200)
    options = parser.parse_args()
    before = peak()
    batches = [batch(first, options.reads) for first in range(0, options.requests, BATCH)]
    print(f"imports {before:.0f} MB; all batches held {peak():.0f} MB")
    table = RequestTable.from_batches(batches)
    batches.clear()
    print(f"table of {len(table):,} requests, {len(table.read_ns):,} reads: peak {peak():.0f} MB")
    began = time.perf_counter()
    summarise(table, Span(1, int(table["end_ns"].max())), gpus=1, concurrency=1000)
    print(f"summarised in {time.perf_counter() - began:.1f} s: peak {peak():.0f} MB")
    began = time.perf_counter()
    size = len(table.to_bytes())
    print(f"file of {size / 1e6:.0f} MB in {time.perf_counter() - began:.1f} s: peak {peak():.0f} MB")


if __name__ == "__main__":
    main()
