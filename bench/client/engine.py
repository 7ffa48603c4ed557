"""Clients against a real vLLM: each one's mean TTFT and ITL beside the engine's own histogram means, interleaved.

    python bench/client/engine.py --model DIR --vllm ENV [--guidellm ENV] [--aiperf ENV] [--rounds 3]
        [--concurrency 4] [--requests 40] [--isl 256] [--osl 64] [--cores 0] [--dtype float32]
    python bench/client/engine.py --url URL --served NAME --model DIR --vllm ENV …

The engine's clock starts when a request is parsed and stops when its token is made, so a client's mean must not be
below it. On a machine whose cores the engine shares with the client both wait; ``/proc/stat`` says how busy all cores
were in each run. The engine computes on the cores that ``--cores`` names (``all``: on every one, where its spinning
threads, its server and the client then wait for each other): what is off less on fewer was waiting for cores. Without
AVX-512 a CPU is ten times slower in bfloat16 than in float32. With ``--url`` the engine is one that runs already.
``--concurrency`` takes several numbers, ``--requests`` is for each stream then.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from peers import Client, Figures, Job, aiperf, guidellm, infx, vllm_bench  # noqa: E402

from infx.run.telemetry.scrape import fetch, histogram_mean, parse  # noqa: E402

PORT = 18_412
HISTOGRAMS = {"ttft": "vllm:time_to_first_token_seconds", "itl": "vllm:inter_token_latency_seconds"}


@contextmanager
def running(url: str) -> Iterator[str]:
    """An engine of somebody else's."""
    yield url


@contextmanager
def engine(environment: Path, model: Path, cores: str, dtype: str) -> Iterator[str]:
    """A real vLLM on CPU that computes on ``cores``, ready to answer; yields its base URL."""
    url = f"http://127.0.0.1:{PORT}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [str(environment / "bin/vllm"), "serve", str(model), "--served-model-name", "m", "--port", str(PORT),
             "--enforce-eager", "--max-num-batched-tokens", "512", "--max-num-seqs", "16",
             "--dtype", dtype],
            stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
                 "VLLM_CPU_OMP_THREADS_BIND": "auto" if cores == "all" else cores},
        )  # fmt: skip
        try:
            wait_ready(process, url)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def wait_ready(process: subprocess.Popen, url: str) -> None:
    for _ in range(240):
        if process.poll() is not None:
            raise SystemExit(f"vLLM ended with {process.returncode} before it was ready")
        try:
            urllib.request.urlopen(f"{url}/health", timeout=2).close()
            return
        except (OSError, urllib.error.URLError):
            time.sleep(1)
    raise SystemExit("vLLM was not ready within four minutes")


def busy() -> tuple[float, float]:
    """Busy and total CPU seconds of all cores since boot."""
    with open("/proc/stat") as file:
        fields = [int(word) / os.sysconf("SC_CLK_TCK") for word in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def run_one(client: Client, job: Job) -> tuple[Figures, dict[str, float], float] | str:
    """A client's figures, the engine's histogram means of the same time in ms, and the share of busy CPU."""
    environment = {key: value for key, value in os.environ.items() if key not in client.drop}
    if not client.drop:
        environment |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    before, busy_before = parse(fetch(job.url).text), busy()
    done = subprocess.run(client.command(job), capture_output=True, text=True, env=environment, timeout=300,
                          cwd=job.out)  # fmt: skip
    after, busy_after = parse(fetch(job.url).text), busy()
    if done.returncode:
        return f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}"
    means = {key: (histogram_mean(before, after, name).value or 0.0) * 1000 for key, name in HISTOGRAMS.items()}
    share = (busy_after[0] - busy_before[0]) / (busy_after[1] - busy_before[1])
    try:
        return client.read(job, done.stdout), means, share
    except (OSError, KeyError, ValueError, IndexError) as error:
        return f"no figures: {error!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--vllm", type=Path, required=True)
    for name, default in (("rounds", 3), ("requests", 10), ("isl", 256), ("osl", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for peer in ("guidellm", "aiperf"):
        parser.add_argument(f"--{peer}", type=Path)
    parser.add_argument("--concurrency", default="4")
    parser.add_argument("--cores", default="0")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--url")
    parser.add_argument("--served", default="m")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stop the engine too
    clients = [infx(), vllm_bench(options.vllm.absolute())]
    clients += [make(getattr(options, name).absolute()) for name, make in (("guidellm", guidellm), ("aiperf", aiperf))
                if getattr(options, name)]
    model = options.model.absolute()
    levels = [int(word) for word in options.concurrency.split(",")]
    found: dict[tuple[int, str], list] = {(level, client.name): [] for level in levels for client in clients}
    place = running(options.url) if options.url else engine(options.vllm.absolute(), model, options.cores,
                                                            options.dtype)  # fmt: skip
    with place as url:
        for number in range(options.rounds):
            for level in levels:
                for client in clients:
                    with tempfile.TemporaryDirectory() as folder:
                        job = Job(url, options.served, str(model), level, options.requests * level, options.isl,
                                  options.osl, 4000 - number, Path(folder))  # fmt: skip
                        found[level, client.name].append(run_one(client, job))
                    print(level, client.name, found[level, client.name][-1], file=sys.stderr, flush=True)
    print("\n".join(table(found)))


def table(found: dict[tuple[int, str], list]) -> list[str]:
    """Markdown lines: medians over the rounds."""
    lines = ["| C | client | TTFT mean, ms | engine's | off (lowest) | ITL mean, ms | engine's | off (lowest) | "
             "CPU busy |", "|" + "---|" * 9]  # fmt: skip
    middle = statistics.median
    for (level, name), runs in found.items():
        good = [run for run in runs if not isinstance(run, str)]
        if not good:
            lines.append(f"| {level} | {name} | {runs[-1]} |" + " |" * 6)
            continue
        cells = []
        for key, digits in (("ttft", 1), ("itl", 2)):
            mine, own = [getattr(run[0], f"{key}_mean") for run in good], [run[1][key] for run in good]
            off = [a - b for a, b in zip(mine, own, strict=True)]
            cells.append(f"{middle(mine):.{digits}f} | {middle(own):.{digits}f} | "
                         f"{middle(off):+.{digits}f} ({min(off):+.{digits}f})")  # fmt: skip
        lines.append(f"| {level} | {name} | {' | '.join(cells)} | {middle(run[2] for run in good):.0%} |")
    return lines


if __name__ == "__main__":
    main()
