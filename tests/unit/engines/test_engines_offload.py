"""KV offload: from the recipe and the label's memory to vLLM's argv, and back out of its log."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from infx.engines import ENGINES
from infx.engines.protocol import OffloadFacts
from infx.plan.expand import expand
from infx.plan.offload import Dram, offload_budget_gb, offload_serve
from tests.fakes.recipes import FACTS, recipe

VLLM = ENGINES["vllm"]
DRAM = Dram(host_memory_mib=3_095_781, gpus_per_node=8)


def offloading(backend="native", **changes):
    return recipe(**{"kv-offload": {"tier": "dram", "backend": backend, "dram-utilization": 0.2}, **changes})


def test_golden_serve_keys():
    facts = OffloadFacts(budget_gb=299, tp=2, pp=1, dp=2)
    assert VLLM.offloads["native"](facts) == {"kv-offloading-backend": "native", "kv-offloading-size": 139.23}
    assert VLLM.offloads["lmcache"](facts) == {"kv-transfer-config": {
        "kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both",
        "kv_connector_extra_config": {"lmcache.local_cpu": True, "lmcache.max_local_cpu_size": 69.61}}}


@pytest.mark.parametrize(("backend", "words"), [
    ("native", ["--kv-offloading-backend", "native", "--kv-offloading-size", "138.76"]),
    ("lmcache", ["--kv-transfer-config", json.dumps({
        "kv_connector": "LMCacheConnectorV1",
        "kv_connector_extra_config": {"lmcache.local_cpu": True, "lmcache.max_local_cpu_size": 69.38},
        "kv_role": "kv_both"}, separators=(",", ":"))]),
])
def test_argv_holds_the_budget(backend, words):
    made = offloading(backend, ladder=[{"tp": 2, "concurrency": [1]}])
    plan = expand(made, replace(FACTS, dram=DRAM), source="x")
    argv = next(iter(plan.servers.values())).argv
    assert offload_budget_gb(made, made.ladder[0], DRAM) == 149  # min(…, 2,861,022) MiB × 0.2 × 2/8 ÷ 1e9
    at = argv.index(words[0])
    assert argv[at : at + len(words)] == words


def test_nothing_without_facts_above_a_node_or_for_another_backend():
    made = offloading()
    assert offload_serve(made, made.ladder[0], None) == {}
    assert offload_serve(made, made.ladder[0], Dram(1000, 0)) == {}
    other = offloading("mooncake")
    assert offload_serve(other, other.ladder[0], DRAM) == {}


@pytest.mark.parametrize(("size", "verdict"), [("139.69", "verified"), ("64.0", "mismatch")])
def test_read_back(size, verdict):
    argv = ["serve", "m", "--kv-offloading-backend", "native", "--kv-offloading-size", "139.69"]
    log = (f"(APIServer pid=1) INFO non-default args: {{'model_tag': 'm', 'kv_offloading_size': {size}, "
           "'kv_offloading_backend': 'native'}")
    seen = {item.name: item.verdict for item in VLLM.observe(log, argv, {}, None)}
    assert seen["kv-offloading-size"] == verdict and seen["kv-offloading-backend"] == "verified"


def test_read_back_of_a_connector_printed_as_an_object():
    asked = VLLM.offloads["lmcache"](OffloadFacts(budget_gb=299, tp=2, pp=1, dp=2))["kv-transfer-config"]
    log = ("INFO non-default args: {'model_tag': 'm', 'kv_transfer_config': KVTransferConfig(kv_connector="
           "'LMCacheConnectorV1', engine_id='x', kv_role='kv_both', kv_connector_extra_config={"
           "'lmcache.local_cpu': True, 'lmcache.max_local_cpu_size': 69.61})}")
    argv = ["serve", "m", "--kv-transfer-config", json.dumps(asked)]
    assert {i.name: i.verdict for i in VLLM.observe(log, argv, {}, None)}["kv-transfer-config"] == "verified"
    silent = log.replace("69.61", "5.0")
    assert {i.name: i.verdict for i in VLLM.observe(silent, argv, {}, None)}["kv-transfer-config"] == "mismatch"
