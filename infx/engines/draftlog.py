"""Owns what engines' logs show of the precision in which a drafter runs: patterns, with the line as proof."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infx.engines.loglines import clean_lines


@dataclass(frozen=True)
class Shown:
    """One fact that a log shows. ``of``: ``draft`` (once it loads), ``target`` (before) or ``process``."""

    name: str
    of: str
    value: str
    evidence: str


_LOADING = re.compile(r"Loading draft(er)? model")
_PROCESS = {
    "speculation": re.compile(r"speculative_config=(SpeculativeConfig\([^)]*\)|None)"),
    "compute dtype": re.compile(r"\bdtype=(?:torch\.)?(\w+)"),
    "quantization": re.compile(r"\bquantization=([\w-]+)"),
    "KV cache dtype": re.compile(r"\bkv_cache_dtype=([\w-]+)"),
}
_START = re.compile(r"Initializing a V\d LLM engine|server_args=")
_LAYERS = {
    "MoE backend": re.compile(r"Using '?([\w ]+?)'? (?:\w+ )?MoE backend\b"),
    "weights and activations": re.compile(r"backend for (OCP_MX_Scheme\.\w+)"),
    "linear kernel": re.compile(r"Selected (\w+) for \w+"),
}
_DRAFT = {
    "embedding": re.compile(r"(Sharing target model embedding weights with the draft model"
                            r"|Keeping separate embedding weights)"),
    "output head": re.compile(r"(Sharing target model lm_head weights with the draft model"
                              r"|Keeping separate lm_head weights from the target model)"),
    "checkpoint": re.compile(r"weights for ([\w.-]+/[\w.-]+)"),
}


def shown(log: str) -> list[Shown]:
    """Every fact once, in the order of the log; nothing of the drafter where the log says nothing about it."""
    found: dict[tuple[str, str, str], Shown] = {}
    part = "target"
    for line in clean_lines(log):
        if _LOADING.search(line):
            part = "draft"
            found.setdefault(("loaded", "draft", ""), Shown("loaded", "draft", "yes", line[:300]))
            continue
        groups = [("draft", _DRAFT)] if part == "draft" else []
        groups += [("process", _PROCESS)] if _START.search(line) else [(part, _LAYERS)]
        for of, patterns in groups:
            for name, pattern in patterns.items():
                if match := pattern.search(line):
                    found.setdefault((name, of, match[1]), Shown(name, of, match[1], line[:300]))
    return list(found.values())
