"""The engines that infx knows: one explicit table."""

from __future__ import annotations

from infx.engines.protocol import Engine
from infx.engines.sglang import ENGINE as SGLANG
from infx.engines.vllm import ENGINE as VLLM

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (VLLM, SGLANG)}
