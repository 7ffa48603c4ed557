"""KV offload of a recipe: from the label's host memory to the serve keys that ask the engine for it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from infx.engines import ENGINES
from infx.engines.protocol import OffloadFacts
from infx.plan.merge import merge_patch
from infx.predict.offload import dram_budget_gb
from infx.schema.catalog import Label
from infx.schema.recipe import Recipe, Rung


@dataclass(frozen=True)
class Dram:
    """Host memory of a node that engines may use, MiB, and the GPUs that share it."""

    host_memory_mib: int
    gpus_per_node: int


def dram_of(label: Label | None) -> Dram | None:
    """What a label states; None where it does not say enough for a budget."""
    if label is None or label.host_memory_mib is None or label.gpus_per_node is None:
        return None
    return Dram(label.host_memory_mib, label.gpus_per_node)


def offload_budget_gb(recipe: Recipe, rung: Rung, dram: Dram | None) -> int | None:
    """The budget of a rung's server, decimal GB; None without offload, without facts, and above one node."""
    if recipe.kv_offload is None or dram is None:
        return None
    gpus = ENGINES[recipe.engine].gpus(tp=rung.tp, pp=rung.pp, dp=rung.dp, ep=rung.ep)
    if gpus > dram.gpus_per_node:
        return None
    return dram_budget_gb(host_memory_mib=dram.host_memory_mib, dram_utilization=recipe.kv_offload.dram_utilization,
                          gpus=gpus, gpus_per_node=dram.gpus_per_node)


def offload_serve(recipe: Recipe, rung: Rung, dram: Dram | None) -> dict[str, JsonValue]:
    """Serve keys of the recipe's KV offload; empty where there is none, or where lint refuses it."""
    budget = offload_budget_gb(recipe, rung, dram)
    backend = ENGINES[recipe.engine].offloads.get(recipe.kv_offload.backend) if recipe.kv_offload else None
    if budget is None or backend is None:
        return {}
    return backend(OffloadFacts(budget_gb=budget, tp=rung.tp, pp=rung.pp, dp=rung.dp))


def with_offload(serve: dict[str, JsonValue], recipe: Recipe, rung: Rung, dram: Dram | None) -> dict[str, JsonValue]:
    """``serve`` with the keys of KV offload, which have the last word."""
    merged = merge_patch(serve, offload_serve(recipe, rung, dram))
    assert isinstance(merged, dict)
    return merged
