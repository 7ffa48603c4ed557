"""What a ceiling means for a ladder."""

import pytest

from infx.run.selfbench.bench import Rung, meaning


def rung(streams: int, ceiling: float) -> Rung:
    return Rung(streams, 1, streams * 50, 8.0, 0.1, 0.1, ceiling, 0, [])


def test_each_concurrency_takes_the_rung_that_covers_it() -> None:
    found = meaning([rung(16, 40_000), rung(256, 100_000)], [256, 1, 16, 64, 512])
    assert [one.concurrency for one in found] == [1, 16, 64, 256, 512]
    assert [one.fastest_tpot_ms for one in found] == pytest.approx([0.025, 0.4, 0.64, 2.56, 5.12])
    assert "2.56 ms" in found[3].verdict


def test_a_client_that_did_nothing_has_no_ceiling() -> None:
    assert meaning([rung(1, 0.0)], [1])[0].fastest_tpot_ms == float("inf")
