#!/usr/bin/env python3
"""A server with SGLang's command line, log lines, metric names and replies. Standard library only.

FAKE_SGLANG_CAP: what it makes of --max-running-requests, to test that a silent change is caught.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
totals = {"prompt": 0, "generation": 0, "requests": 0, "running": 0}
GAUGES = {"num_queue_reqs": 0, "token_usage": 0.25, "spec_accept_length": 3.5}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/metrics":
            return self.answer(200, metrics().encode())
        if self.path == "/get_server_info":
            return self.answer(200, json.dumps({"version": "0.5.9", "api_key": "sk-planted", "tp_size": 1}).encode())
        return self.answer(404, b"{}")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/completions":
            return self.answer(404, b"{}")
        tokens, prompt = request["max_tokens"], len(request["prompt"])
        with lock:
            totals["running"] += 1
        try:
            self.complete(request, tokens, prompt)
        finally:
            with lock:
                totals["running"] -= 1
                totals["requests"] += 1
                totals["prompt"] += prompt
                totals["generation"] += tokens
        return None

    def complete(self, request: dict, tokens: int, prompt: int) -> None:
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        if not request.get("stream"):
            return self.answer(200, json.dumps({"choices": [{"text": "x" * tokens}], "usage": usage}).encode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for index in range(1, tokens + 1):
            event = {"choices": [{"index": 0, "text": "x", "finish_reason": "length" if index == tokens else None}],
                     "usage": {**usage, "completion_tokens": index, "total_tokens": prompt + index}}
            self.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
            time.sleep(0.002)
        self.chunk(b"data: [DONE]\n\n")
        return self.wfile.write(b"0\r\n\r\n") and None

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def metrics() -> str:
    own = '{model_name="m",tp_rank="0",dp_rank="0"}'
    with lock:
        lines = [f"# TYPE sglang:{name} gauge\nsglang:{name}{own} {value}" for name, value in
                 {"num_running_reqs": totals["running"], **GAUGES}.items()]
        lines += [f"# TYPE sglang:{name} counter\nsglang:{name}{own} {value}" for name, value in {
            "prompt_tokens_total": totals["prompt"], "generation_tokens_total": totals["generation"],
            "cached_tokens_total": 0, "num_retracted_requests_total": 0, "num_requests_total": totals["requests"],
        }.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-m", required=True, choices=["sglang.launch_server"])
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--tp-size", type=int, default=1)
    parser.add_argument("--enable-metrics", action="store_true", required=True)
    parser.add_argument("--context-length", type=int)
    parser.add_argument("--max-running-requests", type=int)
    parser.add_argument("--mem-fraction-static", type=float)
    parser.add_argument("--load-format", default="auto")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    given = vars(parser.parse_args())
    given.pop("m")
    cap = int(os.environ.get("FAKE_SGLANG_CAP") or given["max_running_requests"] or 64)
    said = ", ".join(f"{name}={value!r}" for name, value in given.items())
    print(f"[2026-11-20 10:00:00] server_args=ServerArgs({said}, api_key='sk-planted')")
    print(f"[2026-11-20 10:00:01] max_total_num_tokens=4096, chunked_prefill_size=8192, max_prefill_tokens=16384, "
          f"max_running_requests={cap}, context_len={given['context_length'] or 2048}, available_gpu_mem=1.00 GB")
    print(f"[2026-11-20 10:00:02] INFO:     Started server process [{os.getpid()}]")
    print("[2026-11-20 10:00:02] The server is fired up and ready to roll!", flush=True)
    ThreadingHTTPServer((given["host"], given["port"]), Handler).serve_forever()


if __name__ == "__main__":
    main()
