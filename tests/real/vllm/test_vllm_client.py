"""The load client's times beside those of a real engine's own clock, for the very same requests.

The engine starts its clock when it has parsed a request and reads it when a token is made; the client starts before
its first byte is written and reads it when the bytes have arrived. So no client's mean can be below the engine's, and
what is above is the way in and out. Bounds are in the engine's own steps (its mean inter-token latency).
"""

from __future__ import annotations

import statistics

import pytest

from infx.engines.vllm.counters import COUNTERS
from infx.measure.request import gaps, per_request
from infx.run.load.client import run_load
from infx.run.load.control import Ending
from infx.run.load.spec import LoadSpec, WindowRule
from infx.run.telemetry.scrape import delta, fetch, histogram_mean, parse
from infx.workload.random import TokenIds
from tests.fakes.counted import Counted

pytestmark = pytest.mark.timeout(400)
ISL, OSL, SHARE, ROUNDS = 256, 64, 6, 3


@pytest.fixture(scope="module")
def small(cpu_engine, serving):
    # In float32: without AVX-512 a step in bfloat16 takes ten times as long, and hides what the bounds are to hold.
    with serving(cpu_engine, cpu_engine.small, "--dtype", "float32") as served:
        yield served


def off(served, concurrency: int, number: int) -> dict[str, float]:
    """One load: client − engine of the means of TTFT, E2EL and ITL in ms, and the engine's step in ms."""
    source = Counted(TokenIds(4000, first=300), ISL, OSL, seed=number, salt=f"{concurrency} {number}", spread=False)
    source.share = SHARE
    spec = LoadSpec(served.url, served.model, concurrency, WindowRule(duration_s=300))
    before = parse(fetch(served.url).text)
    output = run_load(spec, source)
    after = parse(fetch(served.url).text)
    assert (output.ending, output.failures) == (Ending.EXHAUSTED, {})
    assert len(output.table) == SHARE * concurrency
    assert set(output.table["output_tokens"]) == {OSL}
    each, found = per_request(output.table), gaps(output.table)
    mine = {"ttft": each.ttft_ms.mean(), "e2el": each.e2el_ms.mean(), "itl": found.gap_ms.sum() / found.tokens.sum()}
    engine = {}
    for key, name in (("ttft", COUNTERS.ttft), ("e2el", COUNTERS.e2el), ("itl", COUNTERS.itl)):
        seen = delta(before, after, f"{name}_count").value
        assert seen == SHARE * concurrency * (OSL - 1 if key == "itl" else 1), key
        engine[key] = histogram_mean(before, after, name).value * 1000
    return {key: float(mine[key] - engine[key]) for key in mine} | {"step": engine["itl"]}


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_clients_means_are_the_engines_and_never_below(small, concurrency: int) -> None:
    off(small, concurrency, 99)  # the first requests of an engine compile and allocate
    rounds = [off(small, concurrency, number) for number in range(ROUNDS)]
    for found in rounds:
        assert found["ttft"] >= 0, rounds
        assert found["e2el"] >= 0, rounds
        # A first token that came later to the client than the last one shortens what is between them, by no more.
        assert found["itl"] * (OSL - 1) >= -found["ttft"], rounds
    middle = {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}
    assert middle["ttft"] <= 2 * middle["step"], rounds
    assert abs(middle["itl"]) <= 0.05 * middle["step"], rounds
