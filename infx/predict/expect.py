"""Owns the most that a server could yield at a point: the roofline of whole requests, and points off their curve.

A request computes its fresh prompt once and decodes its output in steps that it shares with the other streams. All
bytes at full bandwidth, all operations at the peak and all messages at full link rate, whichever takes longest, is time
that no engine can beat at that concurrency: prompts read no weights of their own here (a chunk may ride on a decode
step), and nothing waits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from infx.predict.roofline import DeviceShape, ModelShape, StepShape, work


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a server is asked for, in tokens a request: ``prompt`` in all and ``fresh`` beyond the prefix cache.

    ``streams``: requests in flight. ``accepted``: tokens that a stream yields a step (1 without drafts).
    """

    streams: float
    prompt: float
    fresh: float
    output: float
    drafts: int = 0
    accepted: float = 1.0


class Most(NamedTuple):
    """``tokens_s_gpu``: output tokens/s/GPU that cannot be exceeded; ``bound``: memory, compute or link."""

    tokens_s_gpu: float
    bound: str


def served_limit(
    model: ModelShape, device: DeviceShape, tp: int, traffic: Traffic, reduce_ratio: float = 1.0
) -> Most:
    """The limit of output throughput for ``traffic`` on ``tp`` GPUs; ``reduce_ratio``: bytes sent ÷ bytes reduced."""
    streams = traffic.streams
    context = traffic.prompt + traffic.output / 2
    rows = streams * (1 + traffic.drafts)
    decode = work(model, tp, StepShape(decode_seqs=round(streams), decode_rows=round(rows),
                                       decode_context=streams * context, drafting=traffic.drafts > 0))  # fmt: skip
    steps = max(traffic.output - 1, 0) / traffic.accepted
    pairs = traffic.fresh * (traffic.prompt - traffic.fresh) + traffic.fresh**2 / 2
    prompt = work(model, tp, StepShape(prompt_tokens=round(traffic.fresh), prompt_pairs=pairs, prompt_ends=1))
    memory = steps * (decode.weight_bytes + decode.kv_bytes) / device.memory_bytes_s
    compute = (steps * decode.flops + streams * prompt.flops) / device.peak_flops
    reduced = (steps * decode.reduce_bytes + streams * prompt.reduce_bytes) * reduce_ratio
    sent = device.sent(reduced, tp) if tp > 1 else 0.0
    seconds, bound = max((memory, "memory"), (compute, "compute"), (sent / device.link_bytes_s, "link"))
    return Most(streams * traffic.output / seconds / tp if seconds > 0 else math.inf, bound)


def off_curve(ratios: Sequence[tuple[int, float]], tolerance: float) -> list[tuple[int, float]]:
    """Points whose ratio is far from what both neighbours suggest: (concurrency, ratio ÷ suggested − 1).

    ``ratios``: (concurrency, ratio) of one curve, in any order. Suggested is the straight line between the neighbours
    in the logarithms of both. An outlier bends its neighbours' lines too: of adjacent ones the largest alone is named.
    The ends of a curve have one neighbour and are not judged.
    """
    ladder = sorted((concurrency, math.log(ratio)) for concurrency, ratio in ratios if ratio > 0)
    found: list[tuple[int, float]] = [(0, 0.0)] * len(ladder)
    for index in range(1, len(ladder) - 1):
        (low, a), (here, seen), (high, b) = ladder[index - 1 : index + 2]
        share = math.log(here / low) / math.log(high / low)
        found[index] = (here, seen - (a + share * (b - a)))
    sizes = [abs(off) for _, off in found]
    return [
        (here, math.expm1(off)) for index, (here, off) in enumerate(found)
        if abs(math.expm1(off)) > tolerance and sizes[index] == max(sizes[max(0, index - 1) : index + 2])
    ]
