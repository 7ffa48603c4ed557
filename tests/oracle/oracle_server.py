"""The oracle: a stdlib HTTP server that plays byte scripts and logs when it sent what.

It knows the truth that a client has to find: how many tokens went out, in which write, at what time of the
machine's monotonic clock. It imports nothing of the product. Run: ``python oracle_server.py SCRIPTS.json``;
it prints ``PORT n`` when it listens. A request's ``model`` names its script.

SCRIPTS.json: {name: [play, …]}; the n-th request for a name gets play n modulo their number. A play is
{"steps": [step, …]} or {"engine": {…}}. A step: {"after": seconds since the step before, "bytes": latin-1
text, "tokens": tokens in these bytes, "close": true, "reset": true}. An engine answers any request with
``max_tokens`` tokens: see ``engine_steps``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import sys
import time

CHUNKED_HEAD = (
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunk(text: str) -> str:
    raw = text.encode("utf-8")
    return f"{len(raw):x}\r\n{raw.decode('latin-1')}\r\n"


def event(payload: object) -> str:
    return "data: " + (payload if isinstance(payload, str) else json.dumps(payload)) + "\n\n"


def content(chat: bool, text: str, usage: dict | None = None, finish: str | None = None) -> dict:
    choice = {"index": 0, "finish_reason": finish}
    if chat:
        choice["delta"] = {"content": text}
    else:
        choice["text"] = text
    made = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    if usage is not None:
        made["usage"] = usage
    return made


def engine_steps(options: dict, request: dict, hit: bool) -> list[dict]:
    """``first_s`` to the first write, ``gap_s`` between writes, ``per_write`` tokens each, ``usage``: chunk,
    final or none, ``hit_first_s`` instead of first_s for a prompt seen before, ``prompt_extra`` added to the
    reported prompt tokens; ``jitter`` multiplies gaps by 1 ± jitter, by a fixed sequence."""
    prompt = request.get("prompt", "")
    counted = len(prompt) if isinstance(prompt, list) else len(str(prompt).split())
    counted += options.get("prompt_extra", 0)
    wanted, usage_kind = int(request.get("max_tokens", 16)), options.get("usage", "chunk")
    per_write, done, steps = options.get("per_write", 1), 0, []
    cached = {"prompt_tokens_details": {"cached_tokens": counted}} if hit else {}
    after = options.get("hit_first_s", 0.0) if hit and "hit_first_s" in options else options.get("first_s", 0.0)
    jitter, seed = options.get("jitter", 0.0), len(str(prompt)) * 7919 + counted
    while done < wanted:
        now = min(per_write, wanted - done)
        done += now
        usage = {"prompt_tokens": counted, "completion_tokens": done, "total_tokens": counted + done, **cached}
        text = event(content("messages" in request, "x" * now, usage if usage_kind == "chunk" else None,
                             "length" if done == wanted else None))
        if done == wanted:
            if usage_kind != "none":
                text += event({"choices": [], "usage": usage})
            text += event("[DONE]")
        body = chunk(text)
        if not steps:
            body = CHUNKED_HEAD + body
        if done == wanted:
            body += "0\r\n\r\n"
        steps.append({"after": after, "bytes": body, "tokens": now})
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        after = options.get("gap_s", 0.0) * (1 + jitter * (seed / 0x3FFFFFFF - 1))
    return steps


class Oracle:
    def __init__(self, scripts: dict) -> None:
        self.scripts = scripts
        self.reset()

    def reset(self) -> None:
        self.log: list[dict] = []
        self.used: dict[str, int] = {}
        self.seen: set[str] = set()
        self.connections = self.in_flight = self.peak = 0
        self.changes: list[tuple[int, int]] = []  # (ns, streams in flight from then on)

    def _count(self, step: int) -> None:
        self.in_flight += step
        self.peak = max(self.peak, self.in_flight)
        self.changes.append((time.perf_counter_ns(), self.in_flight))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        received = time.perf_counter_ns()
        method, path, _ = head.split(b" ", 2)
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = await reader.readexactly(length)
        if path.startswith(b"/oracle/"):
            return await self._control(path, writer)
        if path == b"/tokenize":
            count = len(json.loads(body)["prompt"])
            return await self._answer(writer, {"count": count, "tokens": [1] * count})
        request = json.loads(body)
        entry = {"received_ns": received, "request": _brief(request), "writes": [], "path": path.decode(),
                 "connection": id(writer)}
        self.log.append(entry)
        self._count(1)
        try:
            return await self._play(request, entry, writer)
        finally:
            self._count(-1)
            entry["ended_ns"] = time.perf_counter_ns()

    async def _play(self, request: dict, entry: dict, writer: asyncio.StreamWriter) -> bool:
        name = request["model"]
        plays = self.scripts[name]
        play = plays[self.used.get(name, 0) % len(plays)]
        self.used[name] = self.used.get(name, 0) + 1
        if "engine" in play:
            key = json.dumps(request.get("prompt") or request.get("messages"))
            entry["hit"] = key in self.seen
            self.seen.add(key)
            steps = engine_steps(play["engine"], request, entry["hit"])
        else:
            steps = play["steps"]
        due = time.perf_counter()
        for step in steps:
            due += step.get("after", 0.0)
            delay = due - time.perf_counter()
            if delay > 0:
                await asyncio.sleep(delay)
            if "bytes" in step:
                entry["writes"].append((time.perf_counter_ns(), step.get("tokens", 0)))
                writer.write(step["bytes"].encode("latin-1"))
                if len(step["bytes"]) > 65536:
                    await writer.drain()
                if writer.transport.is_closing():
                    return False
            if step.get("reset"):
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
            if step.get("close"):
                return False
        return True

    async def _control(self, path: bytes, writer: asyncio.StreamWriter) -> bool:
        answer: dict = {}
        if path == b"/oracle/reset":
            self.reset()
        else:
            answer = {"log": self.log, "peak": self.peak, "changes": self.changes, "connections": self.connections}
        return await self._answer(writer, answer)

    async def _answer(self, writer: asyncio.StreamWriter, answer: dict) -> bool:
        text = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(text) + text)
        await writer.drain()
        return False


def _brief(request: dict) -> dict:
    brief = dict(request)
    if isinstance(brief.get("prompt"), list):
        brief["prompt"] = {"ids": len(brief["prompt"]), "first": brief["prompt"][:8],
                           "distinct": len(set(brief["prompt"]))}
    return brief


async def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        oracle = Oracle(json.load(file))
    server = await asyncio.start_server(oracle.serve, "127.0.0.1", 0, backlog=2048, limit=1 << 24)
    print("PORT", server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
