"""How each client is called and where its figures lie. Peers live in environments of their own, given by path."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Job:
    """One run: ``requests`` requests of ``isl``/``osl`` tokens, ``concurrency`` at a time; ``tokenizer`` is local."""

    url: str
    model: str
    tokenizer: str
    concurrency: int
    requests: int
    isl: int
    osl: int
    vocabulary: int
    out: Path


@dataclass(frozen=True)
class Figures:
    """What a client said: milliseconds; ITL is each tool's own figure under that name."""

    requests: int
    ttft_p50: float
    ttft_p99: float
    ttft_mean: float
    itl_p50: float
    itl_p99: float
    itl_mean: float


@dataclass(frozen=True)
class Client:
    """A client: its command, the environment variables to drop, and the reader of its figures."""

    name: str
    command: Callable[[Job], list[str]]
    read: Callable[[Job, str], Figures]
    drop: tuple[str, ...] = ()


def infx() -> Client:
    script = str(Path(__file__).parent / "infx_client.py")

    def command(job: Job) -> list[str]:
        return [sys.executable, script, job.url, job.model, str(job.concurrency), str(job.requests), str(job.isl),
                str(job.osl), str(job.vocabulary)]  # fmt: skip

    def read(job: Job, stdout: str) -> Figures:
        found = json.loads(stdout.strip().splitlines()[-1])
        return Figures(found["requests"], *found["ttft"], found["ttft_mean"], *found["itl"], found["itl_mean"])

    return Client("infx", command, read)


def vllm_bench(environment: Path) -> Client:
    def command(job: Job) -> list[str]:
        return [str(environment / "bin/vllm"), "bench", "serve", "--backend", "openai", "--base-url", job.url,
                "--endpoint", "/v1/completions", "--model", job.model, "--tokenizer", job.tokenizer,
                "--dataset-name", "random", "--random-input-len", str(job.isl), "--random-output-len", str(job.osl),
                "--num-prompts", str(job.requests), "--max-concurrency", str(job.concurrency), "--ignore-eos",
                "--save-result", "--save-detailed", "--result-dir", str(job.out), "--result-filename", "vllm.json",
                "--disable-tqdm", "--percentile-metrics", "ttft,itl", "--metric-percentiles", "50,99",
                "--ready-check-timeout-sec", "0"]  # fmt: skip

    def read(job: Job, stdout: str) -> Figures:
        found = json.loads((job.out / "vllm.json").read_text())
        ttft = np.array(found["ttfts"]) * 1000
        itl = np.concatenate([np.array(one) for one in found["itls"]]) * 1000
        return Figures(found["completed"], *np.percentile(ttft, [50, 99]), ttft.mean(), *np.percentile(itl, [50, 99]),
                       itl.mean())  # fmt: skip

    return Client("vllm bench", command, read)


def guidellm(environment: Path) -> Client:
    def command(job: Job) -> list[str]:
        backend = {"kind": "openai_http", "target": job.url, "model": job.model, "request_format": "/v1/completions"}
        return [str(environment / "bin/guidellm"), "run", "--backend", json.dumps(backend),
                "--profile", f"kind=concurrent,streams={job.concurrency}",
                "--constraint", f"kind=max_requests,count={job.requests}",
                "--tokenizer", "kind=hf_auto,model=" + job.tokenizer,
                "--data", f"kind=synthetic_text,prompt_tokens={job.isl},output_tokens={job.osl}",
                "--output", f"kind=json,path={job.out / 'guidellm.json'}"]  # fmt: skip

    def read(job: Job, stdout: str) -> Figures:
        found = json.loads((job.out / "guidellm.json").read_text())["benchmarks"][0]
        metrics = found["metrics"]
        ttft = metrics["time_to_first_token_ms"]["successful"]
        itl = metrics["inter_token_latency_ms"]["successful"]
        return Figures(int(found["metrics"]["request_totals"]["successful"]), ttft["percentiles"]["p50"],
                       ttft["percentiles"]["p99"], ttft["mean"], itl["percentiles"]["p50"], itl["percentiles"]["p99"],
                       itl["mean"])  # fmt: skip

    return Client("GuideLLM", command, read)


def aiperf(environment: Path) -> Client:
    def command(job: Job) -> list[str]:
        return [str(environment / "bin/aiperf"), "profile", "--model", job.model, "--url", job.url,
                "--endpoint-type", "completions", "--streaming", "--concurrency", str(job.concurrency),
                "--request-count", str(job.requests), "--tokenizer", job.tokenizer,
                "--synthetic-input-tokens-mean", str(job.isl), "--synthetic-input-tokens-stddev", "0",
                "--output-tokens-mean", str(job.osl), "--output-tokens-stddev", "0",
                "--extra-inputs", "ignore_eos:true", "--extra-inputs", f"min_tokens:{job.osl}",
                "--artifact-dir", str(job.out / "aiperf"), "--ui", "none"]  # fmt: skip

    def read(job: Job, stdout: str) -> Figures:
        [file] = sorted((job.out / "aiperf").rglob("profile_export_aiperf.json"))[-1:]
        found = json.loads(file.read_text())
        ttft, itl = found["time_to_first_token"], found["inter_token_latency"]
        return Figures(int(found["request_count"]["avg"]), ttft["p50"], ttft["p99"], ttft["avg"], itl["p50"],
                       itl["p99"], itl["avg"])  # fmt: skip

    return Client("AIPerf", command, read, drop=("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
