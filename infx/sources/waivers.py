"""Owns reading waivers: docs/waiver/<PR>.md, whose front matter says what is waived for which recipes, and why."""

from __future__ import annotations

from pathlib import PurePosixPath

from pydantic import Field

from infx.findings import Finding, Mark
from infx.schema.strict import Strict
from infx.sources import modelio, yamlio
from infx.sources.codes import finding
from infx.sources.tree import Tree

PATTERN = "docs/waiver/*.md"


class Waiver(Strict):
    """One waiver, filed in the pull request that needs it."""

    pull_request: int = Field(ge=1, description="The pull request; not written in the file, it is the file's name.")
    recipes: list[str] = Field(min_length=1, description="Recipe keys that it covers.")
    rules: list[str] = Field(min_length=1, description="Codes of the rules that it silences.")
    what: str = Field(min_length=1, description="What is done.")
    why: str = Field(min_length=1, description="Why the shipped image cannot run this benchmark without it.")
    upstream: str = Field(pattern=r"^https://\S+$", description="The upstream pull request or issue.")
    removal: str = Field(min_length=1, description="When and how it goes away.")


def load_waivers(tree: Tree) -> tuple[list[Waiver], list[Finding]]:
    """Every waiver of the tree; files that are no waiver (README.md, TEMPLATE.md) are passed over."""
    waivers, found = [], []
    for path in tree.glob(PATTERN):
        stem = PurePosixPath(path).stem
        if stem.isdigit():
            made, findings = read_waiver(tree.read_bytes(path), path, int(stem))
            found += findings
            if made is not None:
                waivers.append(made)
    return waivers, found


def read_waiver(text: bytes, path: str, number: int) -> tuple[Waiver | None, list[Finding]]:
    """One waiver file: YAML between two lines ``---`` at its start, free text after them."""
    lines = text.split(b"\n")
    ends = [index for index, line in enumerate(lines) if line.strip() == b"---"]
    if len(ends) < 2 or ends[0] != 0:
        message = "a waiver begins with its facts between two lines `---`"
        return None, [finding(Mark(path, 1, 1), "Y-001", message, "see docs/waiver/README.md")]
    # A comment line takes the place of the first ---, so that line numbers stay true.
    document, found = yamlio.load(b"\n".join([b"#", *lines[1 : ends[1]]]), path)
    if document is None:
        return None, found
    made, more = modelio.parse(document, Waiver, given={"pull-request": number})
    return made, [*found, *more]
