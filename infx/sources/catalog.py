"""Owns reading the catalog: configs/ and the golden curves of one tree, with a finding for everything amiss."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TypeVar

from infx.findings import Finding, Mark
from infx.schema.catalog import Catalog, EngineFacts, Label, Price, Trace
from infx.schema.facts import HardwareFacts, ModelFacts
from infx.schema.features import Feature, ImageContents, ImageTable, KnownFailure
from infx.schema.golden import Curve, GoldenCurves
from infx.schema.strict import Strict
from infx.sources import modelio, yamlio
from infx.sources.codes import finding
from infx.sources.document import Document, Step
from infx.sources.tree import Packaged, Tree

S = TypeVar("S", bound=Strict)

MODELS = "configs/models.yaml"
HARDWARE = "configs/hardware.yaml"
LABELS = "configs/labels.yaml"
FEATURES = "configs/engine-features.yaml"
PRICES = "configs/price-book.yaml"
TRACES = "configs/traces.yaml"
ENGINES = "configs/engines/*.yaml"
GOLDEN = "infx/golden_al_distribution/*.yaml"


def load_catalog(tree: Tree) -> tuple[Catalog, list[Finding]]:
    """Read the whole catalog of ``tree``; entries with errors are left out and named in the findings.

    Files that the tree lacks are a finding, except the golden curves, which then come from the package.
    """
    found: list[Finding] = []
    features = _document(tree, FEATURES, found)
    golden = tree if tree.glob(GOLDEN) else Packaged()
    catalog = Catalog(
        models=_entries(_document(tree, MODELS, found), (), ModelFacts, "key", found),
        hardware=_entries(_document(tree, HARDWARE, found), (), HardwareFacts, "key", found),
        engines=_files(tree, found),
        features=_entries(features, ("features",), Feature, "name", found),
        failures=_entries(features, ("known-failures",), KnownFailure, "name", found),
        images=ImageTable(_entries(features, ("images",), ImageContents, None, found)),
        golden=GoldenCurves(_curves(golden, found)),
        labels=_entries(_document(tree, LABELS, found), (), Label, "key", found),
        prices=_entries(_document(tree, PRICES, found), (), Price, None, found),
        traces=_entries(_document(tree, TRACES, found), (), Trace, "key", found),
    )
    found += _dangling(catalog)
    return catalog, sorted(found)


def _document(tree: Tree, path: str, found: list[Finding]) -> Document | None:
    try:
        text = tree.read_bytes(path)
    except FileNotFoundError:
        found.append(finding(Mark(path), "Y-028", f"{path} is missing in {tree.label}", "restore it"))
        return None
    document, findings = yamlio.load(text, path)
    found += findings
    return document


def _entries(
    document: Document | None, at: tuple[Step, ...], model: type[S], given: str | None, found: list[Finding]
) -> dict[str, S]:
    """The mapping at ``at`` as key → model; ``given`` names the field that takes the key."""
    node = document.node(*at) if document else None
    if document is None or node is None:
        return {}
    if node.keys is None:
        found.append(finding(node.mark, "S-003", f"{'.'.join(map(str, at))} must be a mapping"))
        return {}
    entries = {}
    for key in node.keys:
        extra = {given: key} if given else None
        made, findings = modelio.parse(document, model, at=(*at, key), given=extra)
        found += findings
        if made is not None:
            entries[key] = made
    return entries


def _files(tree: Tree, found: list[Finding]) -> dict[str, EngineFacts]:
    engines = {}
    for path in tree.glob(ENGINES):
        document = _document(tree, path, found)
        if document is not None:
            made, findings = modelio.parse(document, EngineFacts, given={"key": PurePosixPath(path).stem})
            found += findings
            if made is not None:
                engines[made.key] = made
    return engines


def _curves(tree: Tree, found: list[Finding]) -> list[Curve]:
    curves = []
    for path in tree.glob(GOLDEN):
        document = _document(tree, path, found)
        if document is not None:
            made, findings = modelio.parse(document, Curve)
            found += findings
            if made is not None:
                curves.append(made)
    return curves


def _dangling(catalog: Catalog) -> list[Finding]:
    """Names of one file that another does not know."""
    found = []
    for label in catalog.labels.values():
        for name in label.hardware:
            if name not in catalog.hardware:
                message = f"label {label.key!r} names unknown hardware {name!r}"
                found.append(finding(Mark(LABELS), "S-007", message, "add it to configs/hardware.yaml"))
    for name in catalog.prices:
        if name not in catalog.hardware:
            found.append(finding(Mark(PRICES), "S-007", f"a price for unknown hardware {name!r}"))
    for feature in catalog.features.values():
        if feature.engine not in catalog.engines:
            message = f"feature {feature.name!r} names unknown engine {feature.engine!r}"
            found.append(finding(Mark(FEATURES), "S-007", message, "add configs/engines/NAME.yaml"))
    return found
