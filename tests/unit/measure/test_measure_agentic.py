"""Session metrics by hand: hit classes, sessions, busy lanes."""

from __future__ import annotations

import numpy as np
import pytest

from infx.measure.agentic import agentic, timeline
from infx.measure.columns import Outcome
from infx.measure.window import Span
from infx.workload.session import Phase

WHOLE = Span(1, 1_000_000_000)


def row(sent, *, first=10, tokens=3, gap=5, prompt=100, cached=0, lane=0, session=0, **more):
    """A good request: ``tokens`` reads of one token, ``gap`` ms apart, the first ``first`` ms after ``sent``."""
    reads = [(sent + first + gap * n, 1) for n in range(tokens)]
    return {"sent": sent, "reads": reads, "prompt_sent": prompt, "prompt_usage": prompt, "cached_theory": cached,
            "lane": lane, "session": session, **more}


def value(found, name):
    assert found[name].value is not None, found[name].reason
    return found[name].value


def test_ttft_by_hit_class(table_of):
    rows = [row(1, first=80), row(2, first=40, cached=50), row(3, first=44, cached=89), row(4, first=5, cached=90),
            row(5, first=7, cached=99), row(6, first=6, cached=96)]
    found = agentic(table_of(*rows), WHOLE)
    assert value(found, "ttft-cold-p50") == 80
    assert value(found, "ttft-part-p50") == 42
    assert value(found, "ttft-warm-p50") == 6
    assert [found[f"ttft-{name}-p50"].n for name in ("cold", "part", "warm")] == [1, 2, 3]


def test_a_class_without_requests_says_so(table_of):
    found = agentic(table_of(row(1)), WHOLE)
    assert found["ttft-warm-p50"].value is None and found["ttft-warm-p50"].reason == "no warm request"


def test_new_tokens_and_reported_hits(table_of):
    rows = [row(1, prompt=100, cached=60, cached_usage=50), row(2, prompt=300, cached=200, cached_usage=150)]
    found = agentic(table_of(*rows), WHOLE)
    assert value(found, "new-input-length-mean") == 70
    assert value(found, "hit-share-reported") == 0.5
    rows[1]["cached_usage"] = -1
    missing = agentic(table_of(*rows), WHOLE)["hit-share-reported"]
    assert missing.value is None and "1 of 2" in missing.reason


def test_theory_counts_whole_blocks_of_the_engine(table_of):
    table = table_of(row(1, prompt=300, cached=272), row(2, prompt=100, cached=96))
    assert "theoretical-hit-share" not in agentic(table, WHOLE)
    assert value(agentic(table, WHOLE, 128), "theoretical-hit-share") == 256 / 400
    assert value(agentic(table, WHOLE, 16), "theoretical-hit-share") == 368 / 400


def test_figures_of_sessions(table_of):
    first, second = row(1, session=7, first=10, gap=5), row(50, session=7, first=30, gap=10, tokens=5)
    rows = [first, second, row(3, session=9, gap=2)]
    found = agentic(table_of(*rows), WHOLE)
    assert value(found, "sessions-measured") == 2
    assert value(found, "session-turns-mean") == 1.5
    assert value(found, "session-ttft-median") == 15  # of 20 and 10
    assert value(found, "session-interactivity-median") == pytest.approx((6 / 50 + 2 / 4) / 2 * 1000)


def test_only_measured_requests_count(table_of):
    rows = [row(1, session=1), row(2, phase=Phase.WARMUP, cached=99), row(3, outcome=Outcome.TIMEOUT)]
    found = agentic(table_of(*rows), WHOLE)
    assert value(found, "sessions-measured") == 2
    assert found["ttft-warm-p50"].value is None
    assert found["ttft-cold-p50"].value is None and "1 requests were cut" in found["ttft-cold-p50"].reason


def test_lanes_over_time(table_of):
    rows = [row(0.0, first=1, gap=1, tokens=3, lane=0), row(1.0, first=1, gap=1, tokens=3, lane=0),
            row(2.0, first=3, gap=1, tokens=3, lane=1)]
    table = table_of(*rows)
    start = int(table["sent_ns"].min())
    found = timeline(table, Span(start, start + 8_000_000), 1_000_000)
    assert list(found.seconds[:3]) == [0.0, 0.001, 0.002]
    ends = [(int(e) - start) // 1_000_000 for e in table["end_ns"]]
    begins = [(int(s) - start) // 1_000_000 for s in table["sent_ns"]]
    lanes = table["lane"]
    expected = [[i for i in range(3) if begins[i] <= t < ends[i]] for t in range(8)]
    assert list(found.in_flight) == [len(one) for one in expected]
    assert list(found.lanes_busy) == [len({lanes[i] for i in one}) for one in expected]
    assert max(found.in_flight) == 3 and max(found.lanes_busy) == 2
    with pytest.raises(ValueError, match="step"):
        timeline(table, WHOLE, 0)


def test_an_empty_window_has_reasons(table_of):
    found = agentic(table_of(row(1)), Span(10**12, 2 * 10**12))
    assert all(v.value is not None or v.reason for v in found.values())
    assert value(found, "sessions-measured") == 0
    assert np.isclose(value(found, "lanes-busy-mean"), 0)
