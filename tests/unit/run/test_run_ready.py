"""Readiness as a pure judge."""

from __future__ import annotations

from infx.run.ready import REFUSED_FOR_S, Seen, judge


def test_a_token_is_ready_and_nothing_else():
    assert judge([Seen(1, True, 200, tokens=1)], 10).state == "ready"
    assert judge([Seen(1, True, 200, tokens=0)], 10).state == "wait"
    assert judge([Seen(1, True)], 10).state == "wait"


def test_death_and_limit():
    assert judge([Seen(1, True), Seen(2, False)], 10).code == "exited"
    assert judge([Seen(9, True), Seen(10, True)], 10).code == "never-ready"


def test_errors_are_borne_for_a_while_only():
    steady = [Seen(t, True, 500, detail="boom") for t in range(int(REFUSED_FOR_S) + 1)]
    assert judge(steady[:-1], 3600).state == "wait"
    verdict = judge(steady, 3600)
    assert verdict.code == "answers-errors" and "HTTP 500" in verdict.message and "boom" in verdict.message


def test_loading_answers_do_not_count_as_errors():
    loading = [Seen(float(t), True, 503) for t in range(100)]
    assert judge(loading, 3600).state == "wait"
    broken = [Seen(0.0, True, 500), Seen(30.0, True), Seen(31.0, True, 500)]
    assert judge(broken, 3600).state == "wait"
