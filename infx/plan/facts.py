"""What a plan takes from the catalog: names for checks, facts for expansion."""

from __future__ import annotations

import hashlib

from infx.findings import Finding
from infx.plan.check import Names
from infx.plan.codes import finding
from infx.plan.expand import PlanFacts, acceptance_length, wants_golden
from infx.plan.merge import resolve
from infx.plan.offload import dram_of
from infx.schema.catalog import Catalog
from infx.schema.recipe import AgenticCoding, FixedSeqLen, Recipe
from infx.sources.document import Document
from infx.sources.tree import Tree


def names_of(catalog: Catalog) -> Names:
    """What a recipe may name."""
    return Names(models={key: model.context for key, model in catalog.models.items()}, hardware=catalog.hardware,
                 labels={key: label.hardware for key, label in catalog.labels.items()}, traces=catalog.traces)


def plan_facts(recipe: Recipe, catalog: Catalog, tree: Tree) -> PlanFacts:
    """The facts of a checked recipe; a data set's bytes are hashed here. KeyError for an unchecked recipe."""
    model = catalog.models[recipe.model]
    trace_hash = dataset_hash = None
    if isinstance(recipe.scenario, AgenticCoding):
        trace_hash = catalog.traces[recipe.scenario.traces].sha256
    if isinstance(recipe.scenario, FixedSeqLen) and recipe.scenario.dataset.path is not None:
        dataset_hash = hashlib.sha256(tree.read_bytes(recipe.scenario.dataset.path)).hexdigest()
    return PlanFacts(
        model_path=model.location, token_ids=model.token_ids, context=model.context,
        golden=catalog.golden.table(recipe.model), trace_hash=trace_hash,
        dataset_hash=dataset_hash, dram=dram_of(catalog.labels.get(recipe.runner)),
        assumed=tuple(f"{model.key}: {name}" for name in model.assumed()),
    )


def check_golden(recipe: Recipe, document: Document, catalog: Catalog) -> list[Finding]:
    """Synthetic acceptance needs a golden value for every point, in the base and in every arm."""
    if recipe.model not in catalog.models:
        return []
    table = PlanFacts(model_path="", token_ids=(0, 1), context=1, golden=catalog.golden.table(recipe.model))
    points = [(rung, concurrency) for rung in recipe.ladder for concurrency in rung.concurrencies()]
    if not any("speculative" in override.model_fields_set for override in recipe.overrides):
        points = points[:1]  # every point of an arm speculates alike
    for arm in (None, *recipe.arms):
        for rung, concurrency in points:
            resolved = resolve(recipe, rung, concurrency, arm)
            spec = resolved.speculative
            if spec is None or not wants_golden(recipe, spec) or acceptance_length(recipe, resolved, table):
                continue
            found = catalog.golden.acceptance_length(recipe.model, spec.thinking, spec.draft_tokens, spec.method,
                                                     spec.draft_sample_method)
            place = ("speculative",) if arm is None else ("arms", arm)
            return [finding(document.mark(*place), "P-009", found.reason or "no golden acceptance length",
                            "correct `speculative`, or say `acceptance: real`")]
    return []
