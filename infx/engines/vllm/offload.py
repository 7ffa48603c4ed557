"""vLLM's KV offload to host memory: which serve keys ask for a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from infx.engines.protocol import OffloadFacts

GIB = 1 << 30


def native(facts: OffloadFacts) -> dict[str, JsonValue]:
    """``--kv-offloading-size`` is GiB for the TP and PP ranks of one data-parallel rank together
    (vllm/config/cache.py), so each of the ``dp`` engine cores gets its share of the budget."""
    return {"kv-offloading-backend": "native", "kv-offloading-size": _floor(facts.budget_gb * 1e9 / GIB / facts.dp)}


def lmcache(facts: OffloadFacts) -> dict[str, JsonValue]:
    """LMCache inside the workers: GiB a worker, as ``lmcache.max_local_cpu_size``.

    ``--kv-offloading-backend lmcache`` is not taken: from vLLM 0.32 on it reaches for a separate LMCache server and
    drops the size (vllm/config/vllm.py), so that the budget would be anybody's.
    """
    each = _floor(facts.budget_gb * 1e9 / GIB / (facts.tp * facts.pp * facts.dp))
    return {"kv-transfer-config": {
        "kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both",
        "kv_connector_extra_config": {"lmcache.local_cpu": True, "lmcache.max_local_cpu_size": each}}}


def _floor(gib: float) -> float:
    """Two decimals, never above the budget."""
    return math.floor(gib * 100) / 100


BACKENDS: Mapping[str, Callable[[OffloadFacts], dict[str, JsonValue]]] = {"native": native, "lmcache": lmcache}
