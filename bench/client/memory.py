"""Peak memory of all client processes for 100,000 requests of 200 reads over real loopback, from load to file.

    python bench/client/memory.py [--requests 100000] [--osl 200] [--concurrency 500] [--tick-ms 10]

The null server (infx.run.selfbench.null_server, a process of its own that is not counted) answers; as many load
workers as a sweep would start share the lanes. The resident memory of this process and of its workers is summed ten
times a second (pages that they share count in each). After the load: table, summary, file, as at the end of a point.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
sys.path[:0] = [str(HERE), str(ROOT)]
# Load workers unpickle Counted.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))

from counted import Counted  # noqa: E402

from infx.measure.summary import summarise  # noqa: E402
from infx.measure.window import Span  # noqa: E402
from infx.run.load.client import run_load, workers_for  # noqa: E402
from infx.run.load.spec import LoadSpec, WindowRule  # noqa: E402
from infx.run.selfbench.bench import null_server  # noqa: E402
from infx.workload.random import TokenIds  # noqa: E402


class MemoryWatch(threading.Thread):
    """The peak of the sum of the resident memory of this process and of its children, the null server left out."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.left_out = set(children())
        self.peak = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.1):
            found = [resident(pid) for pid in (os.getpid(), *(set(children()) - self.left_out))]
            self.peak = max(self.peak, sum(found))

    def so_far(self) -> str:
        return f"peak of all processes {self.peak / 2**20:.0f} MB, now {resident(os.getpid()) / 2**20:.0f} MB here"


def children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]


def resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("requests", 100_000), ("osl", 200), ("concurrency", 500)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--tick-ms", type=float, default=10.0)
    options = parser.parse_args()
    source = Counted(TokenIds(30_000), 128, options.osl, seed=1, salt="memory", spread=False)
    source.share = -(-options.requests // options.concurrency)
    with null_server("--tick-ms", str(options.tick_ms), "--first-ms", str(options.tick_ms)) as url:
        watch = MemoryWatch()
        watch.start()
        began = time.perf_counter()
        output = run_load(LoadSpec(url, "null", options.concurrency, WindowRule(duration_s=36_000)), source)
        table = output.table
        took, workers = time.perf_counter() - began, workers_for(options.concurrency)
        print(f"{int(table.ok.sum()):,} of {len(table):,} requests, {len(table.read_ns):,} reads, {workers} workers, "
              f"{took:.0f} s: {watch.so_far()}", flush=True)  # fmt: skip
        print("workers' own peaks: " + ", ".join(f"{one.max_rss_bytes / 2**20:.0f} MB" for one in output.health))
        summarise(table, Span(1, int(table["end_ns"].max())), gpus=1, concurrency=options.concurrency)
        print(f"summarised: {watch.so_far()}", flush=True)
        size = len(table.to_bytes())
        print(f"file of {size / 1e6:.0f} MB: {watch.so_far()}", flush=True)
        watch.ended.set()


if __name__ == "__main__":
    main()
