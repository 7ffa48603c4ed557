"""A small trace replayed on a real vLLM: the engine's own counters hit what the trace says a cache can hit."""

from __future__ import annotations

import re
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

import infx.workload.traces
from infx.workload.random import TokenIds
from infx.workload.recorded import recorded_source
from infx.workload.replay import ReplayOptions
from infx.workload.traces.read import read

pytestmark = pytest.mark.timeout(400)
BLOCK = 32
SMALL = Path(infx.workload.traces.__file__).with_name("small.jsonl")


@pytest.fixture(scope="module")
def engine(cpu_engine, serving):
    arguments = ("--enable-prefix-caching", "--block-size", str(BLOCK))
    with serving(cpu_engine, cpu_engine.small, *arguments) as served:
        yield served


def counters(served) -> tuple[float, float]:
    """Prompt tokens queried of the prefix cache, and hit in it."""
    page = served.get("/metrics")
    found = dict.fromkeys(("queries", "hits"), 0.0)
    for name in found:
        for value in re.findall(rf"^vllm:prefix_cache_{name}_total{{.*}} (\S+)$", page, re.MULTILINE):
            found[name] += float(value)
    return found["queries"], found["hits"]


def replay(served, lanes: int, requests: int, salt: str, live: bool):
    """Play the shipped trace without pauses until ``requests`` were sent; every request that was sent."""
    with SMALL.open("rb") as stream:
        corpus = read([("small.jsonl", stream)], "small").corpus
    options = ReplayOptions(5, salt, warmup_turns=1, idle_cap_s=0.0, live=live, cache_block=BLOCK)
    source = recorded_source(TokenIds(2_000, first=100), corpus, lanes, options, context_limit=4_096).source
    sent, guard = [], threading.Lock()

    def play(request):
        body = {
            "prompt": list(request.prompt_ids), "max_tokens": request.max_tokens, "ignore_eos": True,
            "temperature": 0.0, "return_token_ids": request.need_ids, "stream_options": {"include_usage": True},
        }
        events = served.stream("/v1/completions", body)
        usage = events[-1]["usage"]
        assert usage["prompt_tokens"] == request.prompt_tokens
        assert usage["completion_tokens"] == request.max_tokens
        ids = [i for e in events for c in e["choices"] for i in c.get("token_ids") or ()]
        with guard:
            return source.finished(request, ids or None)

    with ThreadPoolExecutor(max_workers=4 * lanes) as pool:
        dues = [due for lane in range(lanes) for due in source.start(lane)]
        running = set()
        while dues or running:
            for due in dues:
                if len(sent) < requests:
                    sent.append(due.request)
                    running.add(pool.submit(play, due.request))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            dues = [due for future in done for due in future.result()]
    return sent


@pytest.mark.parametrize("live", [False, True], ids=["recorded", "live"])
def test_hits_are_within_one_percent_of_theory(engine, live):
    before = counters(engine)
    sent = replay(engine, lanes=4, requests=120, salt=f"run-{live}", live=live)
    queried, hit = (after - b for after, b in zip(counters(engine), before, strict=True))
    prompt, theory = sum(r.prompt_tokens for r in sent), sum(r.cached_tokens for r in sent)
    print(f"\n{len(sent)} requests, {prompt} prompt tokens, theory {theory / prompt:.4%}, vLLM {hit / queried:.4%}")
    assert any(r.stream for r in sent)
    assert queried == prompt
    assert theory / prompt > 0.6
    assert abs(hit - theory) <= 0.01 * theory
