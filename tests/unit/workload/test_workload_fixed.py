"""Random prompts of fixed length: deterministic by seed and salt, independent by lane, spread over the vocabulary."""

import math
import pickle
from collections import Counter

import pytest

from infx.workload.lanes import FixedLength, LaneSource
from infx.workload.random import TokenIds
from infx.workload.session import Phase

IDS = TokenIds(1000, excluded=range(990, 1000), first=5)


def source(salt: str = "a", **more) -> FixedLength:
    return FixedLength(IDS, more.pop("isl", 200), more.pop("osl", 50), seed=more.pop("seed", 1), salt=salt, **more)


def play(made: FixedLength, lane: int, turns: int) -> list:
    requests = [made.start(lane)[0].request]
    while len(requests) < turns:
        made.prepare(lane, requests[-1])
        [due] = made.finished(requests[-1], None)
        assert due.delay_s == 0
        requests.append(due.request)
    return requests


def test_it_keeps_the_contract() -> None:
    assert isinstance(source(), LaneSource)
    assert play(pickle.loads(pickle.dumps(source())), 3, 4) == play(source(), 3, 4)


def test_lanes_do_not_depend_on_each_other() -> None:
    one, many = source(), source()
    for lane in range(8):
        play(many, lane, 3)
    assert play(one, 5, 3) == play(source(), 5, 3)
    assert [r.prompt_ids for r in play(many, 9, 2)] == [r.prompt_ids for r in play(one, 9, 2)]


@pytest.mark.parametrize("change", [{"salt": "b"}, {"seed": 2}])
def test_a_fresh_salt_or_seed_shares_no_prefix(change: dict) -> None:  # P21
    mine, other = play(source(), 0, 5), play(source(**{"salt": "a", **change}), 0, 5)
    for a in mine:
        for b in other:
            assert list(a.prompt_ids[:4]) != list(b.prompt_ids[:4])


def test_no_prompt_repeats_within_a_run() -> None:  # P20
    made = source(warmup_per_lane=1)
    prompts = [tuple(r.prompt_ids[:16]) for lane in range(16) for r in play(made, lane, 10)]
    assert len(set(prompts)) == len(prompts)


def test_ids_are_uniform_independent_and_allowed() -> None:  # P22
    prompt = play(source(isl=50_000), 0, 1)[0].prompt_ids
    counts = Counter(prompt)
    assert min(prompt) >= 5
    assert max(prompt) < 990
    entropy = -sum(c / 50_000 * math.log2(c / 50_000) for c in counts.values())
    assert entropy > math.log2(985) - 0.03
    consecutive = sum(b == a + 1 for a, b in zip(prompt, prompt[1:], strict=False))
    assert consecutive < 100  # about 51 by chance; 49,999 in a run of consecutive ids


def test_lengths_are_drawn_from_ratio_to_nominal() -> None:  # P16
    requests = [r for lane in range(40) for r in play(source(isl=1000, osl=100, ratio=0.8), lane, 10)]
    lengths, outputs = [r.prompt_tokens for r in requests], [r.max_tokens for r in requests]
    assert (min(lengths) >= 800, max(lengths) <= 1000) == (True, True)
    assert 890 < sum(lengths) / 400 < 910
    later = [output for place, output in enumerate(outputs) if place % 10]
    assert (min(later), max(later)) == (80, 100)
    firsts = outputs[::10]
    assert min(firsts) < 30  # the first wave has any length, so that lanes start in the phases of a long run
    assert {r.max_tokens for r in play(source(osl=100, spread=False), 0, 3)} == {100}
    assert {len(r.prompt_ids) for r in play(source(), 0, 5)} == {200}
    assert all(r.min_tokens == r.max_tokens and r.ignore_eos for r in requests)


def test_warm_up_comes_first_and_an_open_loop_lane_ends_after_one() -> None:
    phases = [r.phase for r in play(source(warmup_per_lane=2), 0, 4)]
    assert phases == [Phase.WARMUP, Phase.WARMUP, Phase.MAIN, Phase.MAIN]
    once = source(refill=False)
    assert once.finished(once.start(0)[0].request, None) == []


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="ids"):
        TokenIds(20, excluded=range(10))
    with pytest.raises(ValueError, match="ratio"):
        source(ratio=0.0)
    with pytest.raises(ValueError, match="at least 1"):
        source(osl=0)
