"""HTTP/1.1 on one ``asyncio.Protocol``: a keep-alive connection that carries one exchange at a time.

Each network read is stamped before anything else and parsed later (``process``), a few reads at a time, so
that the stamps of a burst of streams do not wait for each other's parsing.
"""

from __future__ import annotations

import asyncio
import os
from time import perf_counter_ns
from typing import Protocol

import httptools

from infx.measure.columns import Outcome

_LAST_CHUNK = b"0\r\n\r\n"


class Exchange(Protocol):
    """What a connection tells about the response it receives."""

    def body(self, ns: int, data: bytes) -> bool:
        """Bytes of the body of a response with status 200, from the read stamped ``ns``; False: it is broken."""

    def ended(self, ns: int, status: int, failure: Outcome | None, reusable: bool) -> None:
        """The response is over: ``failure`` None when its HTTP message was complete and its status 200."""


class Hub(Protocol):
    """Who schedules the parsing of stamped reads."""

    def enqueue(self, connection: Connection, urgent: bool) -> None: ...

    def closed(self, connection: Connection) -> None: ...


class Connection(asyncio.Protocol):
    """One TCP connection to the engine; give it a request with ``send`` when ``idle``."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._reads: list[tuple[int, bytes]] = []
        self._queued = False
        self._complete = self._keep_alive = self._broken = self._good = False
        self._until_close = True
        self._headers_complete = False
        self._error_body = b""
        self._now = 0
        self._lost = self._ending = False
        self.uses = 0
        self.received = False  # any byte of the present response

    # -- the event loop's side -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._descriptor = transport.get_extra_info("socket").fileno()

    def data_received(self, data: bytes) -> None:
        self._reads.append((perf_counter_ns(), data))
        self.received = True
        if not self._queued:
            self._queued = True
            self._hub.enqueue(self, data[-5:] == _LAST_CHUNK)

    def eof_received(self) -> bool:
        self._ending = True  # the descriptor is about to be closed, and its number given to another connection
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._now = perf_counter_ns()
        if self._exchange is not None and not self._queued:
            self._queued = True
            self._hub.enqueue(self, True)
        if self._exchange is None:
            self._hub.closed(self)

    # -- the worker's side -----------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return self._exchange is None and self._usable

    @property
    def _usable(self) -> bool:
        return not (self._lost or self._ending or self._transport.is_closing())

    def send(self, request: bytes, exchange: Exchange) -> int:
        """Write ``request`` and return the time just before its first byte was written."""
        self._exchange = exchange
        self._complete = self._headers_complete = self._broken = False
        self._until_close = True
        self._error_body = b""
        self.received = False
        self.uses += 1
        sent = perf_counter_ns()
        # The loop would write at the end of its turn; an idle connection can be written to at once.
        try:
            written = os.write(self._descriptor, request)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError:
            self._transport.abort()  # connection_lost will end the exchange
            return sent
        if written < len(request):
            self._transport.write(memoryview(request)[written:])
        return sent

    def process(self) -> int:
        """Parse what has been read so far; returns the number of reads handled."""
        self._queued = False
        reads, self._reads = self._reads, []
        for ns, data in reads:
            self._now = ns
            if self._exchange is None:
                self.abort()  # bytes that nobody asked for
                return len(reads)
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError:
                self._finish(Outcome.MALFORMED_HTTP)
                return len(reads)
            if self._complete:
                self._conclude()
            elif self._broken:
                self._finish(Outcome.ERROR_EVENT)
                return len(reads)
        if self._lost and self._exchange is not None:
            self._end_of_input()
        return len(reads)

    def abort(self) -> None:
        """Close at once, without telling the exchange."""
        self._exchange = None
        if self._transport is not None and not self._lost:
            self._transport.abort()

    @property
    def error_body(self) -> str:
        """The beginning of the body of a response with a status of 300 or more."""
        return self._error_body[:500].decode("utf-8", "replace")

    # -- the parser's side -----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._until_close = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._until_close = False

    def on_headers_complete(self) -> None:
        self._headers_complete = True
        self._good = self._parser.get_status_code() == 200

    def on_body(self, data: bytes) -> None:
        if self._good:
            self._broken = not self._exchange.body(self._now, data)
        elif len(self._error_body) < 500:
            self._error_body += data

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() >= 200:
            self._complete = True
            self._keep_alive = self._parser.should_keep_alive()  # only true inside this callback

    # -- the end of a response -------------------------------------------------------------------------

    def _conclude(self) -> None:
        status = self._parser.get_status_code()
        reusable = self._keep_alive and self._usable
        exchange, self._exchange = self._exchange, None
        self._complete = False
        if not reusable:
            self.abort()
        exchange.ended(self._now, status, _failure_of(status), reusable)

    def _end_of_input(self) -> None:
        status = self._status_if_any()
        if status and self._headers_complete and self._until_close:
            exchange, self._exchange = self._exchange, None
            exchange.ended(self._now, status, _failure_of(status), False)
        else:
            self._finish(Outcome.CONNECTION_LOST)

    def _status_if_any(self) -> int:
        return self._parser.get_status_code() if self.received else 0

    def _finish(self, failure: Outcome) -> None:
        exchange, self._exchange = self._exchange, None
        self.abort()
        exchange.ended(self._now, self._status_if_any(), failure, False)


def _failure_of(status: int) -> Outcome | None:
    if status == 200:
        return None
    if status == 429:
        return Outcome.HTTP_429
    if status == 503:
        return Outcome.HTTP_503
    if 300 <= status < 400:
        return Outcome.REDIRECT
    if status >= 500:
        return Outcome.HTTP_5XX
    return Outcome.HTTP_4XX if status >= 400 else Outcome.MALFORMED_HTTP
