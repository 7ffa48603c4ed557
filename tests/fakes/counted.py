"""A closed loop that ends after a number of requests a lane, so that a client and an engine can count the same ones."""

from __future__ import annotations

from collections.abc import Sequence

from infx.workload.lanes import FixedLength
from infx.workload.session import Due, Request


class Counted(FixedLength):
    """``share`` requests a lane, then no more."""

    share = 1

    def finished(self, request: Request, output_ids: Sequence[int] | None) -> list[Due]:
        ended = request.session % (1 << 32) + 1
        return super().finished(request, output_ids) if ended < self.share else []
