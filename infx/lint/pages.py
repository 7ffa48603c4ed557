"""Owns the text about codes: one page a code for ``--explain``, and docs/lint.md, both generated from the rules."""

from __future__ import annotations

from infx.lint.rules import RULES
from infx.plan.codes import CODES as PLAN_CODES
from infx.sources.codes import CODES as READ_CODES
from infx.sources.codes import Code
from infx.sources.safetensors import CODES as TENSOR_CODES

HEAD = """# Findings

Generated from the code by `tools/lint_docs.py`; do not edit.

`infx validate` prints findings as `path:line:col: CODE message (what to do)`. Errors forbid publishing and, for Y, S
and P codes, running; warnings and notes do not. `infx validate --explain CODE` prints one of the pages below. A rule
that may be waived is silenced for a recipe by `docs/waiver/<PR>.md` that names both; the finding then stays as a note.
"""

SECTIONS = (
    ("Y", "Reading YAML"),
    ("S", "Shape of files"),
    ("P", "Recipes against themselves and the catalog"),
    ("R", "Rules"),
    ("T", "Checkpoints of drafters (`infx draft-table`)"),
)


def codes() -> dict[str, tuple[str, str, str]]:
    """Every code → (title, facts such as severity, page)."""
    found = {code: _plain(item) for code, item in {**READ_CODES, **TENSOR_CODES, **PLAN_CODES}.items()}
    for rule in RULES:
        waiver = "may be waived" if rule.waivable else "cannot be waived"
        found[rule.code] = (rule.title, f"{rule.severity}; {waiver}", rule.page())
    return found


def explain(code: str) -> str | None:
    """The page of one code as plain text, or None where there is no such code."""
    page = codes().get(code.upper())
    return None if page is None else f"{code.upper()} {page[0]} ({page[1]})\n\n{page[2]}"


def document() -> str:
    """docs/lint.md."""
    pages = codes()
    parts = [HEAD]
    for letter, title in SECTIONS:
        parts.append(f"## {title}\n")
        for code, (name, facts, text) in pages.items():
            if code.startswith(letter):
                parts.append(f"### {code} {name}\n\n*{facts}*\n\n{_paragraphs(text)}\n")
    return "\n".join(parts)


def _plain(item: Code) -> tuple[str, str, str]:
    return item.title, f"{item.severity}; cannot be waived", item.doc


def _paragraphs(text: str) -> str:
    """A rule's page with its `Why:` and `Mend:` lines as paragraphs."""
    out = []
    for line in text.split("\n"):
        if line.startswith(("Why:", "Mend:")) and out and out[-1]:
            out.append("")
        out.append(line)
    return "\n".join(out)
