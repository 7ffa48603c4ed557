"""Graph capture: which batch sizes (in tokens) an engine captures, and whether a point's decode steps are covered."""

from __future__ import annotations

from dataclasses import dataclass

from infx.predict.defaults import max_num_batched_tokens, max_num_seqs
from infx.predict.deployment import Deployment, as_count


@dataclass(frozen=True)
class Coverage:
    """Captured sizes against the rows of a full decode step.

    ``largest``: largest captured size, 0 when nothing is captured. ``needed``: concurrency × (1 + drafts).
    ``padded_to``: the captured size that a full step replays, None when it runs uncaptured.
    """

    largest: int
    needed: int | None
    padded_to: int | None
    reason: str

    @property
    def covered(self) -> bool:
        """True where a full decode step replays a captured graph."""
        return self.padded_to is not None


def capture_sizes(deployment: Deployment) -> list[int]:
    """Sizes that vLLM 0.32.0 captures: 1, 2, 4, by eights to 256, by sixteens above, up to the largest.

    The largest is max-cudagraph-capture-size, else min(2 × sequences × (1 + drafts), 512; 1024 on sm_100), never above
    the tokens of a step; with drafts and no explicit size, multiples of 1 + drafts are captured as well.
    """
    serve, query = deployment.serve, 1 + deployment.drafts
    if serve.get("enforce-eager") is True or deployment.hardware.arch == "cpu":
        return []
    listed = serve.get("cudagraph-capture-sizes")
    budget = max_num_batched_tokens(deployment)
    if isinstance(listed, list) and listed:
        return sorted({size for size in listed if isinstance(size, int) and 0 < size <= budget})
    asked = as_count(serve.get("max-cudagraph-capture-size"))
    ceiling = 1024 if deployment.hardware.arch.startswith("sm_10") else 512
    seqs = max_num_seqs(deployment)
    largest = min(budget, asked if asked is not None else min(seqs * query * 2, ceiling))
    sizes = {size for size in (1, 2, 4) if size <= largest}
    sizes |= set(range(8, min(largest + 1, 256), 8)) | set(range(256, largest + 1, 16))
    if asked is None and query > 1:
        requests = {1, 2, 4, *range(8, 256, 8), *range(256, ceiling + 1, 16), min(seqs, ceiling)}
        sizes |= {count * query for count in requests if count <= seqs and count * query <= budget}
    return sorted(sizes)


def coverage(deployment: Deployment) -> Coverage:
    """Whether full decode steps of the deployment's concurrency replay a captured graph, and why not."""
    sizes, needed = capture_sizes(deployment), deployment.rows
    largest = sizes[-1] if sizes else 0
    if not sizes:
        why = "eager mode captures nothing" if deployment.serve.get("enforce-eager") is True else "nothing is captured"
        return Coverage(0, needed, None, why)
    if needed is None:
        return Coverage(largest, None, None, "no concurrency is given")
    fitting = next((size for size in sizes if size >= needed), None)
    if fitting is None:
        return Coverage(largest, needed, None, f"{needed} rows a step are above the largest captured size {largest}")
    return Coverage(largest, needed, fitting, f"{needed} rows a step replay the graph of {fitting}")
