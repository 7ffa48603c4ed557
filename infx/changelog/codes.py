"""Owns the register of what the changelog's gate can find: code → title and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass

from infx.findings import Finding, Mark, Severity


@dataclass(frozen=True)
class Code:
    """One kind of finding: a title and the usual repair (docs/changelog.md lists both)."""

    title: str
    repair: str


REBUILD = "run `infx changelog rebase --onto REF`: the trunk's bytes, then this branch's own entries"

CODES: dict[str, Code] = {
    "C-001": Code("no newline at the end of the file", "add one line end after the last entry"),
    "C-002": Code("carriage return", "save the file with LF line ends"),
    "C-003": Code("tab", "use spaces"),
    "C-004": Code("NUL or other control character", "remove it"),
    "C-005": Code("not UTF-8", "save the file as UTF-8"),
    "C-006": Code("byte-order mark", "save the file without one"),
    "C-007": Code("conflict marker", "keep the entries of both sides and remove the marker lines, or " + REBUILD),
    "C-008": Code("not YAML, or YAML that readers disagree about", "mend the text at this place"),
    "C-009": Code("duplicate key", "two entries were merged into one: give each its own `- kind:` or `- config-keys:` "
                  "line; or " + REBUILD),
    "C-010": Code("header not at the start of a line", "start the entry in column 1 on a line of its own"),
    "C-011": Code("folded text", "write the value on one line, in quotes if it is long"),
    "C-012": Code("entries by text and by YAML differ", "close the quote or bracket that swallows a header"),
    "C-013": Code("separator", "put exactly one empty line before each new entry and none after the last"),
    "C-014": Code("trailing blanks", "remove the blanks at the end of the line"),
    "C-015": Code("history changed", REBUILD + "; to withdraw an entry use `infx changelog retract`"),
    "C-016": Code("not an entry", "write an entry as `- kind: change` with its keys below, indented by two"),
    "C-017": Code("entry not as the schema wants it", "see docs/changelog.md for the keys of an entry"),
    "C-018": Code("link not canonical", "write https://HOST/OWNER/NAME/pull/NUMBER, or XXX until there is a number"),
    "C-019": Code("placeholder link at merge", "fill in the pull request's number before merging"),
    "C-020": Code("key matches no recipe", "name a recipe key of recipes/, or a glob that matches one"),
    "C-021": Code("changed recipe not covered", "add a change entry that names it (`infx changelog draft`)"),
    "C-022": Code("entry selects nothing", "mend its keys or its scenario-type, or remove the entry"),
    "C-023": Code("append-only entry changes points", "drop `append-only`, or leave the existing points as they are"),
    "C-024": Code("retraction of no valid entry", "name an earlier entry that counts (`infx changelog show`)"),
    "C-025": Code("results that may not be published", "only measured runs go here; others stay in their run folder"),
    "C-026": Code("run recorded already", "retract the earlier results entry first, or leave this one out"),
}


def finding(where: Mark, code: str, message: str, repair: str = "") -> Finding:
    """A C-finding; without ``repair`` the register's own is given."""
    return Finding(where, code, Severity.ERROR, message, repair or CODES[code].repair)
