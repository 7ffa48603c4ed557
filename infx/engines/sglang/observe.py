"""What a running SGLang says of itself in its log: all of its arguments, and what it made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from infx.engines.loglines import clean_lines
from infx.engines.readback import compared, environment, keywords, wanted_flags
from infx.schema.result import Observed

_ARGS = re.compile(r"server_args=(ServerArgs\(.*\))\s*$")
_PID = re.compile(r"Started server process \[(\d+)\]")
_LINES: dict[str, re.Pattern[str]] = {
    "kv-cache-tokens": re.compile(r"max_total_num_tokens=(\d+)"),
    "chunked-prefill-size": re.compile(r"\bmax_total_num_tokens=.*\bchunked_prefill_size=(-?\d+)"),
    "max-prefill-tokens": re.compile(r"\bmax_total_num_tokens=.*\bmax_prefill_tokens=(\d+)"),
    "max-running-requests": re.compile(r"\bmax_total_num_tokens=.*\bmax_running_requests=(\d+)"),
    "context-length": re.compile(r"\bmax_total_num_tokens=.*\bcontext_len=(\d+)"),
    "attention-backend": re.compile(r"Attention backend not (?:explicitly )?specified\. Use (\w+) backend by default"),
    "capture-sizes": re.compile(r"Capture cuda graph bs (\[[\d, ]*\])"),
}
ALIASES = {"tp": "tp-size", "tensor-parallel-size": "tp-size", "pipeline-parallel-size": "pp-size",
            "data-parallel-size": "dp-size", "expert-parallel-size": "ep-size", "model": "model-path"}
_SECRET = {"api-key", "admin-api-key", "ssl-keyfile-password"}
_OURS = {"host", "port"}


def effective(log: str) -> dict[str, JsonValue]:
    """Every argument as the engine took it, defaults among them; then what its own lines say, which is newer."""
    lines = clean_lines(log)
    found = _arguments(lines)
    for name, pattern in _LINES.items():
        match = next((match for line in lines if (match := pattern.search(line))), None)
        if match is not None:
            found[name] = int(match[1]) if match[1].lstrip("-").isdigit() else match[1]
    return found


def observe(log: str, argv: Sequence[str], env: Mapping[str, str], environ: Mapping[str, str] | None
            ) -> list[Observed]:
    """Verdicts on every argument and environment name that was asked for.

    ``environ``: the environment of the running engine process, None where it cannot be read.
    """
    lines = clean_lines(log)
    said = _arguments(lines)
    made = [_argument(name, wanted, said, lines) for name, wanted in wanted_flags(argv).items() if name not in _OURS]
    return made + environment(env, environ, "environment of the engine process")


def features(log: str, env: Mapping[str, str]) -> list[Observed]:
    """SGLang has no claimed feature that its log proves."""
    return []


def server_pid(log: str) -> int | None:
    """Process id of the HTTP server as uvicorn logs it."""
    match = _PID.search(log)
    return int(match[1]) if match else None


def _argument(name: str, wanted: JsonValue, said: Mapping[str, JsonValue], lines: Sequence[str]) -> Observed:
    pattern = _LINES.get(name)
    for line in lines if pattern is not None else ():
        if match := pattern.search(line):
            value = int(match[1]) if match[1].lstrip("-").isdigit() else match[1]
            return compared(name, wanted, value, line)
    key = ALIASES.get(name, name)
    if key in said:
        return compared(name, wanted, said[key], f"server_args: {key.replace('-', '_')}={said[key]!r}")
    return Observed(name=name, wanted=wanted, verdict="unreadable",
                    evidence="server_args has no such argument" if said else "")


def _arguments(lines: Sequence[str]) -> dict[str, JsonValue]:
    match = next((match for line in lines if (match := _ARGS.search(line))), None)
    found = {key.replace("_", "-"): value for key, value in keywords(match[1]).items()} if match else {}
    return {key: value for key, value in found.items() if key not in _SECRET}
