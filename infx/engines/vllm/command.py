"""vLLM's command line: which argv a resolved server needs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from infx.engines import acceptance
from infx.engines.protocol import ServerFacts
from infx.schema.recipe import Speculative

HOMES: Mapping[str, str] = {
    "model": "the recipe's `model`",
    "host": "the runner; the engine listens on loopback",
    "port": "the runner, which takes a free port",
    "tensor-parallel-size": "a rung's `tp`",
    "pipeline-parallel-size": "a rung's `pp`",
    "data-parallel-size": "a rung's `dp`",
    "enable-expert-parallel": "a rung's `ep`",
    "speculative-config": "`speculative`",
    "kv-offloading-size": "`kv-offload`, whose budget comes from the label's host memory",
    "kv-offloading-backend": "`kv-offload: {backend: …}`",
    "api-key": "the caller's environment (VLLM_API_KEY, by name in the runner profile's `pass-env`)",
}


def gpus(*, tp: int, pp: int, dp: int, ep: int) -> int:
    """GPUs of a layout: TP × PP × DP (expert parallelism reuses them)."""
    return tp * pp * dp


def argv(facts: ServerFacts) -> list[str]:
    """``serve MODEL`` with layout, speculation and serve arguments, keys in alphabetical order."""
    command = ["serve", facts.model_path, "--served-model-name", facts.served_name,
               "--tensor-parallel-size", str(facts.tp)]
    if facts.pp != 1:
        command += ["--pipeline-parallel-size", str(facts.pp)]
    if facts.dp != 1:
        command += ["--data-parallel-size", str(facts.dp)]
    if facts.ep != 1:
        command += ["--enable-expert-parallel"]
    if facts.speculative is not None:
        config = speculative_config(facts.speculative, facts.acceptance_length)
        command += ["--speculative-config", json.dumps(config, separators=(",", ":"))]
    for key in sorted(facts.serve):
        if key != "served-model-name":
            command += flag(key, facts.serve[key])
    return command


def speculative_config(spec: Speculative, acceptance_length: float | None) -> dict[str, JsonValue]:
    """vLLM's ``--speculative-config``; with an acceptance length, synthetic rejection sampling at it."""
    config: dict[str, JsonValue] = {"method": spec.method, "num_speculative_tokens": spec.draft_tokens}
    if spec.model is not None:
        config["model"] = spec.model
    if spec.draft_sample_method is not None:
        config["draft_sample_method"] = spec.draft_sample_method
    if acceptance_length is not None:
        config |= acceptance.vllm(acceptance_length)
    elif spec.rejection_sample_method is not None:
        config["rejection_sample_method"] = spec.rejection_sample_method
    if spec.adaptive_verification is not None:
        config["enable_adaptive_verification"] = spec.adaptive_verification
    return config


def flag(key: str, value: JsonValue) -> list[str]:
    """One serve key as arguments: true → ``--key``, false → ``--no-key``, mappings as JSON, lists as many words."""
    if value is True:
        return [f"--{key}"]
    if value is False:
        return [f"--no-{key}"]
    if isinstance(value, dict):
        return [f"--{key}", json.dumps(value, separators=(",", ":"), sort_keys=True)]
    if isinstance(value, list):
        return [f"--{key}", *(_word(item) for item in value)]
    return [f"--{key}", _word(value)]


def _word(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def listen(host: str, port: int) -> list[str]:
    """Arguments for the address, which no fingerprint holds."""
    return ["--host", host, "--port", str(port)]


def context_limit(serve: Mapping[str, JsonValue]) -> int | None:
    """``max-model-len`` where it is a number; None leaves the model's own limit."""
    limit = serve.get("max-model-len")
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else None


def version_of(reply: Mapping[str, JsonValue]) -> str | None:
    """The version out of ``GET /version``."""
    version = reply.get("version")
    return version if isinstance(version, str) else None
