"""Writes MODELS.md out of configs/models.yaml, the golden curves and the shipped recipes."""

from __future__ import annotations

from collections.abc import Iterable

from infx.schema.catalog import Catalog
from infx.schema.facts import ModelFacts
from infx.schema.recipe import Recipe

HEAD = """# Models

Made from `configs/models.yaml`, the golden curves and `recipes/` by `make generated`; do not edit.

A recipe of a deprecated model, scenario or combination is an error (R-016, which a waiver may silence). *Assumed*
counts the facts that no source states: they serve the simulator and predictions, and block publishing where they
would enter a measurement. A golden curve gives the acceptance length of agentic throughput runs.
"""
STATUS = {"current": "current", "deprecated": "**deprecated**", "local": "local (made here, for trials)"}
SCENARIOS = ("fixed-seq-len", "agentic-coding")


def page(catalog: Catalog, recipes: Iterable[Recipe]) -> str:
    """MODELS.md: every model with its status, scenarios, golden curves, recipes and what is deprecated of it."""
    every = list(recipes)
    heads = ("model", "status", "weights", "context", *SCENARIOS, "golden curves", "recipes", "assumed")
    rows = [f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
    rows += [_row(model, catalog, [one for one in every if one.model == model.key])
             for model in sorted(catalog.models.values(), key=lambda one: (one.status != "current", one.key))]
    return "\n".join([HEAD, *rows, "", *_deprecated(catalog), *_curves_alone(catalog)]) + "\n"


def _row(model: ModelFacts, catalog: Catalog, recipes: list[Recipe]) -> str:
    where = f"[{model.hub}](https://huggingface.co/{model.hub})" if model.hub else f"`{model.path}`"
    state = [_scenario(model, kind) for kind in SCENARIOS]
    curves = sorted({f"{curve.method}{' (assumed)' if curve.assumed else ''}"
                     for curve in catalog.golden.curves if curve.model == model.key})  # fmt: skip
    cells = [f"`{model.key}`<br>{where}", STATUS[model.status], f"{model.architecture}, {model.quantization}",
             f"{model.context:,}", *state, ", ".join(curves) or "–",
             "<br>".join(f"`{one.key}`" for one in recipes) or "–",
             f"{len(model.assumed())} of {len(model.known)} facts"]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _scenario(model: ModelFacts, kind: str) -> str:
    gone = model.status == "deprecated" or kind in model.scenarios
    return "**deprecated**" if gone else "wanted" if model.status == "current" else "–"


def _deprecated(catalog: Catalog) -> list[str]:
    lines = ["## Deprecated", ""]
    for model in catalog.models.values():
        why = f": {model.notes}" if model.notes and model.status == "deprecated" else ""
        if model.status == "deprecated":
            lines.append(f"- `{model.key}`, everything of it{why}")
        lines += [f"- `{model.key}` with {kind}" for kind in model.scenarios]
        lines += [f"- `{model.key}` with {item.words()}: {item.why}" for item in model.deprecated]
    return [*lines, *(["Nothing at present."] if len(lines) == 2 else []), ""]


def _curves_alone(catalog: Catalog) -> list[str]:
    """Golden curves of models about which configs/models.yaml says nothing yet."""
    alone = sorted({curve.model for curve in catalog.golden.curves} - set(catalog.models))
    if not alone:
        return []
    return ["## Golden curves without a model", "",
            "Curves are published for these; a recipe of one needs its facts in `configs/models.yaml` first.", "",
            ", ".join(f"`{name}`" for name in alone)]
