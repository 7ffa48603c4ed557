"""The contract between workloads and whoever plays them (the load client, the simulator's offline run).

A lane is one of the C concurrent users of a closed loop. A source has no clock and does no input or
output: it answers, for one lane at a time, what is to be sent next and after which pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from infx.workload.random import TokenIds
from infx.workload.session import Due, Phase, Request


@runtime_checkable
class LaneSource(Protocol):
    """Requests by lane, deterministic by (seed, salt) and by the order of calls *within* a lane.

    Lanes share no mutable state, so worker processes may each own some of the lanes: what lane 3 sends
    never depends on lane 4. A source is picklable before its first call (workers are spawned).
    """

    def start(self, lane: int) -> list[Due]:
        """The first requests of ``lane`` (an empty list: nothing to do for this lane)."""
        ...

    def finished(self, request: Request, output_ids: Sequence[int] | None) -> list[Due]:
        """What becomes due because ``request`` ended, well or badly.

        ``output_ids`` are the generated token ids where the request had ``need_ids`` and the engine gave
        them; None otherwise and after a failure. A lane may have several requests in flight; it is over
        when it has none in flight, none due, and this returned an empty list.
        """
        ...


class FixedLength:
    """Uniform random prompts of fixed (or uniformly drawn) length: every session has one turn.

    Lengths are drawn from ``[ceil(ratio × nominal), nominal]``; ``ratio`` 1 gives the nominal lengths.
    ``refill`` False makes every lane end after one request (open loop: one lane an arrival).
    ``warmup_per_lane`` requests of phase warm-up come first, of other prompts than the measured ones.
    ``spread``: the first output of each lane has any length up to the nominal one, so that the lanes start in
    the phases in which a long run finds them; without it the rate needs dozens of requests a lane to settle
    (bench/stop: 1.3 % too high after four). The first wave is never measured.
    """

    def __init__(
        self,
        ids: TokenIds,
        input_tokens: int,
        output_tokens: int,
        *,
        seed: int,
        salt: str,
        ratio: float = 1.0,
        refill: bool = True,
        warmup_per_lane: int = 0,
        spread: bool = True,
    ) -> None:
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio {ratio} is not in (0, 1]")
        if input_tokens < 1 or output_tokens < 1:
            raise ValueError("input and output lengths are at least 1 token")
        self.ids = ids
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.seed = seed
        self.salt = salt
        self.ratio = ratio
        self.refill = refill
        self.warmup_per_lane = warmup_per_lane
        self.spread = spread and refill
        self._ahead: dict[int, Request] = {}

    def start(self, lane: int) -> list[Due]:
        return [Due(0.0, self._take(lane, 0))]

    def finished(self, request: Request, output_ids: Sequence[int] | None) -> list[Due]:
        if not self.refill:
            return []
        return [Due(0.0, self._take(request.lane, request.session % _PER_LANE + 1))]

    def prepare(self, lane: int, request: Request) -> None:
        """Build the successor of ``request`` now, so that a refill costs nothing when it is due."""
        if self.refill and lane not in self._ahead:
            self._ahead[lane] = self._make(lane, request.session % _PER_LANE + 1)

    def _take(self, lane: int, index: int) -> Request:
        ahead = self._ahead.pop(lane, None)
        if ahead is not None and ahead.session == _session(lane, index):
            return ahead
        return self._make(lane, index)

    def _make(self, lane: int, index: int) -> Request:
        draw = self.ids.stream(self.seed, self.salt, lane, index)
        prompt = draw.ids(draw.length(self.input_tokens, self.ratio))
        output = draw.length(self.output_tokens, self.ratio)
        if self.spread and index == 0:
            output = draw.length(output, 1 / output)
        return Request(
            lane=lane,
            session=_session(lane, index),
            turn=0,
            prompt_ids=prompt,
            max_tokens=output,
            min_tokens=output,
            phase=Phase.WARMUP if index < self.warmup_per_lane else Phase.MAIN,
        )


_PER_LANE = 1 << 32


def _session(lane: int, index: int) -> int:
    return lane * _PER_LANE + index
