"""What fits: the memory of one GPU item by item, each with its formula, and the KV tokens that are left."""

from __future__ import annotations

from dataclasses import dataclass

from infx.predict.defaults import max_model_len, max_num_batched_tokens, max_num_seqs, memory_utilization
from infx.predict.deployment import Deployment

BEFORE_ROWS_FIX = "vllm#58014"


@dataclass(frozen=True)
class Item:
    """One use of device memory: ``bytes`` on one GPU, how it was computed and from what."""

    name: str
    bytes: float
    formula: str
    source: str
    assumed: bool = False


@dataclass(frozen=True)
class Budget:
    """Memory of one GPU. ``unknown`` names what is not stated; with it, nothing is concluded about fitting.

    ``kv_tokens`` is the KV room of the deployment in tokens; ``host_bytes`` is what moves to host memory per node.
    """

    total: float
    usable: float
    items: tuple[Item, ...]
    kv_tokens: int | None
    host_bytes: float
    unknown: tuple[str, ...]

    @property
    def used(self) -> float:
        """Bytes of all items."""
        return sum(item.bytes for item in self.items)

    @property
    def left(self) -> float:
        """Bytes for KV cache; negative where the items alone do not fit."""
        return self.usable - self.used

    @property
    def fits(self) -> bool | None:
        """Whether weights and workspaces leave room; None where a needed fact is unknown."""
        return None if self.unknown else self.left > 0

    @property
    def assumed(self) -> bool:
        """True where an assumed figure entered."""
        return any(item.assumed for item in self.items)

    def tokens_per_request(self, concurrency: int) -> int | None:
        """KV room per stream at a concurrency."""
        return None if self.kv_tokens is None else self.kv_tokens // concurrency


def budget(deployment: Deployment) -> Budget:
    """The memory budget of one GPU of a deployment, from facts of configs/models.yaml and configs/hardware.yaml."""
    hardware = deployment.hardware
    total = hardware.number("memory-bytes", 0)
    usable = total * memory_utilization(deployment)
    items, unknown = [], [] if total else ["memory-bytes of the device"]
    weights = _weights(deployment)
    if weights is None:
        unknown.append("weight-bytes of the model")
    else:
        items.append(weights)
    engram, host = _engram(deployment)
    items += [*engram, *_workspaces(deployment), *_reserve(deployment), *_states(deployment)]
    used = sum(item.bytes for item in items)
    return Budget(total, usable, tuple(items), _kv_tokens(deployment, usable - used, unknown), host, tuple(unknown))


def _weights(deployment: Deployment) -> Item | None:
    model, tp, pp = deployment.model, deployment.tp, deployment.pp
    listed = model.by_tp("weight-bytes-per-rank", tp)
    if listed is not None:
        fact = model.known["weight-bytes-per-rank"]
        return Item("weights", listed / pp, f"table at TP {tp} ÷ PP {pp}", fact.source, fact.assumed)
    whole = model.known.get("weight-bytes")
    if whole is None:
        return None
    formula = f"weight-bytes ÷ (TP {tp} × PP {pp})"
    return Item("weights", model.number("weight-bytes") / (tp * pp), formula, whole.source, whole.assumed)


def _engram(deployment: Deployment) -> tuple[list[Item], float]:
    """The n-gram tables: on the GPU, or in pinned host memory (vLLM's default where nothing is set)."""
    fact = deployment.model.known.get("engram-bytes")
    if fact is None:
        return [], 0.0
    size = deployment.model.number("engram-bytes")
    config = deployment.serve.get("engram-config")
    offloaded = config.get("cpu_offload", config.get("cpu-offload", True)) if isinstance(config, dict) else True
    if offloaded:
        return [Item("Engram tables", 0.0, "in pinned host memory", fact.source, fact.assumed)], size * deployment.dp
    per_rank = size / deployment.tp
    return [Item("Engram tables", per_rank, f"engram-bytes ÷ TP {deployment.tp}", fact.source, fact.assumed)], 0.0


def _workspaces(deployment: Deployment) -> list[Item]:
    """The sparse indexer's logits, rows × max-model-len × 4 bytes, and its buffers per batched token.

    Rows were the batched tokens before vllm#58014 and are sequences × (1 + drafts) since.
    """
    model, items = deployment.model, []
    logits = model.known.get("logits-rows-bytes")
    batched, length = max_num_batched_tokens(deployment), max_model_len(deployment)
    if logits is not None:
        fixed = deployment.images.has(deployment.image, BEFORE_ROWS_FIX)
        if fixed:
            rows = max_num_seqs(deployment) * (1 + deployment.drafts)
            formula = f"{rows} rows (sequences × (1 + drafts)) × {length} × 4 bytes"
        else:
            rows = batched
            formula = f"{rows} rows (batched tokens) × {length} × 4 bytes"
        source = BEFORE_ROWS_FIX if fixed is not None else f"the image is not known to have {BEFORE_ROWS_FIX}"
        size = float(rows) * length * model.number("logits-rows-bytes")
        items.append(Item("indexer logits", size, formula, source, fixed is None))
    companion = model.known.get("companion-bytes-per-batched-token")
    if companion is not None:
        size = batched * model.number("companion-bytes-per-batched-token")
        items.append(Item("indexer buffers", size, f"{batched} batched tokens × 0.4 MiB", companion.source))
    return items


def _reserve(deployment: Deployment) -> list[Item]:
    fact = deployment.model.known.get("reserve-bytes")
    if fact is None:
        return []
    return [Item("activations, graphs, libraries", deployment.model.number("reserve-bytes"), "as stated", fact.source,
                 fact.assumed)]  # fmt: skip


def _states(deployment: Deployment) -> list[Item]:
    """Constant state of linear attention: one per running sequence, split over TP."""
    fact = deployment.model.known.get("state-bytes")
    if fact is None or deployment.concurrency is None:
        return []
    live = min(deployment.concurrency, max_num_seqs(deployment))
    size = live * deployment.model.number("state-bytes") / deployment.tp
    return [Item("sequence states", size, f"{live} sequences × state-bytes ÷ TP", fact.source, fact.assumed)]


def _kv_tokens(deployment: Deployment, left: float, unknown: list[str]) -> int | None:
    model = deployment.model
    if unknown or "kv-pool-bytes" not in model.known:
        return None
    per_token = model.number("kv-pool-bytes") / deployment.pp
    shared = model.known.get("kv-shared")
    if shared is not None and shared.value is False:
        per_token /= min(deployment.tp, int(model.number("kv-heads", 1)))
    if str(deployment.serve.get("kv-cache-dtype", "auto")).startswith("fp8") and model.quantization.find("fp8") < 0:
        per_token /= 2
    return max(0, int(left / per_token)) * deployment.dp
