"""What a running vLLM says of itself in its log: effective settings, and verdicts on what the recipe asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from infx.engines.loglines import clean_lines
from infx.engines.readback import compared, environment, keywords, wanted_flags
from infx.schema.result import Observed

_ARGS = re.compile(r"non-default args: (\{.*\})")
_UNKNOWN_ENV = re.compile(r"Unknown vLLM environment variable detected: (\w+)")
_API_PID = re.compile(r"\(APIServer pid=(\d+)\)")
_LINES: dict[str, re.Pattern[str]] = {
    "max-model-len": re.compile(r"Using max model len (\d+)"),
    "max-num-batched-tokens": re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)"),
    "tensor-parallel-size": re.compile(r"V1 LLM engine .*\btensor_parallel_size=(\d+)"),
    "pipeline-parallel-size": re.compile(r"V1 LLM engine .*\bpipeline_parallel_size=(\d+)"),
    "data-parallel-size": re.compile(r"V1 LLM engine .*\bdata_parallel_size=(\d+)"),
    "quantization": re.compile(r"V1 LLM engine .*\bquantization=([\w-]+)"),
    "kv-cache-dtype": re.compile(r"V1 LLM engine .*\bkv_cache_dtype=([\w-]+)"),
    "dtype": re.compile(r"V1 LLM engine .*\bdtype=torch\.(\w+)"),
    "enforce-eager": re.compile(r"V1 LLM engine .*\benforce_eager=(\w+)"),
    "enable-prefix-caching": re.compile(r"V1 LLM engine .*\benable_prefix_caching=(\w+)"),
    "draft-method": re.compile(r"SpeculativeConfig\(method='(\w+)'"),
    "draft-tokens": re.compile(r"SpeculativeConfig\(.*\bnum_spec_tokens=(\d+)"),
    "kv-cache-tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
    "attention-backend": re.compile(r"(?:Using|Overriding with) (\w+)(?: attention)? (?:backend )?out of potential"),
    "moe-backend-used": re.compile(r"Using '?(\w+)'? \w* ?MoE backend"),
    "capture-sizes": re.compile(r"(?:CUDA|HIP) graph memory: (.+)$"),
    "version": re.compile(r"Initializing a V1 LLM engine \(v([\w.+-]+)\)"),
}
DECIDES: dict[str, tuple[str, ...]] = {
    "model": ("model", "model-tag"),
    "speculative-config": ("speculative-config", "draft-method", "draft-tokens"),
    "compilation-config": ("compilation-config", "capture-sizes"),
    "moe-backend": ("moe-backend", "moe-backend-used"),
}
"""Flags to the settings that they decide, where these are more than the one of the flag's name."""
_PROOFS = {"VLLM_ROCM_MONO_DECODE": re.compile(r"mono decode .*\b(layer|launch) active", re.IGNORECASE)}
"""Claimed features by the name that switches them on, and the log line that proves that they ran."""


def effective(log: str) -> dict[str, JsonValue]:
    """Settings as the engine reports them: its non-default arguments, and figures of its own log lines."""
    found: dict[str, JsonValue] = {}
    for line in clean_lines(log):
        if match := _ARGS.search(line):
            found.update({key.replace("_", "-"): value for key, value in keywords(match[1]).items()})
        for name, pattern in _LINES.items():
            if name not in found and (match := pattern.search(line)):
                found[name] = _figure(match[1])
    return found


def observe(log: str, argv: Sequence[str], env: Mapping[str, str], environ: Mapping[str, str] | None
            ) -> list[Observed]:
    """Verdicts on every argument and environment name that was asked for, with the line that says so.

    ``environ``: the environment of the running engine process, None where it cannot be read.
    """
    lines = clean_lines(log)
    given = next((match for line in lines if (match := _ARGS.search(line))), None)
    arguments = {key.replace("_", "-"): value for key, value in keywords(given[1]).items()} if given else {}
    made = [_argument(name, wanted, arguments, lines) for name, wanted in wanted_flags(argv).items()]
    if len(argv) > 1 and argv[0] == "serve":
        made.append(_argument("model", argv[1], arguments, lines))
    made += environment(env, environ, "environment of the engine process")
    unknown = {match[1]: line for line in lines if (match := _UNKNOWN_ENV.search(line))}
    return [_ignored(item, unknown) for item in made]


def features(log: str, env: Mapping[str, str]) -> list[Observed]:
    """Claimed features: verified by their log line, else unreadable (unproven)."""
    lines = clean_lines(log)
    made = []
    for name, proof in _PROOFS.items():
        if env.get(name) in ("1", "true", "True"):
            line = next((line for line in lines if proof.search(line)), None)
            made.append(Observed(name=f"feature {name}", wanted=True, found=True if line else None,
                                 evidence=(line or "")[:300], verdict="verified" if line else "unreadable"))
    return made


def server_pid(log: str) -> int | None:
    """Process id of the API server as it logs it (inside its own process namespace)."""
    match = _API_PID.search(log)
    return int(match[1]) if match else None


def _argument(name: str, wanted: JsonValue, arguments: Mapping[str, JsonValue], lines: Sequence[str]) -> Observed:
    pattern = _LINES.get(name)
    if pattern is not None:
        for line in lines:
            if match := pattern.search(line):
                return compared(name, wanted, _figure(match[1]), line)
    if name in arguments:
        return compared(name, wanted, arguments[name], "non-default args")
    if arguments and wanted not in (False, None) and name not in _FOLDED:
        return Observed(name=name, wanted=wanted, found="default", verdict="unreadable",
                        evidence="not among the non-default args: dropped, or equal to the default")
    return Observed(name=name, wanted=wanted, verdict="unreadable")


_FOLDED = {"host", "port"}


def _ignored(item: Observed, unknown: Mapping[str, str]) -> Observed:
    name = item.name.removeprefix("env ")
    if item.name.startswith("env ") and name in unknown:
        return Observed(name=item.name, wanted=item.wanted, found="unknown to this engine", verdict="mismatch",
                        evidence=unknown[name][:300])
    return item


def _figure(text: str) -> JsonValue:
    plain = text.replace(",", "")
    if plain.isdigit():
        return int(plain)
    return {"True": True, "False": False, "None": None}.get(text, text)
