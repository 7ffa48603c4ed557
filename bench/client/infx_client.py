"""infx's load client as a program for the comparison: C lanes, N requests, figures as JSON on stdout."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
sys.path[:0] = [str(HERE), str(ROOT)]
# Load workers unpickle Counted.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))

import numpy as np  # noqa: E402
from counted import Counted  # noqa: E402

from infx.measure.request import gaps, per_request, weighted_quantile  # noqa: E402
from infx.run.load.client import run_load  # noqa: E402
from infx.run.load.spec import LoadSpec, WindowRule  # noqa: E402
from infx.workload.random import TokenIds  # noqa: E402


def main() -> None:
    url, model, concurrency, requests, isl, osl, vocabulary = sys.argv[1:8]
    count = int(concurrency)
    source = Counted(TokenIds(int(vocabulary), first=10), int(isl), int(osl), seed=1, salt="bench", spread=False)
    source.share = int(requests) // count
    output = run_load(LoadSpec(url, model, count, WindowRule(duration_s=3600)), source)
    each, found = per_request(output.table), gaps(output.table)
    itl = found.gap_ms / found.tokens
    print(json.dumps({
        "requests": int(output.table.ok.sum()), "failed": int(output.table.failed.sum()),
        "ttft": np.percentile(each.ttft_ms, [50, 99]).tolist(), "ttft_mean": float(each.ttft_ms.mean()),
        "itl": [weighted_quantile(itl, found.tokens, q) for q in (0.5, 0.99)],
        "itl_mean": float(found.gap_ms.sum() / found.tokens.sum()),
        "rss": max(worker.max_rss_bytes for worker in output.health),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
