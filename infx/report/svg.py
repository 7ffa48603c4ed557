"""A Figure drawn by matplotlib as SVG or PNG bytes; equal figures give equal bytes.

Text is drawn as paths, so that a picture looks the same everywhere and the places of labels hold.
"""

from __future__ import annotations

import io
import textwrap
from itertools import pairwise
from typing import Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure as Canvas
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from infx.report.figure import Dot, Figure, Panel, Series
from infx.report.labels import Box, place
from infx.report.palette import COLOURS, MARKERS, ink
from infx.schema.metrics import METRICS

LABELLED = 40
"""Dots a panel up to which every dot carries its concurrency; beyond, only the ends of each series do."""

LISTED = 14
"""Points named under a picture; further ones are only counted."""

WIDTH, PANEL_HEIGHT = 15.0, 4.4
LINE = 0.19
SETTINGS = {
    "svg.fonttype": "path", "svg.hashsalt": "infx", "font.family": "DejaVu Sans", "font.size": 9.0,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
}


def draw(figure: Figure, form: Literal["svg", "png"]) -> bytes:
    """The picture's bytes. Rows of panels share a y metric, columns an x metric."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS, "backend": "agg"}):
        canvas = _compose(figure)
        stream = io.BytesIO()
        if form == "svg":
            FigureCanvasSVG(canvas).print_svg(stream, metadata={"Date": None, "Creator": None})
            return stream.getvalue()
        FigureCanvasAgg(canvas).print_png(stream, metadata={"Software": None})
        return stream.getvalue()


def _compose(figure: Figure) -> Canvas:
    xs = list(dict.fromkeys(panel.x for panel in figure.panels))
    ys = list(dict.fromkeys(panel.y for panel in figure.panels))
    foot = _foot(figure)
    legend_rows = -(-len(figure.series) // 5)
    above = 0.55 + 0.4 * bool(figure.banners)
    below = 0.55 + 0.24 * legend_rows + LINE * len(foot)
    height = above + PANEL_HEIGHT * len(ys) + below
    width = max(WIDTH * len(xs) / 3, 9.0)
    canvas = Canvas(figsize=(width, height), dpi=100)
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(len(ys), len(xs), squeeze=False)
    canvas.subplots_adjust(
        left=0.95 / width, right=1 - 0.25 / width, top=1 - (above + 0.15) / height, bottom=(below + 0.5) / height,
        wspace=0.24, hspace=0.24,
    )
    canvas.text(0.25 / width, 1 - 0.3 / height, figure.title, fontsize=13, fontweight="bold", va="center")
    if figure.banners:
        canvas.text(
            0.25 / width, 1 - 0.68 / height, "   ·   ".join(figure.banners), fontsize=11, fontweight="bold",
            va="center", color="black", bbox={"facecolor": "#F0E442", "edgecolor": "black", "pad": 4},
        )
    for panel in figure.panels:
        _draw_panel(axes[ys.index(panel.y)][xs.index(panel.x)], panel, figure)
    _legend(canvas, figure, (below - 0.02) / height)
    for index, line in enumerate(foot):
        canvas.text(0.25 / width, (LINE * (len(foot) - index) - 0.05) / height, line, fontsize=8.5, va="center")
    return canvas


def _foot(figure: Figure) -> list[str]:
    lines = [line for note in figure.notes for line in textwrap.wrap(note, 200)]
    for title, entries in (("Not drawn", figure.left_out), ("Missing in a panel", figure.gaps)):
        if entries:
            lines.append(f"{title} ({len(entries)}):")
        for entry in entries[:LISTED]:
            lines += textwrap.wrap(entry, 195, initial_indent="  – ", subsequent_indent="    ", max_lines=2)
        if len(entries) > LISTED:
            lines.append(f"  – and {len(entries) - LISTED} more, which `infx show` lists")
    return lines


def _legend(canvas: Canvas, figure: Figure, top: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_colour(one), marker=_marker(one), linestyle=":", linewidth=1.2, label=one.label)
        for one in figure.series
    ]
    handles.append(Line2D([], [], color="0.62", linestyle="-", linewidth=1.1,
                          label="frontier of a run and arm"))
    canvas.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, top), ncols=min(len(handles), 6),
                  frameon=False, fontsize=9.5)


def _draw_panel(axes: Axes, panel: Panel, figure: Figure) -> None:
    shown = [(one, panel.dots[one.label]) for one in figure.series if panel.dots[one.label]]
    _frame(axes, panel, [dot for _, dots in shown for dot in dots])
    if not shown:
        axes.text(0.5, 0.5, "no point has both figures", transform=axes.transAxes, ha="center", color="0.35")
        return
    for index, labels in enumerate(figure.groups().values()):
        _draw_frontier(axes, panel, panel.frontier_of(labels), index)
    for one, dots in shown:
        _draw_series(axes, one, dots)
    _label(axes, shown)
    words = " · ".join(banner.split(":")[0] for banner in figure.banners)
    if words:
        axes.text(
            0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", fontsize=min(38, 480 / len(words)),
            rotation=24, color="0.5", alpha=0.16, fontweight="bold", zorder=0,
        )


def _frame(axes: Axes, panel: Panel, dots: list[Dot]) -> None:
    x, y = METRICS[panel.x], METRICS[panel.y]
    arrow = {"higher": " · better →", "lower": " · ← better", "neither": ""}[x.better]
    axes.set_xlabel(f"{x.title} ({x.unit}){arrow}")
    axes.set_ylabel(f"{y.title} ({y.unit})")
    axes.grid(True, color="0.9", linewidth=0.7)
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.yaxis.set_major_formatter(plain)
    if not dots:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    low = min(dot.x_range[0] if dot.x_range and dot.x_range[0] > 0 else dot.x for dot in dots)
    high = max(dot.x_range[1] if dot.x_range else dot.x for dot in dots)
    if x.better == "lower" and low > 0 and high > 4 * low:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(low / 1.25, high * 1.25)
    else:
        axes.set_xlim(min(0.0, low * 1.05), high * 1.1 or 1.0)
    axes.xaxis.set_major_formatter(plain)
    top = max(dot.y_range[1] if dot.y_range else dot.y for dot in dots)
    axes.set_ylim(0.0, top * 1.12 or 1.0)


def _draw_frontier(axes: Axes, panel: Panel, dots: list[Dot], index: int) -> None:
    """Steps: up to a point's x (or down to it, for a latency) its y can be had, between points nothing is claimed."""
    if len(dots) < 2:
        return
    steps = "steps-pre" if METRICS[panel.x].better == "higher" else "steps-post"
    grey = ("0.62", "0.72", "0.5")[index % 3]
    axes.plot([dot.x for dot in dots], [dot.y for dot in dots], drawstyle=steps, color=grey, linewidth=1.0, zorder=1,
              linestyle=("-", "--", "-.")[index % 3])


def _draw_series(axes: Axes, series: Series, dots: tuple[Dot, ...]) -> None:
    colour, marker = _colour(series), _marker(series)
    chosen = [dot for dot in dots if dot.chosen]
    axes.plot([d.x for d in chosen], [d.y for d in chosen], color=colour, linestyle=":", linewidth=1.1, zorder=2)
    for dot in dots:
        for low_high, across in ((dot.x_range, True), (dot.y_range, False)):
            if low_high is not None:
                xs = low_high if across else (dot.x, dot.x)
                ys = (dot.y, dot.y) if across else low_high
                axes.plot(xs, ys, color=colour, linewidth=0.8, alpha=0.55, zorder=2)
        axes.plot(
            [dot.x], [dot.y], marker=marker, color=colour, zorder=3, markersize=6.0 if dot.chosen else 4.0,
            markerfacecolor=colour if dot.on_frontier else to_rgba(colour, 0.3) if dot.near else "white",
            markeredgewidth=1.2,
        )


def _label(axes: Axes, shown: list[tuple[Series, tuple[Dot, ...]]]) -> None:
    total = sum(dot.chosen for _, dots in shown for dot in dots)
    named, others = [], []
    for series, dots in shown:
        chosen = [dot for dot in dots if dot.chosen]
        wanted = chosen if total <= LABELLED else [chosen[0], chosen[-1]] if chosen else []
        named += [(series, dot) for dot in wanted]
        others += [(series, dot) for dot in dots if dot not in wanted]
    if not named:
        return
    canvas = axes.figure
    scale, size = canvas.dpi / 72.0, 7.5
    pixels = axes.transData.transform([(dot.x, dot.y) for _, dot in (*named, *others)])
    texts = [str(dot.concurrency) for _, dot in named]
    sizes = [((0.66 * len(text) + 0.2) * size * scale, 1.15 * size * scale) for text in texts]
    sizes += [(0.0, 0.0)] * len(others)
    box = axes.get_window_extent()
    frame = Box((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, box.width, box.height)
    guides = [spot for _, dots in shown for spot in _along(axes, [dot for dot in dots if dot.chosen])]
    places = place([tuple(xy) for xy in pixels], sizes, 7.5 * scale, frame, guides)
    back = axes.transData.inverted()
    for (series, dot), text, spot in zip(named, texts, places, strict=False):
        x, y = back.transform((spot.x, spot.y))
        axes.annotate(
            text, (dot.x, dot.y), xytext=(x, y), textcoords="data", fontsize=size, ha="center", va="center_baseline",
            color=ink(_colour(series)), zorder=4, path_effects=[withStroke(linewidth=1.6, foreground="white")],
            gid=f"label-{series.label}-c{text}".replace(" ", "-"),
            arrowprops={"arrowstyle": "-", "color": _colour(series), "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
            if spot.led else None,
        )


def _along(axes: Axes, dots: list[Dot]) -> list[tuple[float, float]]:
    """Places every few pixels along the straight guide through ``dots``."""
    if len(dots) < 2:
        return []
    corners = axes.transData.transform([(dot.x, dot.y) for dot in dots])
    spots = []
    for (x0, y0), (x1, y1) in pairwise(corners):
        count = max(1, int(max(abs(x1 - x0), abs(y1 - y0)) // 4))
        spots += [(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count) for i in range(count + 1)]
    return spots


def _colour(series: Series) -> str:
    return COLOURS[series.colour % len(COLOURS)]


def _marker(series: Series) -> str:
    return MARKERS[series.marker % len(MARKERS)][0]
