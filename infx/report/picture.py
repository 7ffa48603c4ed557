"""From loaded runs to the bytes of a picture, by file name: what ``infx plot`` and the sweep call."""

from __future__ import annotations

from collections.abc import Sequence

from infx.errors import UsageError
from infx.findings import did_you_mean
from infx.report.figure import X_AXES, Y_AXES, build_figure
from infx.results.load import LoadedRun
from infx.schema.metrics import METRICS


def picture(
    runs: Sequence[LoadedRun], name: str, x_axes: Sequence[str] = (), y_axes: Sequence[str] = ()
) -> bytes:
    """The bytes of ``name`` (``….svg`` or ``….png``) for ``runs``; no axes means the default ones.

    UsageError for another ending, for an unknown metric and for one without a better side.
    """
    form = name.rsplit(".", 1)[-1].lower()
    if form not in ("svg", "png") or "." not in name:
        raise UsageError(f"cannot draw {name!r}", allowed="a name that ends in .svg or .png")
    for axis in (*x_axes, *y_axes):
        _check(axis)
    from infx.report.svg import draw

    return draw(build_figure(runs, x_axes or X_AXES, y_axes or Y_AXES), "svg" if form == "svg" else "png")


def _check(axis: str) -> None:
    sided = [name for name, metric in METRICS.items() if metric.better != "neither"]
    if axis not in METRICS:
        raise UsageError(f"no metric {axis!r}", hint=did_you_mean(axis, sided) or "infx show RUN --json lists them")
    if axis not in sided:
        raise UsageError(f"{axis!r} has no better side, so it makes no frontier")
