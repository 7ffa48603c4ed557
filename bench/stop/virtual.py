"""A virtual engine under a closed loop, for the calibration of the stop rule: no clock, no network, by seed.

Decodes run in steps of ``itl_ms + slope_ms × rows``; a prefill takes a step of its own time, in which the running
rows get one token (as a chunked prefill stalls the decodes of its step). Figures of the Qwen3.8-27B 8k/1k recipe at
TP1: prefill of 8,192 tokens 156 ms, 7.9 + 0.118 × rows ms a step. Steps vary by an uncorrelated 3 % and a slow
wave (AR(1), 2 s, 0.5 % unless ``wave`` says otherwise).
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush


@dataclass
class Trace:
    """Tokens in segments (from, to, tokens; spread evenly) and requests (sent, first, end, tokens), in seconds."""

    segments: list[tuple[float, float, int]] = field(default_factory=list)
    requests: list[tuple[float, float, float, int]] = field(default_factory=list)


def closed_loop(
    concurrency: int, until: float | int, seed: int, *, isl: int = 8192, osl: int = 1024, ratio: float = 0.8,
    prefill_ms: float = 156.0, itl_ms: float = 7.9, slope_ms: float = 0.118,
    spread: bool = True, limit: int | None = None, wave: float = 0.005,
) -> Trace:
    """Run until ``until`` seconds (float) or requests (int) have ended.

    ``spread``: first outputs of any length; ``limit``: send no more requests than this (the drain is in then).
    """
    source = random.Random(seed)
    trace, now, slow = Trace(), 0.0, 0.0

    def length(nominal: int) -> int:
        return source.randint(math.ceil(ratio * nominal), nominal)

    def first() -> int:
        return max(1, round(length(osl) * source.random())) if spread else length(osl)

    waiting = deque((0.0, length(isl), first()) for _ in range(concurrency))
    running: list[tuple[int, int, float, float, int]] = []  # heap: (step of its end, order, sent, first, tokens)
    step = order = 0
    by_time, sent_so_far = isinstance(until, float), concurrency
    while (now < until) if by_time else (len(trace.requests) < until):
        if waiting:
            sent, prompt, output = waiting.popleft()
            duration, steps = prefill_ms / 1000 * prompt / isl, 1
            heappush(running, (step + output, order, sent, now + duration, output))
            order += 1
        else:
            steps = running[0][0] - step
            duration = steps * (itl_ms + slope_ms * len(running)) / 1000
            decay = math.exp(-duration / 2.0)
            slow = slow * decay + source.gauss(0, wave) * math.sqrt(1 - decay * decay)
            duration *= 1 + slow + source.gauss(0, 0.03) / math.sqrt(steps)
        trace.segments.append((now, now + duration, steps * len(running)))
        now, step = now + duration, step + steps
        while running and running[0][0] <= step:
            _, _, sent, first_at, output = heappop(running)
            trace.requests.append((sent, first_at, now, output))
            if limit is None or sent_so_far < limit:
                waiting.append((now, length(isl), length(osl)))
                sent_so_far += 1
    return trace
