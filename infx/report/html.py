"""One self-contained HTML page: template, style, program, charting library and data, all inlined."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from infx.report.page import page_data
from infx.results.load import LoadedRun

PROGRAMS = ("chart.js", "tables.js", "point.js", "report.js")


def render(runs: Sequence[LoadedRun], usd_per_gpu_hour: Mapping[str, float], price_note: str = "") -> str:
    """The page for ``runs``; equal runs and prices give equal text."""
    here = files("infx.report")
    data = page_data(runs, usd_per_gpu_hour, price_note)
    template = Environment(autoescape=True).from_string((here / "templates/report.html").read_text(encoding="utf-8"))
    return template.render(
        data=data,
        style=(here / "templates/report.css").read_text(encoding="utf-8"),
        library=(here / "vendor/plotly-basic.min.js").read_text(encoding="utf-8"),
        program="\n".join((here / "templates" / name).read_text(encoding="utf-8") for name in PROGRAMS),
        json=inline(data),
    )


def inline(data: Any) -> str:
    """Compact JSON that is safe inside a script element; non-finite numbers become null."""
    text = json.dumps(_finite(data), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
