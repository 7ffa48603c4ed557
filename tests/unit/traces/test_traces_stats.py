"""Statistics of traces against counting by hand and a plain LRU."""

from __future__ import annotations

import json
import random
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.findings import Severity
from infx.workload.random import TokenIds
from infx.workload.recorded import recorded_source
from infx.workload.replay import ReplayOptions
from infx.workload.traces.model import ROOT, BlockTree, Corpus, Scope, Session, Stream, Turn, common_length
from infx.workload.traces.stats import CacheProfile, TraceStats


def plain_lru(paths, size):
    """Blocks answered by an LRU of ``size`` blocks that drops the deepest of equally old blocks first."""
    cache, hits = OrderedDict(), 0
    for path in paths:
        for node in path:
            if node not in cache:
                break
            hits += 1
        for node in reversed(path):  # the first block is the last to be used
            cache.pop(node, None)
            cache[node] = True
        while len(cache) > size:
            cache.popitem(last=False)
    return hits


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_hits_at_every_size_are_those_of_a_plain_lru(seed, count):
    source = random.Random(seed)
    tree, leaves = BlockTree(), []
    for _ in range(count):
        base = tree.path(source.choice(leaves)) if leaves and source.random() < 0.8 else []
        ids = [tree.block(n) for n in base[: source.randint(0, len(base))]]
        leaves.append(tree.add(ids + [source.randint(0, 3) for _ in range(source.randint(1, 6))]))
    paths = [tree.path(leaf) for leaf in leaves]
    profile = CacheProfile(10)
    for path in paths:
        profile.serve(path, 10 * len(path) + 5)
    for size in (1, 2, 3, 5, 8, 13, 21, 1000):
        assert profile.hit_tokens(size) == 10 * plain_lru(paths, size), size
    assert profile.hit_tokens() == 10 * plain_lru(paths, 10**9)


def test_the_last_token_of_a_prompt_is_never_a_hit():
    profile = CacheProfile(10)
    assert profile.serve([0, 1], 20) == 0
    assert profile.serve([0, 1], 20) == 10
    assert profile.serve([0, 1], 21) == 20


def session(name, turns, tree, scope=Scope.LOCAL, start=0.0):
    return Session(name, 10, (Stream("main", tuple(turns)),), tree, scope, start)


def test_numbers_of_a_small_corpus_by_hand():
    tree = BlockTree()
    turns = [Turn(tree.add([1, 2]), 25, 3), Turn(tree.add([1, 2, 3]), 35, 5, 7.0, 20.0)]
    gathered = TraceStats()
    gathered.add(session("a", turns, tree))
    gathered.finish()
    told = gathered.as_dict()
    assert (told["sessions"], told["requests"], told["prompt-tokens"], told["output-tokens"]) == (1, 2, 60, 8)
    assert told["distinct-blocks"] == 3
    assert told["hit-rate"]["unbounded"] == 20 / 60
    assert told["quantiles"]["new-tokens"]["p100"] == 25 and told["quantiles"]["new-tokens"]["p0"] == 15
    assert told["quantiles"]["pause-s"] == {"p0": 7.0, "p10": 7.0, "p25": 7.0, "p50": 7.0, "p75": 7.0, "p90": 7.0,
                                            "p99": 7.0, "p100": 7.0, "mean": 7.0, "n": 1}
    assert told["quantiles"]["recorded-s"]["p50"] == 20.0
    json.dumps(told)


def test_equal_ids_of_two_local_sessions_share_nothing_and_of_global_ones_do():
    for scope, rate in ((Scope.LOCAL, 0.0), (Scope.GLOBAL, 0.4)):
        shared = BlockTree()
        gathered = TraceStats()
        for n in range(2):
            tree = shared if scope is Scope.GLOBAL else BlockTree()
            gathered.add(session(str(n), [Turn(tree.add([1, 2]), 25, 1)], tree, scope, 5.0 - n))
        gathered.finish()
        assert gathered.hit_rate() == rate


def test_sessions_of_global_scope_are_served_by_their_start():
    tree, gathered = BlockTree(), TraceStats()
    gathered.add(session("late", [Turn(tree.add([1, 2]), 25, 1)], tree, Scope.GLOBAL, 5.0))
    gathered.add(session("early", [Turn(tree.add([1, 2, 3]), 35, 1)], tree, Scope.GLOBAL, 4.0))
    gathered.finish()
    assert sorted(gathered.columns["new-tokens"]) == [5, 35]


def test_requests_of_sub_agents_are_served_in_recorded_order():
    tree = BlockTree()
    main = (Turn(tree.add([1]), 15, 1), Turn(tree.add([1, 2, 3]), 35, 1, 0.0, 30.0))
    agent = (Turn(tree.add([1, 2]), 25, 1, 0.0, 10.0),)
    gathered = TraceStats()
    gathered.add(Session("a", 10, (Stream("main", main), Stream("agent", agent, 0, 0, 0.0, 1)), tree))
    assert gathered.hit_rate() == (10 + 20) / 75
    assert gathered.as_dict()["sub-agents"] == {"joined": 1, "background": 0}


def test_without_blocks_the_hit_rate_is_unknown():
    gathered = TraceStats()
    gathered.add(session("a", [Turn(ROOT, 500, 1)], BlockTree()))
    gathered.finish()
    assert gathered.hit_rate() is None and gathered.hit_rates() == []


@given(st.lists(st.integers(0, 1), max_size=40), st.lists(st.integers(0, 1), max_size=40))
def test_common_length(first, second):
    expected = 0
    while expected < min(len(first), len(second)) and first[expected] == second[expected]:
        expected += 1
    assert common_length(first, second) == expected


def corpus(*lengths):
    tree = BlockTree()
    made = [session(f"s{n}", [Turn(tree.add([n]), length, 4)], tree) for n, length in enumerate(lengths)]
    return Corpus("c", tuple(made))


@pytest.mark.parametrize("limit, kept, dropped", [(100, 3, 0), (24, 2, 1), (19, 1, 2)])
def test_sessions_beyond_the_context_are_dropped_and_counted(limit, kept, dropped):
    options = ReplayOptions(1, "s")
    result = recorded_source(TokenIds(1000), corpus(15, 20, 25), 2, options, context_limit=limit)
    assert (result.kept, result.dropped) == (kept, dropped)
    assert result.source is not None
    warned = [(f.code, f.severity) for f in result.findings]
    assert warned == ([("T-012", Severity.WARNING)] if kept < 2 else [])


def test_a_corpus_all_beyond_the_context_is_an_error():
    result = recorded_source(TokenIds(1000), corpus(15, 20), 2, ReplayOptions(1, "s"), context_limit=10)
    assert result.source is None and [f.code for f in result.findings] == ["T-013"]
    assert "all 2 sessions" in result.findings[0].message
