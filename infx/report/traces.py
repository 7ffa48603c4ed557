"""The picture of ``infx trace stats``: hit rate by cache size, and how long prompts and their new parts are."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, PercentFormatter

from infx.report.svg import COLOURS, SETTINGS
from infx.workload.traces.stats import TraceStats

_CURVES = (("input-tokens", "prompt", "-"), ("new-tokens", "prompt beyond an unbounded cache", "--"),
           ("output-tokens", "answer", ":"))


def draw_stats(stats: TraceStats, title: str, form: Literal["svg", "png"]) -> bytes:
    """The picture's bytes; equal statistics give equal bytes. Call after ``stats.finish()``."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS, "backend": "agg"}):
        figure = Figure(figsize=(11.0, 4.2), layout="constrained")
        figure.suptitle(title, fontsize=10)
        left, right = figure.subplots(1, 2)
        _hit_rates(left, stats)
        _lengths(right, stats)
        stream = io.BytesIO()
        if form == "svg":
            FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None})
        else:
            FigureCanvasAgg(figure).print_png(stream, metadata={"Software": None})
        return stream.getvalue()


def _hit_rates(axes: matplotlib.axes.Axes, stats: TraceStats) -> None:
    rates, best = stats.hit_rates(), stats.hit_rate()
    axes.set_title("Theoretical prefix-cache hit rate")
    axes.set_xlabel("cache size, tokens (LRU, one lane)")
    if best is None or not rates:
        axes.text(0.5, 0.5, "the trace names no blocks", ha="center", va="center", transform=axes.transAxes)
        return
    axes.axhline(best, color=COLOURS[4], linewidth=0.8, linestyle="--")
    axes.annotate(f"unbounded {best:.1%}", (rates[0][0], best), xytext=(0, 3), textcoords="offset points")
    axes.plot([size for size, _ in rates], [rate for _, rate in rates], color=COLOURS[0], marker="o", markersize=4)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size / 1024:g} Ki"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylim(0, 1.05)
    axes.grid(alpha=0.25)


def _lengths(axes: matplotlib.axes.Axes, stats: TraceStats) -> None:
    axes.set_title("Share of requests with at most so many tokens")
    for (name, label, line), colour in zip(_CURVES, COLOURS, strict=False):
        values: Sequence[float] = sorted(stats.columns.get(name, ()))
        if not values:
            continue
        step = max(1, len(values) // 400)
        picked = [*range(0, len(values), step), len(values) - 1]
        shares = [(index + 1) / len(values) for index in picked]
        axes.plot([max(1.0, values[index]) for index in picked], shares, color=colour, linestyle=line, label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("tokens")
    axes.set_ylim(0, 1.05)
    axes.grid(alpha=0.25)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
