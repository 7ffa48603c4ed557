"""Replay in virtual time against a small engine of our own: lanes, spawn and join, pauses, hits by real tokens."""

from __future__ import annotations

import heapq
import itertools
import pickle
from collections import defaultdict

import pytest

from infx.workload.generator import CODING, QUICK, GeneratedSessions, fitted, generate, generated_source
from infx.workload.lanes import LaneSource
from infx.workload.random import TokenIds
from infx.workload.replay import AgenticSource, RecordedSessions, ReplayOptions
from infx.workload.session import Phase
from infx.workload.traces.model import ROOT, BlockTree, Scope, Session, Stream, Turn, within_context

IDS = TokenIds(5_000, excluded=range(100))


class Engine:
    """Infinite prefix cache over the tokens themselves; an answer takes a second a token."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.held: set[tuple[int, ...]] = set()

    def hits(self, prompt) -> int:
        prompt, count = tuple(prompt), 0
        while count + self.block < len(prompt) and prompt[: count + self.block] in self.held:
            count += self.block
        return count

    def hold(self, tokens) -> None:
        tokens = tuple(tokens)
        for end in range(self.block, len(tokens) + 1, self.block):
            self.held.add(tokens[:end])


def play(source, lanes, *, requests, block=16, live=False):
    """Run the lanes; returns one row a finished request: (sent, ended, request, hits)."""
    engine, order, rows, running = Engine(block), itertools.count(), [], 0
    events = []

    def post(now, dues):
        for due in dues:
            heapq.heappush(events, (now + due.delay_s, next(order), "send", due.request, now))

    for lane in range(lanes):
        post(0.0, source.start(lane))
    while events and len(rows) < requests:
        now, _, kind, request, since = heapq.heappop(events)
        if kind == "send":
            hits = engine.hits(request.prompt_ids)
            engine.hold(request.prompt_ids)
            running += 1
            heapq.heappush(events, (now + request.max_tokens, next(order), (now, hits), request, since))
            continue
        sent, hits = kind
        answer = [IDS.allowed[(request.session * 31 + request.turn * 7 + i) % 999] for i in range(request.max_tokens)]
        engine.hold([*request.prompt_ids, *answer[:-1]])
        rows.append((sent, now, request, hits))
        post(now, source.finished(request, answer if live and request.need_ids else None))
    return rows


def session(name="s", *, streams=None, turns=6, block=16, wait=2.0):
    tree = BlockTree()
    if streams is None:
        made = [
            Turn(tree.add(list(range(n + 2))), 16 * (n + 2) + 5, 3, wait if n else 0.0) for n in range(turns)
        ]
        streams = (Stream("main", tuple(made)),)
    return Session(name, block, streams, tree)


def options(**changes):
    return ReplayOptions(**{"seed": 1, "salt": "p", "warmup_turns": 0, **changes})


def replay(sessions, lanes=1, **changes):
    return AgenticSource(IDS, RecordedSessions(sessions, 1), lanes, options(**changes))


def test_source_is_a_lane_source_and_travels_to_workers():
    source = replay([session()], 2)
    assert isinstance(source, LaneSource)
    there = pickle.loads(pickle.dumps(source))
    assert there.start(1)[0].request == source.start(1)[0].request


def test_prompts_share_exactly_the_tokens_of_shared_blocks():
    source = replay([session()], start=(0.0, 0.0))
    first = source.start(0)[0].request
    second = source.finished(first, None)[0].request
    assert (first.prompt_tokens, second.prompt_tokens) == (37, 53)
    assert list(first.prompt_ids[:32]) == list(second.prompt_ids[:32])
    assert list(first.prompt_ids[32:37]) != list(second.prompt_ids[32:37])  # the unnamed end of a prompt is its own
    assert set(first.prompt_ids) <= set(IDS.allowed)
    assert (first.cached_tokens, second.cached_tokens) == (0, 32)


def test_partial_block_with_an_id_shares_its_part():
    tree = BlockTree()
    leaves = [tree.add(ids) for ids in ([1, 2], [1, 2], [1, 2, 3], [1, 2, 3])]
    turns = tuple(Turn(leaf, tokens, 2) for leaf, tokens in zip(leaves, (24, 24, 48, 50), strict=True))
    source = replay([Session("s", 16, (Stream("main", turns),), tree)], start=(0.0, 0.0), cache_block=4)
    first = source.start(0)[0].request
    second = source.finished(first, None)[0].request
    third = source.finished(second, None)[0].request
    assert list(first.prompt_ids) == list(second.prompt_ids) == list(third.prompt_ids[:24])
    fourth = source.finished(third, None)[0].request
    assert (second.cached_tokens, third.cached_tokens) == (20, 24)  # never the whole prompt
    assert fourth.cached_tokens == 48


def test_the_unnamed_end_of_a_prompt_is_shared_with_nobody_and_repeats_nothing():
    tree = BlockTree()
    leaf = tree.add([1])
    agent = Stream("agent", (Turn(leaf, 79, 1),), 0, 0)
    source = replay([Session("s", 16, (Stream("main", (Turn(leaf, 79, 1),) * 2), agent), tree)], start=(0.0, 0.0))
    first = source.start(0)[0].request
    others = [due.request for due in source.finished(first, None)]
    ends = [tuple(r.prompt_ids[at : at + 16]) for r in (first, *others) for at in (16, 32, 48, 64)]
    assert len(others) == 2 and len(set(ends)) == 12
    assert all(list(r.prompt_ids[:16]) == list(first.prompt_ids[:16]) for r in others)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("cache_block", [16, 64, 100, 128])
def test_cached_tokens_are_what_an_unbounded_cache_of_real_tokens_hits(live, cache_block):
    shape = fitted(QUICK, context_limit=1_500)
    made = [generate(shape, 5, n) for n in range(3)]
    source = replay(made, 2, live=live, cache_block=cache_block)
    rows = play(source, 2, requests=150, block=cache_block, live=live)
    assert [hits for *_, hits in rows] == [request.cached_tokens for _, _, request, _ in rows]
    assert sum(hits for *_, hits in rows) > 0.3 * sum(r.prompt_tokens for _, _, r, _ in rows)


def test_live_answers_stand_where_the_recorded_ones_did():
    source = replay([session(wait=0.0)], live=True, start=(0.0, 0.0))
    first = source.start(0)[0].request
    assert first.need_ids
    second = source.finished(first, [7, 8, 9])[0].request
    assert list(second.prompt_ids[:40]) == [*first.prompt_ids, 7, 8, 9]
    third = source.finished(second, [4, 5, 6])[0].request
    assert list(third.prompt_ids[:56]) == [*second.prompt_ids, 4, 5, 6]
    recorded = replay([session(wait=0.0)], start=(0.0, 0.0))
    again = recorded.finished(recorded.start(0)[0].request, [7, 8, 9])[0].request
    assert list(again.prompt_ids[37:40]) != [7, 8, 9] and not again.need_ids


def test_live_answers_are_found_again_after_the_conversation_left_them():
    tree = BlockTree()
    leaves = [tree.add(ids) for ids in ([1, 2], [1, 2, 3, 4], [9], [1, 2, 3, 4])]
    turns = tuple(Turn(leaf, tokens, 20) for leaf, tokens in zip(leaves, (40, 70, 30, 70), strict=True))
    source = replay([Session("s", 16, (Stream("main", turns),), tree)], live=True, start=(0.0, 0.0))
    sent = [source.start(0)[0].request]
    while len(sent) < 4:
        sent += [due.request for due in source.finished(sent[-1], range(200, 220))]
    assert list(sent[1].prompt_ids[40:60]) == list(range(200, 220))
    assert list(sent[3].prompt_ids[:64]) == list(sent[1].prompt_ids[:64])
    assert sent[3].cached_tokens == 64


def test_a_failed_live_turn_keeps_the_recorded_answer():
    source = replay([session(wait=0.0)], live=True, start=(0.0, 0.0))
    first = source.start(0)[0].request
    second = source.finished(first, None)[0].request
    assert list(second.prompt_ids[:37]) == list(first.prompt_ids)
    assert second.prompt_tokens == 53


def test_every_lane_has_a_live_session_all_the_time():
    source = generated_source(IDS, 4, options(), shape=QUICK, context_limit=4_096)
    rows = play(source, 4, requests=400)
    spans = defaultdict(list)
    for sent, ended, request, _ in rows:
        spans[request.lane].append((sent, ended))
    assert set(spans) == {0, 1, 2, 3}
    for lane, busy in spans.items():
        busy.sort()
        reach = 0.0
        for sent, ended in busy:
            assert sent - reach <= QUICK.pause_cap, lane
            reach = max(reach, ended)


def agents():
    """Turn 0 spawns two agents that turn 1 joins, and one in the background that nothing waits for."""
    tree = BlockTree()
    leaf = [tree.add([100 * s + n for n in range(2)]) for s in range(4)]
    main = tuple(Turn(leaf[0], 40, 10, 5.0 if n else 0.0) for n in range(3))
    def made(s, tokens):
        return (Turn(leaf[s], 40, tokens), Turn(leaf[s], 40, tokens, 1.0))

    return (
        Stream("main", main),
        Stream("quick", made(1, 5), 0, 0, 2.0, 1),
        Stream("slow", made(2, 50), 0, 0, 3.0, 1),
        Stream("background", made(3, 400), 0, 0, 4.0, None),
    ), tree


def test_spawn_and_join_are_respected():
    streams, tree = agents()
    one = Session("s", 16, streams, tree)
    rows = play(replay([one], start=(0.0, 0.0)), 1, requests=10)
    sent = {(r.session, r.stream, r.turn): (at, end) for at, end, r, _ in rows}
    assert sent[0, 0, 0] == (0.0, 10.0)
    assert sent[0, 1, 0][0] == 12.0 and sent[0, 1, 1] == (18.0, 23.0)
    assert sent[0, 2, 0][0] == 13.0 and sent[0, 2, 1][1] == 114.0
    assert sent[0, 0, 1][0] == 119.0  # 5 s after the slower of the joined agents
    assert sent[0, 3, 1] == (415.0, 815.0)  # nobody waited for it …
    assert sent[0, 0, 2] == (134.0, 144.0)
    assert sent[1, 0, 0][0] == 815.0  # … but the session is over with it


def test_entry_in_the_middle_skips_earlier_agents():
    streams, tree = agents()
    rows = play(replay([Session("s", 16, streams, tree)], start=(0.6, 0.6)), 1, requests=4)
    assert [(r.phase, r.stream, r.turn, r.session) for _, _, r, _ in rows][:3] == [
        (Phase.PRIMER, 0, 0, 0),
        (Phase.MAIN, 0, 1, 0),
        (Phase.MAIN, 0, 2, 0),
    ]


def test_primer_and_warm_up_turns_are_kept_out():
    source = replay([session(turns=12)], 3, warmup_turns=2)
    rows = play(source, 3, requests=60)
    for lane in range(3):
        mine = [r for _, _, r, _ in rows if r.lane == lane]
        assert [r.phase for r in mine[:4]] == [Phase.PRIMER, Phase.WARMUP, Phase.WARMUP, Phase.MAIN]
        assert all(r.phase is Phase.MAIN for r in mine[3:])
        assert mine[0].max_tokens == 1 and mine[1].turn == mine[0].turn + 1
        assert mine[1].cached_tokens == mine[0].prompt_tokens // 16 * 16


def test_start_positions_spread_over_the_middle_half():
    source = replay([session(turns=100)], 400)
    entries = [source.start(lane)[0].request.turn + 1 for lane in range(400)]
    assert min(entries) >= 25 and max(entries) < 75
    assert abs(sum(entries) / 400 - 49.5) < 3
    assert len(set(entries)) > 45


def test_no_pause_is_longer_than_the_cap():
    source = replay([session(wait=5_000.0)], idle_cap_s=300.0, start=(0.0, 0.0))
    rows = play(source, 1, requests=6)
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(rows)]
    assert gaps == [300.0] * 5


def test_recycled_session_shares_nothing_with_its_former_run():
    source = replay([session(turns=2)], start=(0.0, 0.0))
    rows = play(source, 1, requests=6)
    runs = defaultdict(list)
    for _, _, request, hits in rows:
        runs[request.session].append((request, hits))
    assert list(runs) == [0, 1, 2]
    firsts = [run[0] for run in runs.values()]
    assert [hits for _, hits in firsts] == [0, 0, 0]
    assert len({tuple(request.prompt_ids[:16]) for request, _ in firsts}) == 3


def test_lanes_beyond_the_sessions_play_copies_that_share_nothing():
    rows = play(replay([session(turns=2)], 5, start=(0.0, 0.0)), 5, requests=5)
    assert len({tuple(r.prompt_ids[:16]) for _, _, r, _ in rows}) == 5


def test_two_replays_are_equal_byte_for_byte_and_another_seed_is_not():
    def text(seed):
        source = generated_source(IDS, 3, options(seed=seed), shape=QUICK, context_limit=4_096)
        return b"".join(bytes(repr((a, b, r)), "ascii") for a, b, r, _ in play(source, 3, requests=90))

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_what_a_lane_sends_does_not_depend_on_other_lanes():
    both = play(generated_source(IDS, 2, options(), shape=QUICK, context_limit=4_096), 2, requests=80)
    alone = generated_source(IDS, 2, options(), shape=QUICK, context_limit=4_096)
    due = alone.start(1)
    mine = [r for _, _, r, _ in both if r.lane == 1 and not r.stream][:10]
    got = []
    while len(got) < 10:
        request = due.pop(0).request
        due += alone.finished(request, None)
        if not request.stream:
            got.append(request)
    assert got == mine


def test_global_scope_shares_across_sessions_within_a_round_only():
    tree = BlockTree()
    turns = [Turn(tree.add([0, 1]), 32, 1), Turn(tree.add([0, 2]), 32, 1, seen_blocks=1)]
    made = [Session(str(turn.leaf), 16, (Stream("main", (turn,)),), tree, Scope.GLOBAL) for turn in turns]
    rows = play(replay(made, 2), 2, requests=4)
    heads = [tuple(r.prompt_ids[:16]) for _, _, r, _ in rows]
    assert heads[0] == heads[1] and heads[2] == heads[3] and heads[0] != heads[2]
    assert sorted(r.cached_tokens for _, _, r, _ in rows) == [0, 0, 16, 16]


def test_sessions_beyond_the_context_are_dropped_whole_and_counted():
    short, long = session("short", turns=3), session("long", turns=9)
    kept, dropped = within_context([short, long, short], short.longest)
    assert ([s.id for s in kept], dropped) == (["short", "short"], 1)
    assert within_context([short], short.longest - 1) == ((), 1)


def test_each_round_plays_every_session_once_in_another_order():
    supply = RecordedSessions([session(str(n)) for n in range(20)], 3)
    rounds = [[supply.session(20 * r + n).id for n in range(20)] for r in range(3)]
    assert all(sorted(one) == sorted(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds}) == 3
    assert [supply.round(i) for i in (0, 19, 20)] == [0, 0, 1]


def test_sessions_that_share_blocks_keep_their_order():
    tree = BlockTree()
    turns = [Turn(tree.add([0, n]), 32, 1) for n in range(20)]
    made = [Session(str(n), 16, (Stream("main", (turn,)),), tree, Scope.GLOBAL) for n, turn in enumerate(turns)]
    supply = RecordedSessions(made, 3)
    assert [supply.session(n).id for n in range(40)] == [str(n) for n in range(20)] * 2


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="no session"):
        RecordedSessions([], 1)
    with pytest.raises(ValueError, match="0 lanes"):
        replay([session()], 0)
    with pytest.raises(ValueError, match="lane 1 of 1"):
        replay([session()]).start(1)
    source = replay([session(turns=1)])
    first = source.start(0)[0].request
    source.finished(first, None)
    with pytest.raises(ValueError, match="has ended before"):
        source.finished(first, None)


def test_generated_sessions_keep_to_their_shape():
    shape = fitted(QUICK, context_limit=1 << 20, prompt_cap=2_000, pause_cap=0.2)
    for index in range(60):
        made = GeneratedSessions(shape, 9).session(index)
        main = made.streams[0].turns
        assert shape.turns[0] <= len(main) <= shape.turns[1]
        for stream in made.streams:
            for turn in stream.turns:
                assert 64 <= turn.input_tokens <= 2_000
                assert 32 <= turn.output_tokens <= 128
                assert 0 <= turn.wait_s <= 0.2
                assert turn.leaf == ROOT or len(made.tree.path(turn.leaf)) == turn.input_tokens // 64
            if stream.parent is not None:
                assert stream.join == stream.after + 1 < len(main)
    assert sum(len(GeneratedSessions(shape, 9).session(n).streams) > 1 for n in range(60)) > 5


def test_generated_prompts_grow_until_they_are_compacted():
    made = generate(fitted(CODING, context_limit=200_000), 4, 0)
    paths = [made.tree.path(turn.leaf) for turn in made.streams[0].turns]
    kept = [len(set(a) & set(b)) == len(a) for a, b in itertools.pairwise(paths)]
    assert sum(kept) >= 0.9 * len(kept)
    assert made.longest <= 200_000


def test_context_without_room_is_refused():
    with pytest.raises(ValueError, match="no room"):
        fitted(QUICK, context_limit=80)
