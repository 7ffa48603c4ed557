"""What the events of one response mean: tokens, their times, the end, and every way of going wrong.

Counts come from the server's usage. An event carries tokens when it has text, reasoning text or a
tool-call delta, or when a usage count rises; role-only and empty events do not.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec

from infx.measure.columns import CountSource, Outcome
from infx.run.load.sse import EventStream


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct, gc=False):
    text: Any = None
    delta: _Delta | None = None
    finish_reason: Any = None
    token_ids: list[int] | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


class _Bare(msgspec.Struct, gc=False):
    object: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode
_decode_bare = msgspec.json.Decoder(_Bare).decode
_DONE = b"[DONE]"
_ABORTED = ("abort", "error")


class Response:
    """Decodes the body of one streamed response, read by read.

    ``read(ns, data)`` takes the bytes of one network read and its timestamp. Afterwards ``outcome_at_end``
    judges, and the other attributes hold what ``columns.COLUMNS`` stores.
    """

    __slots__ = (
        "_counted_events", "_ids_seen", "_mixed", "_spread_known", "_sse", "answer_ns", "cached", "count", "done",
        "empty_first", "error", "error_text", "events", "finished", "first_ns", "ids", "last_ns", "malformed", "prompt",
        "read_ns", "read_tokens", "text", "usage_seen",
    )  # fmt: skip

    def __init__(self, *, keep_ids: bool = False) -> None:
        self._sse = EventStream()
        self._spread_known = True
        self._mixed = False
        self._counted_events = 0
        self._ids_seen = 0
        self.read_ns = array("q")
        self.read_tokens = array("i")
        self.count = 0
        self.events = 0
        self.empty_first = 0
        self.first_ns = self.answer_ns = self.last_ns = 0
        self.prompt = self.cached = -1
        self.usage_seen = self.finished = self.done = self.error = self.malformed = False
        self.error_text = ""
        self.ids: list[int] | None = [] if keep_ids else None
        self.text: list[str] = []

    def read(self, ns: int, data: bytes) -> int:
        """Decode one read; returns how many events it completed."""
        payloads = self._sse.feed(data)
        if not payloads:
            return 0
        tokens_before = self.count
        events_before = self._counted_events
        for payload in payloads:
            if payload == _DONE or not payload:
                self.done = self.done or payload == _DONE
                continue
            try:
                chunk = _decode(payload)
            except msgspec.MsgspecError:
                self._unreadable(payload)
                continue
            if not chunk.choices and _decode_bare(payload).object == "error":
                self._failed(payload.decode("utf-8", "replace"))
            if not self._event(chunk, ns) and not self.first_ns and not chunk.error:
                self.empty_first += 1
        self.events += len(payloads)
        if self._sse.error_events and not self.error:
            self._failed(payloads[-1].decode("utf-8", "replace"))
        carrying = self._counted_events - events_before
        if carrying:
            self.read_ns.append(ns)
            self.read_tokens.append(self.count - tokens_before if self._spread_known else carrying)
            self.last_ns = ns
        return len(payloads)

    def _event(self, chunk: _Chunk, ns: int) -> bool:
        """Account for one event; True when it carries tokens."""
        if chunk.error is not None:
            self._failed(str(chunk.error))
        visible = answer = False
        choices = chunk.choices or ()
        for choice in choices:
            if choice.finish_reason is not None:
                self.finished = True
                if choice.finish_reason in _ABORTED:
                    self._failed(str(choice.finish_reason))
            if choice.text:
                visible = answer = True
                if not self.usage_seen:
                    self.text.append(choice.text)
            delta = choice.delta
            if delta is not None:
                if delta.content or delta.tool_calls:
                    visible = answer = True
                if delta.reasoning_content or delta.reasoning:
                    visible = True
                if visible and not self.usage_seen:
                    self._keep_text(delta)
            if choice.token_ids:
                self._ids_seen += len(choice.token_ids)
                if self.ids is not None:
                    self.ids.extend(choice.token_ids)
        rises = self._usage(chunk.usage, visible, bool(choices))
        if not (visible or rises):
            return False
        self._counted_events += 1
        if not self.first_ns:
            self.first_ns = ns
        if answer and not self.answer_ns:
            self.answer_ns = ns
        return True

    def _usage(self, usage: _Usage | None, visible: bool, has_choices: bool) -> bool:
        """Take a usage record in; True when it says that tokens came with this very event."""
        if usage is None or usage.completion_tokens is None:
            if visible:
                self._lose_spread()
            return False
        self.usage_seen = True
        self.text.clear()
        if usage.prompt_tokens is not None:
            self.prompt = usage.prompt_tokens
        if usage.prompt_tokens_details is not None and usage.prompt_tokens_details.cached_tokens is not None:
            self.cached = usage.prompt_tokens_details.cached_tokens
        risen = usage.completion_tokens > self.count
        self.count = max(self.count, usage.completion_tokens)
        # A total that comes only at the end says nothing about when its tokens came, unless nothing else does.
        return risen and (self._spread_known or (has_choices and not self.first_ns))

    def _lose_spread(self) -> None:
        if self._spread_known:
            self._spread_known = False
            self._mixed = self._counted_events > 0

    def _keep_text(self, delta: _Delta) -> None:
        for part in (delta.reasoning_content, delta.reasoning, delta.content):
            if isinstance(part, str) and part:
                self.text.append(part)

    def _unreadable(self, payload: bytes) -> None:
        self.malformed = True
        self.error_text = self.error_text or payload[:200].decode("utf-8", "replace")

    def _failed(self, text: str) -> None:
        self.error = True
        self.error_text = self.error_text or text[:500]

    def close(self) -> CountSource:
        """Settle the counts once the response is over, and say where they come from."""
        spread, reads = self._spread_known, self.read_tokens
        if self.usage_seen:
            if spread:
                return CountSource.USAGE_PER_READ
            if not self._mixed and sum(reads) == self.count:
                return CountSource.USAGE_FINAL_SPREAD
            self._forget_spread()
            return CountSource.USAGE_FINAL
        self._forget_spread()
        if self._ids_seen:
            self.count = self._ids_seen
            return CountSource.TOKEN_IDS
        self.count = -1
        return CountSource.UNKNOWN

    def _forget_spread(self) -> None:
        for i in range(len(self.read_tokens)):
            self.read_tokens[i] = -1

    def outcome_at_end(self, asked: int, exact: bool) -> Outcome:
        """Judge a response whose HTTP message ended well (call ``close`` first)."""
        if self.error:
            return Outcome.ERROR_EVENT
        if self.malformed:
            return Outcome.MALFORMED_EVENT
        if not self.events and self._sse.unfinished.lstrip()[:1] in (b"{", b"<", b"["):
            return Outcome.NOT_A_STREAM
        if not (self.finished or self.done):
            return Outcome.TRUNCATED
        if not self.first_ns:
            return Outcome.NO_TOKEN
        if exact and 0 <= self.count < asked:
            return Outcome.SHORT
        return Outcome.OK
