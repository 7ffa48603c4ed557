"""The published chunk A/B on MI355X (8192 against 16384): the simulator must agree in direction at its four points."""

from __future__ import annotations

import random

import pytest

from infx.simulator.offline import closed_loop, steady


def point(headline, tp: int, concurrency: int, chunk: int):
    """Steady figures with uncached prompts of 1,000 to 40,000 tokens and 100 to 600 answered."""
    draw = random.Random(5)
    lengths = [(draw.randint(1000, 40000), draw.randint(100, 600)) for _ in range(12 * concurrency + 60)]
    server = headline(tp, "--max-num-batched-tokens", str(chunk))
    return steady(closed_loop(server.scheduler(), concurrency, lengths))


@pytest.mark.parametrize(("tp", "concurrency"), [(2, 32), (4, 64)])
def test_a_smaller_chunk_stalls_decodes_less(headline, tp, concurrency):
    small, large = (point(headline, tp, concurrency, chunk) for chunk in (8192, 16384))
    assert small.p90_itl < large.p90_itl * 0.9


@pytest.mark.parametrize("tp", [2, 4])
def test_a_smaller_chunk_delays_the_first_token_where_nothing_else_does(headline, tp):
    small, large = (point(headline, tp, 4, chunk) for chunk in (8192, 16384))
    assert small.median_ttft > large.median_ttft * 1.005
