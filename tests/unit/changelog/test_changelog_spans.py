"""The raw view: every byte belongs somewhere, identities are stable, joining touches nothing before it."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.spans import join, shared, split

LINES = st.sampled_from([b"- a:", b"  b: 1", b"", b"  ", b" \t", b"# c", b"-", b"-x", b"text  ", b"\r", b"- a:\r"])
FILES = st.lists(LINES, max_size=14).map(b"\n".join) | st.binary(max_size=60)


@given(FILES)
def test_every_byte_is_in_the_preamble_or_in_one_span(data):
    cut = split(data)
    parts = [data[: cut.preamble], *(data[span.start:span.end] for span in cut.spans)]
    assert b"".join(parts) == data
    for span in cut.spans:
        assert span.body == data[span.start:span.body_end]
        assert not data[span.body_end:span.end].strip(b" \t\r\n")
        assert data[:span.start].count(b"\n") + 1 == span.line
        assert not span.body.split(b"\n")[-1] or span.body.split(b"\n")[-1].strip(b" \t\r")


def test_an_entry_begins_with_a_dash_in_column_one_and_keeps_blanks_of_its_last_line():
    data = b"# head\n\n- a: 1\n  - b\n-x\nend  \n \n\n- c\n"
    cut = split(data)
    assert [span.body for span in cut.spans] == [b"- a: 1\n  - b\n-x\nend  ", b"- c"]
    assert [span.line for span in cut.spans] == [3, 9]
    assert cut.preamble == 8


def test_identity_is_content_and_ordinal():
    a, b = (hashlib.sha256(body).hexdigest()[:12] for body in (b"- a", b"- b"))
    assert split(b"- a\n\n- b\n\n- a\n").ids == (f"{a}-1", f"{b}-1", f"{a}-2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"- n\n"),
        (b"- a\n", b"- a\n\n- n\n"),
        (b"- a", b"- a\n\n- n\n"),
        (b"- a\n  \n", b"- a\n  \n- n\n"),
        (b"- a\n\n\n", b"- a\n\n\n- n\n"),
        (b"- a\n  ", b"- a\n  \n- n\n"),
        (b"# c\n", b"# c\n\n- n\n"),
    ],
)
def test_joining_adds_what_is_missing_of_one_blank_line(before, after):
    assert join(before, [b"- n"], len(before)) == after


@given(FILES, st.lists(st.sampled_from([b"- n", b"- m: 1\n  o: 2"]), min_size=1, max_size=3))
def test_joining_keeps_all_before_it_and_adds_exactly_the_entries(before, bodies):
    after = join(before, bodies, len(before))
    assert after.startswith(before)
    assert [span.body for span in split(after).spans[len(split(before).spans):]] == bodies
    assert after.endswith(bodies[-1] + b"\n")


def test_blanks_beyond_the_protected_bytes_are_dropped():
    assert join(b"- a\n\n- b\n \n\n", [b"- n"], 4) == b"- a\n\n- b\n\n- n\n"
    assert join(b"- a\n \n", [], 0) == b"- a\n \n"


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        (b"- a\n\n- b\n", b"- a\n\n- b\n\n- c\n", 2),
        (b"- a\n\n- b\n", b"- a\n\n- bc\n", 1),
        (b"- a\n\n- b\n", b"- a\n \n- b\n", 1),
        (b"- a\n", b"# x\n- a\n", 0),
        (b"# x\n- a\n", b"# y\n- a\n", 0),
        (b"", b"- a\n", 0),
        (b"- a", b"- a\n\n- b\n", 1),
    ],
)
def test_shared_counts_leading_entries_that_are_equal_to_the_byte(one, other, count):
    assert shared(split(one), split(other)) == shared(split(other), split(one)) == count
