"""Server-sent events: every legal spelling, and any split of the bytes gives the same events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.run.load.sse import EventStream


def reference(data: bytes) -> list[bytes]:
    """The grammar of the HTML standard, line by line over the whole text: slow and obvious."""
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events, fields = [], []
    for line in text.split(b"\n")[:-1]:
        if line == b"":
            if fields:
                events.append(b"\n".join(fields))
            fields = []
        elif line.startswith(b"data:"):
            value = line[5:]
            fields.append(value[1:] if value.startswith(b" ") else value)
        elif line == b"data":
            fields.append(b"")
    return events


# P7
@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b": keep-alive\n\ndata: a\n\n", [b"a"]),
        (b": keep-alive\ndata: a\n\n", [b"a"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\r\ndata:b\r\n\r\n", [b"a\nb"]),
        (b"event: x\nid: 7\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"data\n\n", [b""]),
        (b"\n\n\ndata: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\n", []),
        (b"database: a\n\n", []),
        ("data: {\"text\":\"é漢😀\"}\n\n".encode(), ['{"text":"é漢😀"}'.encode()]),
    ],
)
def test_legal_variants(text: bytes, events: list[bytes]) -> None:
    assert EventStream().feed(text) == events
    assert reference(text) == events


ALPHABET = [b"data:", b"data: ", b"data", b": c", b"event: error", b"a", "é漢".encode(), b"{", b"\n", b"\n\n", b"\r",
            b"\r\n", b"\r\n\r\n", b"\r\r", b" ", b":", b"\xef\xbb\xbf"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(st.sampled_from(ALPHABET), max_size=30), cuts=st.lists(st.integers(0, 200), max_size=20))
def test_any_split_gives_the_same_events(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    stream, events, at = EventStream(), [], 0
    for cut in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
        events += stream.feed(data[at:cut])
        at = cut
    if not data.endswith(b"\r") or events == reference(data):
        assert events == reference(data)
    else:  # a trailing CR may still become CRLF; the next byte settles it
        events += stream.feed(b"\n")
        assert events == reference(data + b"\n")


def test_every_split_in_two_of_one_stream() -> None:
    data = 'data: {"t":"é漢😀"}\r\n\r\n: c\r\ndata:x\r\ndata: y\r\n\r\ndata: [DONE]\r\n\r\n'.encode()
    whole = reference(data)
    assert len(whole) == 3
    for cut in range(len(data) + 1):
        stream = EventStream()
        assert stream.feed(data[:cut]) + stream.feed(data[cut:]) == whole


def test_ten_megabytes_in_small_reads_are_one_event() -> None:  # P7: no line limit
    payload = b"x" * 10_000_000
    data = b"data: " + payload + b"\n\n"
    stream, events = EventStream(), []
    for at in range(0, len(data), 65_536):
        events += stream.feed(data[at : at + 65_536])
    assert events == [payload]
    assert stream.unfinished == b""


def test_an_error_event_is_counted_by_its_type() -> None:
    stream = EventStream()
    assert stream.feed(b"event: error\ndata: boom\n\n") == [b"boom"]
    assert stream.error_events == 1
