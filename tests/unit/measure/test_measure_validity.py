"""What makes a point invalid, each with its code."""

import pytest

from infx.measure.columns import Outcome
from infx.measure.validity import EngineFacts, Expected, invalid_reasons
from infx.measure.window import Span

MS = 1_000_000
WINDOW = Span(1, 1000 * MS)


def codes(table, expected: Expected, engine: EngineFacts | None = None) -> list[str]:
    return [reason.code for reason in invalid_reasons(table, WINDOW, expected, engine)]


@pytest.fixture
def fine(table_of):
    return table_of(*({"sent": i, "reads": [(i + 5, 1), (i + 9, 1)]} for i in range(20)))


def test_a_good_point_has_no_reason(fine) -> None:
    engine = EngineFacts(hit_share=0.0, recompute_share=0.0, drafts=0, sequence_cap=64)
    assert codes(fine, Expected(concurrency=4), engine) == []


def test_failures_above_the_limit(table_of) -> None:  # P11
    rows = [{"sent": i, "reads": [(i + 5, 1)]} for i in range(20)]
    rows[3]["outcome"] = Outcome.HTTP_503
    table = table_of(*rows)
    [reason] = invalid_reasons(table, WINDOW, Expected(concurrency=1))
    assert reason.code == "failures-above-limit"
    assert "1 of 20" in reason.message
    assert "1 http-503" in reason.message
    assert codes(table, Expected(concurrency=1, failure_limit=0.05)) == []


def test_prompt_tokens_that_differ(table_of) -> None:
    table = table_of({"sent": 1, "reads": [(5, 1)], "prompt_sent": 10, "prompt_usage": 11})
    [reason] = invalid_reasons(table, WINDOW, Expected(concurrency=1))
    assert (reason.code, reason.evidence) == ("prompt-tokens-differ", "sent 10 ids, usage.prompt_tokens 11")
    unknown = table_of({"sent": 1, "reads": [(5, 1)], "prompt_sent": 0, "prompt_usage": 11})
    assert codes(unknown, Expected(concurrency=1)) == []


@pytest.mark.parametrize(
    ("expected", "engine", "code"),
    [
        (Expected(1), EngineFacts(hit_share=0.02), "prefix-hits"),  # P21
        (Expected(1, known_hit_share=0.3), EngineFacts(hit_share=0.305), None),
        (Expected(1, known_hit_share=None), EngineFacts(hit_share=0.97), None),
        (Expected(1), EngineFacts(recompute_share=0.011), "preemption-recompute"),
        (Expected(1), EngineFacts(recompute_share=0.01), None),
        (Expected(1, speculative=True), EngineFacts(drafts=0), "no-drafts"),  # P31
        (Expected(1, synthetic_acceptance=2.78), EngineFacts(drafts=9, acceptance_length=2.40), "acceptance-length"),
        (Expected(1, synthetic_acceptance=3.51), EngineFacts(drafts=9, acceptance_length=3.45), None),
        (Expected(1, speculative=True), EngineFacts(drafts=9, acceptance_length=1.1), None),
        (Expected(4), EngineFacts(sequence_cap=3, waiting_peak=9), "server-cap-binds"),
    ],
)
def test_engine_facts(fine, expected: Expected, engine: EngineFacts, code: str | None) -> None:
    found = codes(fine, expected, engine)
    if code is None or code != "server-cap-binds":
        assert found == ([code] if code else [])
    else:
        assert code in found


def test_sub_agents_can_hit_a_cap_that_lanes_do_not(table_of) -> None:  # P65
    fan_out = table_of(*({"sent": 10, "reads": [(100, 1)]} for _ in range(12)))
    engine = EngineFacts(sequence_cap=4, waiting_peak=8)
    [reason] = invalid_reasons(fan_out, WINDOW, Expected(4, known_hit_share=None), engine)
    assert reason.code == "server-cap-binds"
    assert "12 in flight" in reason.message
    assert "8 waited" in reason.message


def test_nothing_measured(table_of) -> None:
    assert codes(table_of({"sent": 5000, "reads": [(5001, 1)]}), Expected(1)) == ["no-measured-request"]
