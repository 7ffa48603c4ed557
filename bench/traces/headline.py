"""The headline recipe's curve in virtual time: every point for its full hour, without HTTP and without waiting.

    python bench/traces/headline.py POINT... [--arm no-mono] [--corpus DIR] [--seconds S] [--idle-cap S] [--out F]
    python bench/traces/headline.py --table rows.jsonl

POINT is tp2/c8 and the like (`all`: the whole ladder). The plan is the recipe's own (not --quick): its argv and
environment go through the simulator's command line, its sessions through the replay that sweeps use, its scheduler
through infx.simulator. Without --corpus the corpus's generator plays. Requests are measured as docs/methodology.md
says: the window opens when every lane has sent its first measured turn, and lasts as long as the recipe's.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from infx.plan.load import plans_for  # noqa: E402
from infx.predict.steptime import NO_SAVING  # noqa: E402
from infx.schema.plan import Plan, Point  # noqa: E402
from infx.simulator.argv import parse  # noqa: E402
from infx.simulator.deployment import Deployment, resolve  # noqa: E402
from infx.simulator.facts import load_facts  # noqa: E402
from infx.simulator.kvcache import hash_blocks, token_bytes  # noqa: E402
from infx.simulator.sequence import Sequence  # noqa: E402
from infx.sources.traces import trace_files  # noqa: E402
from infx.sources.tree import WorkingTree  # noqa: E402
from infx.workload.generator import generated_source  # noqa: E402
from infx.workload.random import TokenIds  # noqa: E402
from infx.workload.recorded import recorded_source  # noqa: E402
from infx.workload.replay import ReplayOptions  # noqa: E402
from infx.workload.session import Phase, Request  # noqa: E402
from infx.workload.traces.read import read  # noqa: E402

KEY = "dsv41flash-fp4-mi355x-vllm-agentic-dspark"


def deployed(plan: Plan, point: Point) -> Deployment:
    """The simulated engine of a point, from the recipe's argv and environment."""
    server = plan.servers[point.server]
    env = {**server.env, "INFX_SIM_HARDWARE": plan.hardware, "INFX_SIM_IMAGE": server.image}
    return resolve(parse(server.argv), env, *load_facts(WorkingTree(ROOT)))


def source_of(plan: Plan, point: Point, corpus: Path | None, block: int, idle_cap: float | None = None) -> Any:
    """The point's lanes: of the generator, or of the trace files in a folder; ``idle_cap`` replaces the recipe's."""
    low, high = plan.token_ids
    ids = TokenIds(high + 1, first=low)
    work = point.workload
    cap = work.idle_cap_s if idle_cap is None else idle_cap
    options = ReplayOptions(seed=20261201, salt=point.key.partition("/")[2], warmup_turns=work.warmup_turns,
                            idle_cap_s=cap, cache_block=block)
    if corpus is None:
        return generated_source(ids, point.concurrency, options, context_limit=point.context_limit,
                                prompt_cap=None, pause_cap=work.idle_cap_s)
    files = [(str(path), path.open("rb")) for path in trace_files(corpus)]
    found = read(files, corpus.name, "")
    return recorded_source(ids, found.corpus, point.concurrency, options, context_limit=point.context_limit).source


class Play:
    """One point in virtual time: requests as they end, steps as they come."""

    def __init__(self, deployment: Deployment, source: Any, lanes: int) -> None:
        self.scheduler = deployment.scheduler()
        self.block = deployment.scheduler().cache.block_size
        self.source = source
        self.queue: list[tuple[float, int, Request]] = []
        self.numbers = itertools.count()
        self.live: dict[int, Request] = {}
        self.rows: list[tuple] = []
        self.steps: list[tuple] = []
        self.waiting = set(range(lanes))
        self.opened: float | None = None
        for lane in range(lanes):
            self.post(0.0, source.start(lane))

    def post(self, now: float, dues: list) -> None:
        for due in dues:
            heapq.heappush(self.queue, (now + due.delay_s, next(self.numbers), due.request))

    def admit(self, now: float) -> None:
        while self.queue and self.queue[0][0] <= now:
            at, number, request = heapq.heappop(self.queue)
            data = token_bytes(request.prompt_ids)
            hashes = hash_blocks(data, self.block)
            sequence = Sequence(number, request.prompt_tokens, request.max_tokens, at, hashes=hashes,
                                tail=data[4 * self.block * len(hashes):], key=number)
            request.prompt_ids = None
            self.live[number] = request
            self.scheduler.add(sequence)
            if request.phase is Phase.MAIN:
                self.waiting.discard(request.lane)
                if not self.waiting and self.opened is None:
                    self.opened = at

    def run(self, seconds: float) -> None:
        """Until ``seconds`` after the window opened; requests in flight then are cut."""
        now = 0.0
        while self.opened is None or now < self.opened + seconds:
            if not self.scheduler.busy:
                now = max(now, self.queue[0][0])
            self.admit(now)
            result = self.scheduler.step(now)
            now = result.ended
            shape = result.shape
            alone = self.scheduler.timer.seconds(shape, NO_SAVING)
            self.steps.append((result.started, now, sum(o.tokens for o in result.outputs), shape.decode_rows,
                               shape.prompt_tokens, any("mono" in name for name in result.engaged), alone,
                               result.kv_usage, result.preempted, result.running))
            for sequence in result.finished:
                request = self.live.pop(sequence.id)
                self.rows.append((sequence.arrival, sequence.first_token_at, now, sequence.prompt_tokens,
                                  sequence.generated, sequence.cached_tokens, request.cached_tokens,
                                  request.phase is Phase.MAIN))
                self.post(now, self.source.finished(request, None))


def figures(play: Play, seconds: float, gpus: int) -> dict[str, float]:
    """What the window says, a figure a name."""
    rows = np.array(play.rows, dtype=float)
    steps = np.array(play.steps, dtype=float)
    opened, closed = play.opened, play.opened + seconds
    sent, first, last, prompt, output, cached, theory, main = rows.T
    began, ended, tokens, decode, prefill, mono, alone, kv, preempted, running = steps.T
    measured = (main == 1) & (sent >= opened) & (sent < closed)
    arrived = prompt[(first >= opened) & (first < closed)].sum()
    inside = (ended >= opened) & (ended < closed)
    made = tokens[inside].sum()
    tpot = ((last - first) / np.maximum(output - 1, 1))[measured & (output > 1)]
    pure = inside & (prefill == 0) & (decode > 0)
    took = (ended - began)[inside]
    saved = np.where(mono == 1, alone - (ended - began), 0.0)[inside].sum()
    return {
        "requests": int(measured.sum()), "total-per-gpu": (arrived + made) / seconds / gpus,
        "output-per-gpu": made / seconds / gpus,
        "interactivity-median": 1 / np.median(tpot), "interactivity-p90-tpot": 1 / np.quantile(tpot, 0.9),
        "ttft-median": float(np.median((first - sent)[measured])),
        "hit-theory": theory[measured].sum() / prompt[measured].sum(),
        "hit-achieved": cached[measured].sum() / prompt[measured].sum(),
        "kv-peak": float(kv[inside].max()), "preemptions": int(preempted[inside].sum()),
        "running-mean": float((running[inside] * took).sum() / took.sum()),
        "steps": int(inside.sum()), "busy-share": took.sum() / seconds,
        "pure-share": float(took[pure[inside]].sum() / took.sum()),
        "mono-share-of-pure": float(mono[pure].mean()) if pure.any() else 0.0,
        "mono-share-of-small-pure": float(mono[pure & (decode <= 48)].mean()) if (pure & (decode <= 48)).any() else 0.0,
        "mono-outside": int(mono[(decode > 48) | (prefill > 0)].sum()),
        "small-pure-share": float((pure & (decode <= 48)).sum() / inside.sum()),
        "saved-s": float(saved), "other-steps-differ": int((np.abs(ended - began - alone)[mono == 0] > 1e-9).sum()),
        "virtual-s": float(ended[-1]), "opened-s": opened,
    }


def table(path: Path) -> None:
    """The rows as Markdown, arms side by side."""
    rows = {(r["arm"], r["point"]): r for r in map(json.loads, path.read_text().splitlines())}
    print("| point | arm | total tok/s/GPU | output tok/s/GPU | interactivity, median | at p90 TPOT | TTFT, median s "
          "| hits: theory | achieved | running | KV peak | steps ≤ 48 rows, no prefill | of them mono | mono elsewhere "
          "| s saved of the hour |\n" + "|---" * 15 + "|")
    for (arm, point), r in sorted(rows.items(), key=lambda item: (item[0][1].split("/")[0],
                                                                  int(item[0][1].split("/c")[1]), item[0][0])):
        print(f"| {point} | {arm} | {r['total-per-gpu']:,.0f} | {r['output-per-gpu']:,.0f} "
              f"| {r['interactivity-median']:.0f} | {r['interactivity-p90-tpot']:.1f} | {r['ttft-median']:.2f} "
              f"| {r['hit-theory']:.2%} | {r['hit-achieved']:.2%} | {r['running-mean']:.1f} | {r['kv-peak']:.0%} "
              f"| {r['small-pure-share']:.1%} | {r['mono-share-of-small-pure']:.1%} | {r['mono-outside']} "
              f"| {r['saved-s']:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", nargs="*")
    parser.add_argument("--arm", default="base")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--idle-cap", type=float, help="Longest pause, seconds; 0: every lane always busy.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    if asked.table:
        table(asked.table)
        return
    (plan,) = plans_for(WorkingTree(ROOT), [KEY], arms=(asked.arm,))
    for point in plan.points:
        short = point.key.partition("/")[2]
        if short not in asked.points and asked.points != ["all"]:
            continue
        began = time.perf_counter()
        deployment = deployed(plan, point)
        block = deployment.scheduler().cache.block_size
        seconds = asked.seconds or point.workload.duration_s
        play = Play(deployment, source_of(plan, point, asked.corpus, block, asked.idle_cap), point.concurrency)
        play.run(seconds)
        row = {"point": short, "arm": asked.arm, "corpus": str(asked.corpus.name) if asked.corpus else "generator",
               "seconds": seconds, "idle-cap-s": asked.idle_cap, **figures(play, seconds, point.parallel.gpus),
               "wall-s": round(time.perf_counter() - began, 1)}
        text = json.dumps(row)
        print(text, flush=True)
        if asked.out:
            with asked.out.open("a") as stream:
                stream.write(text + "\n")


if __name__ == "__main__":
    main()
