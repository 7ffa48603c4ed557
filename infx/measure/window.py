"""The window and who is measured in it, requests in flight over time, and the whole wall beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infx.measure.columns import Outcome
from infx.measure.table import RequestTable
from infx.workload.session import Phase


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the client's monotonic clock, [open_ns, close_ns)."""

    open_ns: int
    close_ns: int

    @property
    def seconds(self) -> float:
        return (self.close_ns - self.open_ns) / 1e9

    def holds(self, times_ns: np.ndarray) -> np.ndarray:
        return (times_ns >= self.open_ns) & (times_ns < self.close_ns)


def measured(table: RequestTable, span: Span) -> np.ndarray:
    """Mask of the measured requests: phase main, sent in the window (or, never sent, scheduled in it)."""
    begun = np.where(table["sent_ns"] > 0, table["sent_ns"], table["scheduled_ns"])
    return table.phase(Phase.MAIN) & span.holds(begun)


def prompt_lengths(table: RequestTable) -> np.ndarray:
    """Prompt tokens a request: the engine's count, else the ids sent; NaN when neither is known."""
    sent = np.where(table["prompt_sent"] > 0, table["prompt_sent"], np.nan)
    return np.where(table["prompt_usage"] >= 0, table["prompt_usage"], sent).astype(float)


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests in flight as the client saw them: time average, peak, and the share of time at each level."""

    mean: float
    peak: int
    share_below: float


def in_flight(table: RequestTable, span: Span, concurrency: int) -> InFlight:
    """Requests between sending and end within ``span``; ``share_below`` is the share of time with fewer than C."""
    sent = table["sent_ns"] > 0
    ups = np.clip(table["sent_ns"][sent], span.open_ns, span.close_ns)
    downs = np.clip(table["end_ns"][sent], span.open_ns, span.close_ns)
    times = np.concatenate([ups, downs])
    steps = np.concatenate([np.ones(len(ups), dtype=int), -np.ones(len(downs), dtype=int)])
    order = np.lexsort((steps, times))  # at one instant, ends count before starts
    times, level = times[order], np.cumsum(steps[order])
    widths = np.diff(np.append(times, span.close_ns))
    total = span.close_ns - span.open_ns
    if not len(times) or total <= 0:
        return InFlight(0.0, 0, 1.0)
    inside = widths > 0
    lead = times[0] - span.open_ns
    below = float(widths[level < concurrency].sum() + lead) / total
    return InFlight(float((widths * level).sum()) / total, int(level[inside].max(initial=0)), below)


@dataclass(frozen=True, slots=True)
class Wall:
    """The figure that others publish: all good requests over the whole wall, ramp and drain in."""

    seconds: float
    output: float
    total: float


def whole_wall(table: RequestTable, span: Span) -> Wall | None:
    """Tokens of good main requests begun before the window's close ÷ (last end − first sending); None without any."""
    chosen = table.phase(Phase.MAIN) & (table["sent_ns"] > 0) & (table["sent_ns"] < span.close_ns)
    good = chosen & (table["outcome"] == Outcome.OK) & (table["output_tokens"] >= 0)
    if not good.any():
        return None
    wall = (table["end_ns"][chosen].max() - table["sent_ns"][chosen].min()) / 1e9
    output = float(table["output_tokens"][good].sum())
    prompts = prompt_lengths(table)[good]
    return Wall(wall, output / wall, (output + float(prompts.sum())) / wall)
