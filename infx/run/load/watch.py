"""What the parent watches while a window is open, so that the stop rule can look: tokens over time, ended requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from infx.measure.stop import Ended, SequentialStop
from infx.run.load.records import Batch
from infx.run.load.worker import Snapshot


class Watch:
    """Feeds a ``SequentialStop`` with what workers report; ``enough`` is asked by the controller."""

    def __init__(self, target: float) -> None:
        self.rule = SequentialStop(target)
        self._open_ns = 0
        self._ended = Ended.none()
        self._batches_seen = 0
        self._series: list[list[tuple[int, int]]] = []  # a worker: (ns, tokens received by then)

    def take(self, snapshots: Sequence[Snapshot], batches: Sequence[Batch], open_ns: int) -> None:
        """Remember the workers' counts and the requests that ended since the last call (``open_ns`` 0: not yet)."""
        self._open_ns = open_ns
        while len(self._series) < len(snapshots):
            self._series.append([])
        for series, snapshot in zip(self._series, snapshots, strict=True):
            if snapshot.at_ns and (not series or series[-1][0] < snapshot.at_ns):
                series.append((snapshot.at_ns, snapshot.tokens))
            if not open_ns:
                del series[:-2]  # one before the opening is enough
        for batch in batches[self._batches_seen :] if open_ns else ():
            self._ended.add(batch, open_ns)
        self._batches_seen = len(batches)

    def enough(self, now_ns: int) -> bool:
        """Look if a look is due; True when the window may close."""
        seconds = (now_ns - self._open_ns) / 1e9
        if not self.rule.due(seconds, self._ended.cycle_s):
            return False
        known = [np.array(series, dtype=float) for series in self._series if series]
        times = np.unique(np.concatenate([series[:, 0] for series in known]))
        received = sum(np.interp(times, series[:, 0], series[:, 1]) for series in known)
        # What the workers have not reported yet is left out: the window of the look ends with their last report.
        last = min(series[-1, 0] for series in known)
        seen = times <= last
        return self.rule.look((times[seen] - self._open_ns) / 1e9, received[seen], self._ended,
                              min(seconds, (last - self._open_ns) / 1e9))  # fmt: skip
