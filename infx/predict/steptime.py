"""How long one engine step takes: the roofline at achievable shares of the peaks, plus launches, all-reduces and host.

step = host + host per sequence + max(weights ÷ reached bandwidth + KV ÷ reached bandwidth, operations ÷ reached peak)
+ launches + all-reduces.
The constants (``Overheads``) come from configs/simulator.yaml, each with its source there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from infx.predict.roofline import DeviceShape, ModelShape, StepShape, work


@dataclass(frozen=True, slots=True)
class Overheads:
    """Seconds and shares that no roofline holds.

    ``weight_share``, ``kv_share``, ``compute_share``: reached part of the peaks (of memory bandwidth when weights and
    when KV and states stream, of the FLOP rate). ``host``: scheduling and sampling a step;
    ``host_seq``: the same per sequence. ``launch_graph`` and ``launch_mixed``: kernel boundaries per layer when the
    step replays a full graph and when it does not (a prompt in the step, or more rows than were captured).
    ``reduce_latency``: one all-reduce without its bytes; ``link_share``: reached part of a link.
    ``reduce_switch_bytes`` and ``reduce_switch``: from that message size on, an all-reduce takes that much longer
    (the one-shot kernel ends); 0 switches it off. ``front`` and ``front_seq``: what a request waits before the engine
    core sees it (tokenising, HTTP), and how much longer for every stream that the front end serves at that time.
    """

    weight_share: float
    kv_share: float
    compute_share: float
    host: float
    host_seq: float
    launch_graph: float
    launch_mixed: float
    reduce_latency: float
    link_share: float
    reduce_switch_bytes: float = 0.0
    reduce_switch: float = 0.0
    front: float = 0.0
    front_seq: float = 0.0


class Saving(NamedTuple):
    """What engaged fused layers change: parts of launch and of weight time that go away, and seconds a row adds."""

    launch: float = 0.0
    weight: float = 0.0
    row: float = 0.0


NO_SAVING = Saving()


class StepTimer:
    """Seconds of a step for one deployment (model, device, TP, overheads, all-reduce compression)."""

    def __init__(
        self,
        model: ModelShape,
        device: DeviceShape,
        tp: int,
        overheads: Overheads,
        *,
        reduce_ratio: float = 1.0,
        reduce_ratio_from: float = 0.0,
        captured_rows: int = 512,
    ) -> None:
        """``reduce_ratio``: bytes sent ÷ bytes reduced for messages of ``reduce_ratio_from`` bytes or more."""
        self.model = model
        self.tp = tp
        self.captured_rows = captured_rows
        self._over = overheads
        self._device = device
        self._weights = device.memory_bytes_s * overheads.weight_share
        self._kv = device.memory_bytes_s * overheads.kv_share
        self._peak = device.peak_flops * overheads.compute_share
        self._link = device.link_bytes_s * overheads.link_share
        self._ratio = reduce_ratio
        self._ratio_from = reduce_ratio_from

    def front(self, streams: int) -> float:
        """Seconds from a request's arrival until the engine core sees it, with ``streams`` others being served."""
        return self._over.front + self._over.front_seq * streams

    def captured(self, step: StepShape) -> bool:
        """Whether the step replays a full graph: decodes only, no more rows than were captured."""
        return not step.prompt_tokens and 0 < step.decode_rows <= self.captured_rows

    def seconds(self, step: StepShape, saving: Saving = NO_SAVING) -> float:
        """Duration of ``step`` in seconds; ``saving`` where fused layers are engaged."""
        model, over = self.model, self._over
        done = work(model, self.tp, step)
        weights = done.weight_bytes / self._weights * (1.0 - saving.weight)
        busy = max(weights + done.kv_bytes / self._kv, done.flops / self._peak)
        layers = model.layers + (model.draft_layers if step.drafting else 0)
        launch = over.launch_graph if self.captured(step) else over.launch_mixed
        launches = layers * launch * (1.0 - saving.launch) + step.decode_rows * saving.row
        seqs = step.decode_seqs + step.prompt_seqs
        return over.host + over.host_seq * seqs + busy + launches + self._reduces(step, layers, done.reduce_bytes)

    def _reduces(self, step: StepShape, layers: int, reduce_bytes: float) -> float:
        if self.tp == 1:
            return 0.0
        over = self._over
        calls = 2 * layers
        message = 2.0 * self.model.hidden * (step.decode_rows + step.prompt_tokens)
        sent = self._device.sent(reduce_bytes, self.tp)
        if message >= self._ratio_from:
            sent *= self._ratio
        latency = over.reduce_latency
        if over.reduce_switch_bytes and message >= over.reduce_switch_bytes:
            latency += over.reduce_switch
        return calls * latency + sent / self._link
