"""Log lines as ``vllm serve`` prints them: same words, same order, spelled here on purpose."""

from __future__ import annotations

import sys
import time

from infx.simulator.argv import Arguments
from infx.simulator.deployment import Deployment
from infx.simulator.facts import GIB


class Log:
    """Writes lines with the process's name; ``once`` says a thing a single time."""

    def __init__(self, pid: int, out=None) -> None:
        self._pid = pid
        self._out = out or sys.stdout
        self._said: set[str] = set()

    def line(self, text: str, *, who: str = "EngineCore", level: str = "INFO", place: str = "core.py:1") -> None:
        """One line in vLLM's form."""
        stamp = time.strftime("%m-%d %H:%M:%S")
        print(f"({who} pid={self._pid}) {level} {stamp} [{place}] {text}", file=self._out, flush=True)

    def once(self, text: str, **more: str) -> None:
        """The same, unless it was said before."""
        if text not in self._said:
            self._said.add(text)
            self.line(text, **more)


def before_load(log: Log, arguments: Arguments, version: str) -> None:
    """What is printed before anything can be refused."""
    api = {"who": "APIServer", "place": "utils.py:306"}
    log.line("", **api)
    log.line(f"        version {version}", **api)
    log.line(f"        model   {arguments['model']}", **api)
    log.line(f"non-default args: {arguments.non_default()}", who="APIServer", place="utils.py:240")


def start_up(log: Log, arguments: Arguments, deployment: Deployment, version: str) -> None:
    """From the resolved configuration to the captured graphs."""
    limits, facts, api = deployment.limits, deployment.facts, "APIServer"
    for text in deployment.features.warnings:
        log.line(text, level="WARNING", who=api, place="envs.py:1")
    log.line(f"Using max model len {limits.max_model_len}", who=api, place="model.py:1697")
    log.line(
        f"Chunked prefill is enabled with max_num_batched_tokens={limits.max_num_batched_tokens}.",
        who=api, place="scheduler.py:239",
    )  # fmt: skip
    log.line(
        f"Initializing a V1 LLM engine (v{version}) with config: model='{arguments['model']}', "
        f"speculative_config={_speculative(arguments)}, max_seq_len={limits.max_model_len}, "
        f"tensor_parallel_size={facts.tp}, pipeline_parallel_size=1, data_parallel_size=1, "
        f"kv_cache_dtype={arguments['kv_cache_dtype']}, enforce_eager={arguments['enforce_eager']}, "
        f"seed={arguments['seed']}, served_model_name={deployment.names[0]}, "
        f"enable_prefix_caching={deployment.prefix_caching}, "
        f"enable_chunked_prefill={arguments['enable_chunked_prefill']}",
        place="core.py:109",
    )  # fmt: skip
    for rank in range(facts.tp):
        log.line(
            f"rank {rank} in world size {facts.tp} is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank "
            f"{rank}, EP rank N/A, EPLB rank N/A",
            place="parallel_state.py:1723",
        )
    if facts.tp > 1 and deployment.quick_reduce != "NONE":
        log.line(
            "Custom quick allreduce: BF16 inputs will be converted to FP16 to improve performance. set "
            "envs.VLLM_ROCM_QUICK_REDUCE_CAST_BF16_TO_FP16=0 to turn off.",
            place="quick_all_reduce.py:198",
        )
        log.line(
            "Using ['QUICK_REDUCE', 'CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0'",
            place="cuda_communicator.py:245",
        )
    for text in deployment.features.notes:
        log.line(text, place="mono_decode.py:1")
    weights = sum(item.bytes for item in deployment.memory.items if item.name in ("weights", "Engram tables")) / GIB
    loaded = f"Model loading took {weights:.2f} GiB memory and 0.0 seconds"
    log.line(loaded, place="gpu_model_runner.py:4959")
    log.line(f"Available KV cache memory: {deployment.memory.left / GIB:.2f} GiB", place="gpu_worker.py:462")
    log.line(f"GPU KV cache size: {deployment.kv_tokens:,} tokens", place="kv_cache_utils.py:1710")
    log.line(
        f"Maximum concurrency for {limits.max_model_len:,} tokens per request: "
        f"{deployment.kv_tokens / limits.max_model_len:.2f}x",
        place="kv_cache_utils.py:1711",
    )
    if deployment.captured_rows:
        log.line(
            f"Profiling CUDA graph memory: PIECEWISE=1 (largest={deployment.captured_rows}), "
            f"FULL=1 (largest={deployment.captured_rows})",
            place="gpu_model_runner.py:6063",
        )
        log.line("Graph capturing finished in 0 secs, took 0.00 GiB", place="gpu_model_runner.py:6243")


def _speculative(arguments: Arguments) -> str:
    config = arguments["speculative_config"]
    if not isinstance(config, dict):
        return "None"
    method, drafts = config.get("method"), config.get("num_speculative_tokens")
    return f"SpeculativeConfig(method={method!r}, model={config.get('model')!r}, num_spec_tokens={drafts})"


def serving(log: Log, host: str, port: int) -> None:
    """The line before the web server's own ones."""
    log.line(f"Starting vLLM server on http://{host}:{port}", who="APIServer", place="api_server.py:617")
