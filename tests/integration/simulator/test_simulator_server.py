"""The binary as a process: ready, exact streams, real refusals, a bounded end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[3]
QWEN = "amd/Qwen3.8-27B-Quark-AWQ-MXFP4"
FLASH = "deepseek-ai/DeepSeek-V4.1-Flash"
SPECULATIVE = (
    '{"method":"dspark","num_speculative_tokens":5,"draft_sample_method":"probabilistic",'
    '"rejection_sample_method":"synthetic","synthetic_acceptance_length":3.51}'
)
HEADLINE = ["-tp", "2", "--no-swa-bounded-replay", "--block-size", "128", "--speculative-config", SPECULATIVE]


class Server:
    """A running infx-sim; ``lines`` grows as it logs."""

    def __init__(self, model: str, *flags: str, **env: str) -> None:
        command = [sys.executable, "-m", "infx.simulator", "serve", model, "--host", "127.0.0.1", "--port", "0", *flags]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line)
            if "Application startup complete." in line:
                break
        else:
            raise AssertionError("".join(self.lines))
        port = next(re.search(r"http://127\.0\.0\.1:(\d+)", line) for line in self.lines if "Starting vLLM" in line)[1]
        self.url = f"http://127.0.0.1:{port}"
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout))
        self._reader.start()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)  # a crowded machine may take long to reap it
        self._reader.join()
        self.process.stdout.close()
        return code

    def metrics(self) -> dict:
        text = requests.get(f"{self.url}/metrics", timeout=10).text
        return {
            (sample.name, *sorted(set(sample.labels.values()) - {"0", QWEN, FLASH})): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


@pytest.fixture
def start():
    servers: list[Server] = []

    def run(*words: str, **env: str) -> Server:
        servers.append(Server(*words, **env))
        return servers[-1]

    yield run
    for server in servers:
        if server.process.poll() is None:
            server.stop()


def stream(url: str, path: str = "/v1/completions", **body: object) -> list[dict]:
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = {"stream": True, "stream_options": options, "ignore_eos": True, **body}
    with requests.post(url + path, json=body, stream=True, timeout=60) as reply:
        assert reply.status_code == 200 and reply.headers["content-type"].startswith("text/event-stream")
        events = [line.removeprefix(b"data: ") for line in reply.iter_lines() if line]
    assert events[-1] == b"[DONE]"
    return [json.loads(event) for event in events[:-1]]


def test_streams_count_exactly_and_usage_rises_chunk_by_chunk(start):
    server = start(FLASH, *HEADLINE, VLLM_ROCM_MONO_DECODE="1", VLLM_ROCM_USE_AITER="1")
    with ThreadPoolExecutor(12) as pool:
        wanted = [(300 + 17 * n, 20 + n) for n in range(12)]
        send = lambda pair: stream(server.url, prompt=list(range(pair[1], sum(pair))), max_tokens=pair[1])  # noqa: E731
        streams = list(pool.map(send, wanted))
    for (prompt, output), events in zip(wanted, streams, strict=True):
        counts = [event["usage"]["completion_tokens"] for event in events]
        assert counts == sorted(counts) and counts[-1] == counts[-2] == output
        assert all(0 < b - a <= 6 for a, b in zip([0, *counts[:-2]], counts[:-1], strict=True))
        assert {event["usage"]["prompt_tokens"] for event in events} == {prompt}
        assert [event["usage"]["total_tokens"] for event in events] == [prompt + count for count in counts]
        assert [event["choices"][0]["finish_reason"] for event in events[:-1]][-1] == "length"
    found = server.metrics()
    assert found[("vllm:generation_tokens_total",)] == sum(output for _, output in wanted)
    assert found[("vllm:prompt_tokens_total",)] == sum(prompt for prompt, _ in wanted)
    assert found[("vllm:request_success_total", "length")] == 12
    assert found[("vllm:num_requests_running",)] == found[("vllm:num_requests_waiting",)] == 0
    assert server.stop() == 0
    said = "".join(server.lines)
    for line in ("DSv4.1 mono decode layer active", "DSv4.1 mono decode FFN launch active"):
        assert said.count(line) == 1


def test_the_api_around_a_request(start):
    server = start(QWEN, "--max-model-len", "9472", "--served-model-name", QWEN)
    get = lambda path: requests.get(server.url + path, timeout=10)  # noqa: E731
    assert get("/health").status_code == 200
    assert get("/version").json() == {"version": "infx-sim 0.1.0", "simulated": True}
    assert get("/v1/models").json()["data"][0]["max_model_len"] == 9472
    assert get("/nothing").status_code == 404 and get("/v1/completions").status_code == 405
    reply = requests.post(f"{server.url}/v1/completions", json={"prompt": [1] * 9000, "max_tokens": 473}, timeout=10)
    assert reply.status_code == 400 and "maximum context length is 9472" in reply.json()["error"]["message"]
    whole = requests.post(f"{server.url}/v1/completions", json={"prompt": "abcd" * 50, "max_tokens": 7}, timeout=10)
    assert whole.json()["usage"] == {"prompt_tokens": 50, "total_tokens": 57, "completion_tokens": 7}
    events = stream(server.url, "/v1/chat/completions", messages=[{"role": "user", "content": "hi"}], max_tokens=5)
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert events[0]["usage"]["completion_tokens"] == 0 and events[-1]["usage"]["completion_tokens"] == 5
    again = requests.post(f"{server.url}/v1/completions", json={"prompt": "abcd" * 50, "max_tokens": 7}, timeout=10)
    assert again.json()["choices"][0]["text"] == whole.json()["choices"][0]["text"]
    assert server.metrics()[("vllm:prefix_cache_hits_total",)] == 48
    assert requests.post(f"{server.url}/reset_prefix_cache", timeout=10).status_code == 200
    stream(server.url, prompt="abcd" * 50, max_tokens=2)
    assert server.metrics()[("vllm:prefix_cache_hits_total",)] == 48


def test_a_client_that_leaves_is_aborted_and_its_room_given_back(start):
    server = start(QWEN, "--max-model-len", "9472")
    body = {"prompt": [1, 2, 3], "max_tokens": 9000, "stream": True, "ignore_eos": True}
    with requests.post(f"{server.url}/v1/completions", json=body, stream=True, timeout=10) as reply:
        lines = reply.iter_lines()
        next(lines)
        assert server.metrics()[("vllm:num_requests_running",)] == 1
    for _ in range(200):
        found = server.metrics()
        if found[("vllm:num_requests_running",)] == 0:
            break
    assert found[("vllm:request_success_total", "abort")] == 1 and found[("vllm:kv_cache_usage_perc",)] == 0


def test_a_client_that_leaves_while_its_request_is_in_the_front_end_is_aborted_there(start):
    # 18 virtual milliseconds of front end are 18 real seconds here
    server = start(QWEN, "--max-model-len", "9472", INFX_SIM_SPEED="0.001")
    body = {"prompt": [1, 2, 3], "max_tokens": 9, "stream": True}
    with pytest.raises(requests.exceptions.Timeout):
        list(requests.post(f"{server.url}/v1/completions", json=body, stream=True, timeout=0.5).iter_lines())
    for _ in range(200):
        found = server.metrics()
        if found.get(("vllm:request_success_total", "abort")):
            break
    assert found[("vllm:request_success_total", "abort")] == 1
    assert found[("vllm:num_requests_running",)] == found[("vllm:num_requests_waiting",)] == 0
    assert server.stop() == 0


def test_sigterm_in_the_middle_of_a_stream_ends_in_bounded_time_with_0(start):
    server = start(QWEN, "--max-model-len", "9472")
    body = {"prompt": [1, 2, 3], "max_tokens": 9000, "stream": True, "ignore_eos": True}
    with requests.post(f"{server.url}/v1/completions", json=body, stream=True, timeout=30) as reply:
        lines = reply.iter_lines()
        next(lines)
        assert server.stop() == 0
    assert "Traceback" not in "".join(server.lines)


def test_ten_times_faster_time_gives_the_same_virtual_latency(start):
    flags = ("--max-model-len", "9472")
    slow, fast = start(QWEN, *flags), start(QWEN, *flags, INFX_SIM_SPEED="10")
    for server in (slow, fast):
        stream(server.url, prompt=[7] * 3000, max_tokens=100)
    one, ten = (server.metrics()[("vllm:request_decode_time_seconds_sum",)] for server in (slow, fast))
    assert one == pytest.approx(ten, rel=1e-9)


def refused(*words: str, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "infx.simulator", *words], cwd=ROOT, env={**os.environ, **env}, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "env", "code", "said"),
    [
        (["serve", QWEN, "--max-num-batched-tokns", "1"], {}, 2, "unrecognized arguments: --max-num-batched-tokns 1"),
        (["serve", QWEN], {"VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": "int4"}, 1, "ValueError: Invalid value 'int4' for"),
        (["serve", FLASH, *HEADLINE, "-tp", "8"], {"VLLM_ROCM_MONO_DECODE": "1"}, 1, "VLLM_ROCM_USE_AITER=1"),
        (["serve", QWEN], {"INFX_SIM_SPEED": "fast"}, 1, "INFX_SIM_SPEED must be a positive number"),
        (["serve", "no/such"], {}, 1, "is not a local folder and is not a valid model identifier"),
    ],
)
def test_what_cannot_start_says_why_and_leaves(words, env, code, said):
    got, text = refused(*words, "--port", "0", **env)
    assert got == code and said in text and "Traceback" not in text


def test_a_port_in_use_is_said_as_the_engine_says_it(start):
    port = start(QWEN, "--max-model-len", "9472").url.rpartition(":")[2]
    code, text = refused("serve", QWEN, "--host", "127.0.0.1", "--port", port)
    assert code == 1 and "[Errno 98]" in text and "address already in use" in text
