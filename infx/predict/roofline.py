"""The least that one engine step must do: bytes to read and operations to perform per GPU, and the limit they set.

Nothing here knows launches, queues or efficiency: that is ``steptime``. A step is described by ``StepShape``;
the model by ``ModelShape``; the device by ``DeviceShape``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class DeviceShape:
    """One GPU: memory and its bandwidth, dense peak at the computing precision, one link (bytes, bytes/s, FLOP/s).

    ``mesh``: every pair of GPUs has a link of its own, so that an all-reduce uses TP − 1 of them at once.
    """

    memory_bytes_s: float
    peak_flops: float
    link_bytes_s: float
    memory_bytes: float
    mesh: bool = False

    def sent(self, reduced: float, tp: int) -> float:
        """Bytes through one link when ``reduced`` bytes are all-reduced over ``tp`` ranks (each byte moves twice)."""
        return reduced * 2.0 / tp * (1 if self.mesh else tp - 1)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What a step touches, for the whole model (before it is divided over the ranks).

    ``dense_bytes``: weights that every step reads once (attention, dense or shared FFN, head).
    ``expert_bytes``: one routed expert of one layer; ``experts`` and ``experts_per_token`` per layer (0 if dense).
    ``layers`` is the depth of a generated token, ``prompt_layers`` that of a prompt token.
    ``active_decode`` and ``active_prompt`` are parameters used per token. ``kv_bytes`` are the bytes that a generated
    token reads per token of context (at most ``attention_span`` tokens of it, None for all), ``index_bytes`` the bytes
    of the sparse indexer per token of context. ``state_bytes`` is what a sequence with constant state moves a step.
    ``pair_flops`` and ``index_flops``: attention and indexer operations per (query, context) pair.
    ``kv_shared``: the KV latent is on every rank (not split by heads). ``draft_*`` describe one drafting pass.
    """

    layers: int
    prompt_layers: int
    hidden: int
    dense_bytes: float
    active_decode: float
    active_prompt: float
    expert_bytes: float = 0.0
    experts: int = 0
    experts_per_token: int = 0
    kv_bytes: float = 0.0
    attention_span: int | None = None
    index_bytes: float = 0.0
    state_bytes: float = 0.0
    pair_flops: float = 0.0
    index_flops: float = 0.0
    kv_shared: bool = False
    draft_layers: int = 0
    draft_bytes: float = 0.0
    draft_expert_bytes: float = 0.0
    draft_experts: int = 0
    draft_experts_per_token: int = 0
    draft_active: float = 0.0


class StepShape(NamedTuple):
    """One step: ``decode_rows`` = sequences × (1 + drafts); contexts in tokens, summed over the step's sequences.

    ``prompt_pairs`` sums chunk × (context before it + half of it); ``prompt_ends`` counts prompts that end here.
    """

    decode_seqs: int = 0
    decode_rows: int = 0
    decode_context: float = 0.0
    prompt_tokens: int = 0
    prompt_pairs: float = 0.0
    prompt_seqs: int = 0
    prompt_ends: int = 0
    drafting: bool = False


class Work(NamedTuple):
    """Per GPU: ``weight_bytes`` and ``kv_bytes`` to move, ``flops`` to perform, ``reduce_bytes`` to all-reduce."""

    weight_bytes: float
    kv_bytes: float
    flops: float
    reduce_bytes: float


@dataclass(frozen=True, slots=True)
class Limit:
    """The bound that a step cannot beat: ``seconds``, what sets it, and tokens/s/GPU at ``tokens`` a step."""

    work: Work
    seconds: float
    bound: str
    tokens_s_gpu: float


def touched(experts: int, per_token: int, tokens: float) -> float:
    """Expected distinct experts of a layer for ``tokens`` under uniform routing: E (1 − (1 − k/E)^n)."""
    if not experts or tokens <= 0:
        return 0.0
    return experts * (1.0 - (1.0 - per_token / experts) ** tokens)


def work(model: ModelShape, tp: int, step: StepShape) -> Work:
    """Bytes and operations of one step on one of ``tp`` ranks."""
    rows, prompt = step.decode_rows, step.prompt_tokens
    deep_tokens = rows + step.prompt_ends
    weight_bytes = model.dense_bytes
    if model.experts:
        shallow = model.prompt_layers * touched(model.experts, model.experts_per_token, rows + prompt)
        deep = (model.layers - model.prompt_layers) * touched(model.experts, model.experts_per_token, deep_tokens)
        weight_bytes += (shallow + deep) * model.expert_bytes
    flops = 2.0 * (model.active_decode * rows + model.active_prompt * prompt)
    if step.drafting:
        drafted = touched(model.draft_experts, model.draft_experts_per_token, rows)
        weight_bytes += model.draft_bytes + model.draft_layers * drafted * model.draft_expert_bytes
        flops += 2.0 * model.draft_active * rows
    seqs, context = step.decode_seqs, step.decode_context
    span = model.attention_span
    read = context if span is None else min(context, float(span) * seqs)
    kv_bytes = read * model.kv_bytes + seqs * model.state_bytes
    per_rank_kv = kv_bytes if model.kv_shared else kv_bytes / tp
    per_rank_kv += context * model.index_bytes
    if prompt:
        attended = step.prompt_pairs if span is None else min(step.prompt_pairs, float(span) * prompt)
        flops += attended * model.pair_flops + step.prompt_pairs * model.index_flops
    reduce_bytes = 2.0 * model.hidden * (deep_tokens * model.layers + prompt * model.prompt_layers) * 2
    return Work(weight_bytes / tp, per_rank_kv, flops / tp, reduce_bytes if tp > 1 else 0.0)


def limit(model: ModelShape, device: DeviceShape, tp: int, step: StepShape, tokens: float | None = None) -> Limit:
    """The roofline of one step at full bandwidth and peak: memory, compute or link, whichever is longest.

    ``tokens``: tokens the step yields (default: prompt tokens plus one a decoding sequence).
    """
    done = work(model, tp, step)
    memory = (done.weight_bytes + done.kv_bytes) / device.memory_bytes_s
    compute = done.flops / device.peak_flops
    link = device.sent(done.reduce_bytes, tp) / device.link_bytes_s if tp > 1 else 0.0
    seconds, bound = max((memory, "memory"), (compute, "compute"), (link, "link"))
    yielded = step.prompt_tokens + step.decode_seqs if tokens is None else tokens
    return Limit(done, seconds, bound, yielded / seconds / tp if seconds > 0 else 0.0)
