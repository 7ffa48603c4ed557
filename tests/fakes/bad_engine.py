#!/usr/bin/env python3
"""An engine that misbehaves, as a program: BAD_ENGINE says how. Standard library only.

exit: ends at once with a telling line. errors: answers 500 to every completion. deaf: listens and never answers.
never: never listens. dies: serves and ends after BAD_ENGINE_AFTER completions. mute: serves BAD_ENGINE_AFTER
completions, then lives on without another byte. stubborn: serves, and ignores SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = os.environ.get("BAD_ENGINE", "exit")
AFTER = int(os.environ.get("BAD_ENGINE_AFTER", "8"))
served = 0
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        body = b'{"version": "1.0"}' if self.path == "/version" else b"# nothing\n"
        self.answer(200, body)

    def do_POST(self) -> None:
        global served
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if MODE == "errors":
            self.answer(500, b'{"error": {"message": "EngineCore encountered an issue"}}')
            return
        if MODE == "deaf":
            time.sleep(3600)
        with lock:
            served += 1
            count = served
        if count > AFTER and MODE == "dies":
            print("RuntimeError: HIP error: an illegal memory access was encountered", flush=True)
            os._exit(1)
        if count > AFTER and MODE == "mute":
            time.sleep(3600)
        self.complete(request)

    def complete(self, request: dict) -> None:
        tokens, prompt = request["max_tokens"], request["prompt"]
        usage = {"prompt_tokens": len(prompt), "completion_tokens": tokens, "total_tokens": len(prompt) + tokens}
        if not request.get("stream"):
            self.answer(200, json.dumps({"choices": [{"text": "x" * tokens}], "usage": usage}).encode())
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for index in range(1, tokens + 1):
            finish = "length" if index == tokens else None
            event = {"choices": [{"index": 0, "text": "x", "finish_reason": finish}],
                     "usage": {**usage, "completion_tokens": index, "total_tokens": len(prompt) + index}}
            self.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
            time.sleep(0.002)
        self.chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    print("INFO starting a bad engine", flush=True)
    if MODE == "exit":
        sys.exit("ValueError: no HIP GPUs are available")
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "never":
        time.sleep(3600)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
