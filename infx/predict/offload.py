"""How much host memory a point may fill with offloaded KV cache."""

from __future__ import annotations

MIB = 1 << 20
MOST_MIB = 2_861_022  # 3 TB: nodes above it are budgeted as if they had no more


def dram_budget_gb(*, host_memory_mib: int, dram_utilization: float, gpus: int, gpus_per_node: int) -> int:
    """Decimal gigabytes of host memory for the KV cache of an engine on ``gpus`` of ``gpus_per_node`` GPUs.

    ``min(available MiB, 2,861,022) × MiB × utilization × GPUs ÷ GPUs per node ÷ 10⁹``, rounded down
    (InferenceX's matrix generator: the engine gets the share of the node that its GPUs are). ValueError for a
    utilization outside (0, 1], for no memory, and for an engine that is larger than the node.
    """
    if not 0 < dram_utilization <= 1:
        raise ValueError(f"dram-utilization {dram_utilization} is not in (0, 1]")
    if host_memory_mib < 1:
        raise ValueError(f"{host_memory_mib} MiB of host memory")
    if not 1 <= gpus <= gpus_per_node:
        raise ValueError(f"{gpus} GPUs on a node of {gpus_per_node}")
    return int(min(host_memory_mib, MOST_MIB) * MIB * dram_utilization * gpus / gpus_per_node / 1e9)


def offloaded_tokens(budget_gb: int, kv_bytes_per_token: float) -> int:
    """Tokens of KV cache that the budget holds; ``kv_bytes_per_token`` for the whole model, all ranks together."""
    if kv_bytes_per_token <= 0:
        raise ValueError(f"{kv_bytes_per_token} bytes of KV cache a token")
    return int(budget_gb * 1e9 / kv_bytes_per_token)
