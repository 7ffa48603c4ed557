"""Server-sent events: bytes in, payloads of ``data`` fields out, however the bytes were split.

Grammar: WHATWG HTML, section 9.2 (lines end in LF, CR or CRLF; a blank line ends an event; lines that
begin with a colon are comments; several ``data`` lines of one event are joined by LF).
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"
_LF, _CR = b"\n\r"  # as numbers: looking for bytes in bytes costs ten times as much


class EventStream:
    """An incremental parser of one stream.

    ``feed`` returns the payloads of the events completed by these bytes. ``error_events`` counts events of
    type ``error``. Linear in the number of bytes, also for events that arrive in many pieces.
    """

    __slots__ = ("_ended_in_cr", "_first", "_pieces", "error_events")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._ended_in_cr = False
        self._first = True
        self.error_events = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads of the events that ``data`` completes, in order."""
        pieces = self._pieces
        if data[:6] == b"data: " and data[-2:] == b"\n\n" and not pieces and not self._ended_in_cr:
            payload = data[6:-2]
            if _LF not in payload and _CR not in payload:
                self._first = False
                return [payload]  # one whole event of one line: what a busy engine sends
        if self._ended_in_cr or _CR in data:
            data = self._with_line_feeds(data)
        if pieces:
            if data.find(b"\n\n") < 0 and not (data[:1] == b"\n" and pieces[-1][-1:] == b"\n"):
                if data:
                    pieces.append(data)
                return []
            pieces.append(data)
            data = b"".join(pieces)
            pieces.clear()
        blocks = data.split(b"\n\n")
        tail = blocks.pop()
        if tail:
            pieces.append(tail)
        if not blocks:
            return blocks
        if self._first:
            self._first = False
            blocks[0] = blocks[0].removeprefix(_BOM)
        return self._payloads(blocks)

    @property
    def unfinished(self) -> bytes:
        """What has arrived of an event that is not complete."""
        return b"".join(self._pieces)

    def _with_line_feeds(self, data: bytes) -> bytes:
        if self._ended_in_cr and data[:1] == b"\n":
            data = data[1:]
            self._ended_in_cr = False
        if data:
            self._ended_in_cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _payloads(self, blocks: list[bytes]) -> list[bytes]:
        payloads = []
        for block in blocks:
            if block[:5] == b"data:" and b"\n" not in block:
                payloads.append(block[6:] if block[5:6] == b" " else block[5:])
            else:
                payload = self._fields(block)
                if payload is not None:
                    payloads.append(payload)
        return payloads

    def _fields(self, block: bytes) -> bytes | None:
        data: list[bytes] = []
        kind = b""
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value[1:] if value[:1] == b" " else value
            if name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value
        if not data:
            return None
        if kind == b"error":
            self.error_events += 1
        return b"\n".join(data)
