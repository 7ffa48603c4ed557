"""SGLang's command line and environment: what a resolved server needs (docs/advanced_features/server_arguments.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from infx.engines import acceptance
from infx.engines.protocol import OffloadFacts, ServerFacts
from infx.schema.recipe import Speculative

HOMES: Mapping[str, str] = {
    "model": "the recipe's `model`",
    "model-path": "the recipe's `model`",
    "host": "the runner; the engine listens on loopback",
    "port": "the runner, which takes a free port",
    **dict.fromkeys(("tp", "tp-size", "tensor-parallel-size"), "a rung's `tp`"),
    **dict.fromkeys(("pp", "pp-size", "pipeline-parallel-size"), "a rung's `pp`"),
    **dict.fromkeys(("dp", "dp-size", "data-parallel-size"), "a rung's `dp`"),
    **dict.fromkeys(("ep", "ep-size", "expert-parallel-size"), "a rung's `ep`"),
    "enable-dp-attention": "nothing yet: its data-parallel ranks share the GPUs of `tp`, which no rung can say",
    "speculative-algorithm": "`speculative`",
    "speculative-draft-model-path": "`speculative: {model: …}`",
    "speculative-num-steps": "`speculative: {draft-tokens: …}`",
    "speculative-num-draft-tokens": "`speculative: {draft-tokens: …}`",
    "enable-hierarchical-cache": "`kv-offload: {backend: hicache}`",
    "hicache-size": "`kv-offload`, whose budget comes from the label's host memory",
    "enable-metrics": "nothing: infx always sets it",
    "api-key": "nothing: the engine listens on loopback",
}
ALGORITHMS: Mapping[str, str] = {
    "eagle": "EAGLE", "eagle3": "EAGLE3", "mtp": "NEXTN", "nextn": "NEXTN", "ngram": "NGRAM",
    "standalone": "STANDALONE", "dspark": "DSPARK",
}
"""A recipe's drafting method to ``--speculative-algorithm``; other methods are passed in capitals."""


def gpus(*, tp: int, pp: int, dp: int, ep: int) -> int:
    """GPUs of a layout: TP × PP × DP (expert parallelism reuses them; attention data parallelism is refused)."""
    return tp * pp * dp


def argv(facts: ServerFacts) -> list[str]:
    """Layout, metrics, speculation and serve arguments, keys in alphabetical order."""
    command = ["--model-path", facts.model_path, "--served-model-name", facts.served_name, "--tp-size", str(facts.tp)]
    for name, size in (("pp", facts.pp), ("dp", facts.dp), ("ep", facts.ep)):
        if size != 1:
            command += [f"--{name}-size", str(size)]
    command += ["--enable-metrics"]
    if facts.speculative is not None:
        command += speculative(facts.speculative, facts.serve)
    for key in sorted(facts.serve):
        if key != "served-model-name":
            command += flag(key, facts.serve[key])
    return command


def speculative(spec: Speculative, serve: Mapping[str, JsonValue]) -> list[str]:
    """``--speculative-…``: a chain of ``draft-tokens`` steps (top-1, so that verification sees one more token)."""
    words = ["--speculative-algorithm", ALGORITHMS.get(spec.method, spec.method.upper())]
    if spec.model is not None:
        words += ["--speculative-draft-model-path", spec.model]
    if spec.method == "ngram":
        return [*words, "--speculative-num-draft-tokens", str(spec.draft_tokens)]
    words += ["--speculative-num-steps", str(spec.draft_tokens)]
    if "speculative-eagle-topk" not in serve:
        words += ["--speculative-eagle-topk", "1"]
    return [*words, "--speculative-num-draft-tokens", str(spec.draft_tokens + 1)]


def env(facts: ServerFacts) -> dict[str, str]:
    """Synthetic acceptance is environment in SGLang."""
    return {} if facts.acceptance_length is None else acceptance.sglang(facts.acceptance_length)


def flag(key: str, value: JsonValue) -> list[str]:
    """One serve key: true → ``--key``, false → nothing (SGLang's switches have no ``--no-`` form), mappings as JSON."""
    if value is True:
        return [f"--{key}"]
    if value is False:
        return []
    if isinstance(value, list):
        return [f"--{key}", *(item if isinstance(item, str) else json.dumps(item) for item in value)]
    return [f"--{key}", value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)]


def hicache(facts: OffloadFacts) -> dict[str, JsonValue]:
    """``--hicache-size`` is whole decimal gigabytes for every rank."""
    return {"enable-hierarchical-cache": True, "hicache-size": facts.budget_gb // (facts.tp * facts.pp * facts.dp)}


OFFLOADS: Mapping[str, Callable[[OffloadFacts], dict[str, JsonValue]]] = {"hicache": hicache}


def listen(host: str, port: int) -> list[str]:
    """Arguments for the address, which no fingerprint holds."""
    return ["--host", host, "--port", str(port)]


def context_limit(serve: Mapping[str, JsonValue]) -> int | None:
    """``context-length`` where it is a number; None leaves the model's own limit."""
    limit = serve.get("context-length")
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else None


def version_of(reply: Mapping[str, JsonValue]) -> str | None:
    """The version out of ``GET /get_server_info``."""
    version = reply.get("version")
    return version if isinstance(version, str) else None
