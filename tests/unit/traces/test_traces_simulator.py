"""Replayed sessions against the simulator's scheduler in virtual time: hit rates, lanes, equal repeats."""

from __future__ import annotations

import heapq
import itertools

import pytest

from infx.simulator.argv import parse
from infx.simulator.deployment import resolve
from infx.simulator.facts import load_facts
from infx.simulator.kvcache import hash_blocks, token_bytes
from infx.simulator.sequence import Sequence, output_token
from infx.sources.tree import Packaged
from infx.workload.generator import CODING, QUICK, generated_source
from infx.workload.random import TokenIds
from infx.workload.replay import ReplayOptions

FLASH = "deepseek-ai/DeepSeek-V4.1-Flash"
BLOCK = 128
FLAGS = ["--block-size", str(BLOCK), "--gpu-memory-utilization", "0.9", "--max-num-batched-tokens", "16384"]


@pytest.fixture(scope="module")
def deployment():
    catalog, constants = load_facts(Packaged())
    words = ["serve", FLASH, *FLAGS, "-tp", "4", "--no-swa-bounded-replay"]
    return resolve(parse(words), {"INFX_SIM_HARDWARE": "mi355x"}, catalog, constants)


def play(scheduler, source, lanes, requests):
    """Closed loop in virtual time; (request, sent, ended, cached tokens) of each finished request."""
    rows, queue, numbers, live = [], [], itertools.count(), {}

    def post(now, dues):
        for due in dues:
            heapq.heappush(queue, (now + due.delay_s, next(numbers), due.request))

    for lane in range(lanes):
        post(0.0, source.start(lane))
    now = 0.0
    while len(rows) < requests:
        if not scheduler.busy:
            now = max(now, queue[0][0])
        while queue and queue[0][0] <= now:
            at, number, request = heapq.heappop(queue)
            data = token_bytes(request.prompt_ids)
            hashes = hash_blocks(data, BLOCK)
            tail = data[4 * BLOCK * len(hashes) :]
            lengths = (request.prompt_tokens, request.max_tokens)
            sequence = Sequence(number, *lengths, at, hashes=hashes, tail=tail, key=number)
            live[number] = request
            scheduler.add(sequence)
        result = scheduler.step(now)
        now = result.ended
        for sequence in result.finished:
            request = live.pop(sequence.id)
            rows.append((request, sequence.arrival, now, sequence.cached_tokens))
            answer = [output_token(sequence.key, n) for n in range(sequence.generated)]
            post(now, source.finished(request, answer if request.need_ids else None))
    return rows


def source(lanes, shape, *, live=False, seed=3):
    options = ReplayOptions(seed, "point", warmup_turns=2, live=live, cache_block=BLOCK)
    return generated_source(TokenIds(129_280, range(10)), lanes, options, shape=shape, context_limit=1 << 20)


def rates(rows):
    prompt = sum(r.prompt_tokens for r, *_ in rows)
    return sum(r.cached_tokens for r, *_ in rows) / prompt, sum(cached for *_, cached in rows) / prompt


@pytest.mark.parametrize("live", [False, True], ids=["recorded", "live"])
@pytest.mark.parametrize("lanes, requests", [(1, 60), (8, 240), (32, 500)])
def test_hit_rate_is_within_a_point_of_theory_while_the_kv_fits(deployment, lanes, requests, live):
    rows = play(deployment.scheduler(), source(lanes, QUICK, live=live), lanes, requests)
    theory, simulated = rates(rows)
    print(f"\n{lanes} lanes: theory {theory:.3%}, simulated {simulated:.3%}")
    assert theory > 0.6
    assert abs(theory - simulated) < 0.01


def test_long_sessions_hit_as_theory_says(deployment):
    rows = play(deployment.scheduler(), source(2, CODING), 2, 60)
    theory, simulated = rates(rows)
    assert theory > 0.7
    assert abs(theory - simulated) < 0.01


def test_two_replays_are_equal_request_by_request(deployment):
    first = play(deployment.scheduler(), source(4, QUICK), 4, 120)
    again = play(deployment.scheduler(), source(4, QUICK), 4, 120)
    assert first == again
    assert play(deployment.scheduler(), source(4, QUICK, seed=4), 4, 120) != first
