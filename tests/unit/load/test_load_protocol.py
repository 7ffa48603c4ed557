"""A connection at its end: a descriptor that is about to be closed is not written to."""

import os

import pytest

from infx.measure.columns import Outcome
from infx.run.load.protocol import Connection

ANSWER = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


class Transport:
    """Stands for a socket whose number is that of a pipe's end."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.closing, self.written = descriptor, False, b""

    def get_extra_info(self, name: str) -> "Transport":
        return self

    def fileno(self) -> int:
        return self.descriptor

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        self.closing = True


class Hub:
    def __init__(self) -> None:
        self.urgent: list[bool] = []

    def enqueue(self, connection: Connection, urgent: bool) -> None:
        self.urgent.append(urgent)

    def closed(self, connection: Connection) -> None:
        pass


class Exchange:
    def __init__(self) -> None:
        self.got, self.end = b"", None

    def body(self, ns: int, data: bytes) -> bool:
        self.got += data
        return True

    def ended(self, ns: int, status: int, failure: Outcome | None, reusable: bool) -> None:
        self.end = (status, failure, reusable)


@pytest.fixture
def made():
    reading, writing = os.pipe()
    hub, exchange = Hub(), Exchange()
    connection = Connection(hub)
    connection.connection_made(Transport(writing))
    yield connection, exchange, hub, reading
    os.close(reading)
    os.close(writing)


def test_a_response_leaves_the_connection_for_the_next_request(made) -> None:
    connection, exchange, hub, reading = made
    connection.send(b"GET", exchange)
    assert os.read(reading, 99) == b"GET"
    connection.data_received(ANSWER)
    connection.process()
    assert (exchange.got, exchange.end, connection.idle) == (b"hello", (200, None, True), True)
    assert hub.urgent == [True]


def test_after_the_servers_end_of_file_nothing_is_sent_on_that_descriptor(made) -> None:
    connection, exchange, _, _ = made
    connection.send(b"GET", exchange)
    connection.data_received(ANSWER)
    connection.eof_received()  # read in the same turn of the loop, before anything was parsed
    connection.process()
    assert exchange.end == (200, None, False)
    assert not connection.idle


def test_a_closing_transport_is_not_idle(made) -> None:
    connection, exchange, _, _ = made
    assert connection.idle
    connection._transport.closing = True
    assert not connection.idle


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (b"", Outcome.CONNECTION_LOST), (b"HTTP/1.1 200 OK\r\nContent-Ty", Outcome.CONNECTION_LOST),
        (ANSWER[:-5], Outcome.CONNECTION_LOST), (b"nonsense\r\n\r\n", Outcome.MALFORMED_HTTP),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None),
    ],
)  # fmt: skip
def test_a_lost_connection_ends_its_response_by_what_had_come(made, data: bytes, failure: Outcome | None) -> None:
    connection, exchange, _, _ = made
    connection.send(b"GET", exchange)
    if data:
        connection.data_received(data)
    connection.connection_lost(None)
    connection.process()
    assert exchange.end[1] is failure
    assert not exchange.end[2]


def test_interim_responses_are_passed_over(made) -> None:
    connection, exchange, _, _ = made
    connection.send(b"GET", exchange)
    connection.data_received(b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER)
    connection.process()
    assert (exchange.got, exchange.end) == (b"hello", (200, None, True))
