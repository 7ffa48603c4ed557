"""The last telling lines of a log."""

from __future__ import annotations

from infx.engines.loglines import clean_lines, meaningful_tail


def test_progress_bars_and_colours_go():
    text = "\x1b[32mINFO\x1b[0m loading\n 10%|#  | 1/10\r 90%|## | 9/10 [00:01, 7.1it/s]\n\n   \nready\r\n"
    assert clean_lines(text) == ["INFO loading", "ready"]


def test_errors_are_preferred_in_order():
    text = "INFO a\nTraceback (most recent call last):\n  File x\nRuntimeError: HIP error: out of memory\nINFO bye\n"
    assert meaningful_tail(text, 2) == ["Traceback (most recent call last):", "RuntimeError: HIP error: out of memory"]


def test_without_errors_the_last_lines():
    assert meaningful_tail("a\nb\nc\n", 2) == ["b", "c"]
    assert meaningful_tail("", 2) == []
