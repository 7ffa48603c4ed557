"""Any bytes give a document or findings, without an exception, in bounded time."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from infx.findings import Severity
from infx.sources import modelio, yamlio

WORDS = st.sampled_from(
    ["a", ":", " ", "\n", "- ", "{", "}", "[", "]", ",", "&x ", "*x", "!t ", "'", '"', "|\n", ">", "?", "#", "---\n"]
    + ["...\n", "%YAML 1.1\n", "<<", "yes", "010", "1:30", "\t", "\r", "\r\n", "\x00", "é", "~", "  ", "1e3", "\ufeff"]
)


def check(text: bytes) -> None:
    begun = time.perf_counter()
    document, found = yamlio.load(text, "f.yaml", root="any")
    assert time.perf_counter() - begun < 5
    refused = any(item.severity is Severity.ERROR for item in found)
    assert (document is None or document.doubtful) == refused
    lines = text.count(b"\n") + 1
    assert all(1 <= item.where.line <= lines + 1 and item.where.column >= 1 for item in found)
    if document is not None:
        model, more = modelio.parse(document, dict[str, int])
        assert (model is None) or not (found and refused)
        assert all(item.code in ("S-001", "S-003") for item in more)


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes(text):
    check(text)


@given(st.lists(WORDS, max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_mix_of_yaml_words(words):
    check("".join(words).encode())


@given(st.sampled_from(["[", "{a: ", "- ", "? ", "&x ", "'", "a:\n ", "*x ", "!", "|\n", "\n", "#"]))
@settings(max_examples=12, deadline=None)
def test_long_repetition(word):
    check((word * 100_000).encode()[:900_000])
