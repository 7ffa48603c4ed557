"""Owns running the rules over a recipe: hits with one place and text become one finding; waivers silence some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from infx.findings import Finding, Mark, Severity
from infx.lint.rule import Hit, Rule
from infx.lint.rules import RULES
from infx.lint.view import RecipeView
from infx.schema.catalog import Catalog
from infx.schema.recipe import Recipe
from infx.sources.document import Document
from infx.sources.waivers import Waiver


def lint(
    recipe: Recipe, document: Document, catalog: Catalog, waivers: Sequence[Waiver] = (),
    rules: Sequence[type[Rule]] = RULES, beside: tuple[Recipe, ...] | None = None,
) -> list[Finding]:  # fmt: skip
    """Every finding of every rule about one recipe.

    ``beside``: the repository's recipes, for a recipe whose image is waived. A recipe whose model, hardware or engine
    the catalog does not know gives no finding: its check says that already.
    """
    known = recipe.model in catalog.models and recipe.hardware in catalog.hardware and recipe.engine in catalog.engines
    if not known:
        return []
    view = RecipeView(recipe, document, catalog, beside)
    found: list[Finding] = []
    for rule in rules:
        found += _waived(rule, _findings(rule(), view), recipe.key, waivers)
    return sorted(found)


def _findings(rule: Rule, view: RecipeView) -> list[Finding]:
    grouped: dict[tuple[Mark, str], list[Hit]] = {}
    for hit in rule.check(view):
        grouped.setdefault((hit.where, rule.text(hit)), []).append(hit)
    if not grouped:
        return []
    everywhere = {server.at for server in view.servers}
    found = []
    for (where, text), hits in grouped.items():
        at = dict.fromkeys(hit.at for hit in hits if hit.at)
        tail = f" [{', '.join(at)}]" if at and set(at) != everywhere else ""
        found.append(Finding(where, rule.code, rule.severity, text + tail, hits[0].hint))
    return found


def _waived(rule: type[Rule], found: list[Finding], key: str, waivers: Iterable[Waiver]) -> list[Finding]:
    """Turn findings that a waiver covers into notes; say so where a waiver names a rule that none may silence."""
    mine = [waiver for waiver in waivers if key in waiver.recipes and rule.code in waiver.rules]
    if not found or not mine:
        return found
    number = mine[0].pull_request
    if not rule.waivable:
        return [replace(item, message=f"{item.message} (waiver {number} cannot silence it)") for item in found]
    note = f"waived by docs/waiver/{number}.md"
    return [replace(item, severity=Severity.NOTE, message=f"{item.message} ({note})", hint="") for item in found]
