"""Owns the register of what reading a YAML file can find: code → severity, title and explanation."""

from __future__ import annotations

from dataclasses import dataclass

from infx.findings import Finding, Mark, Severity


@dataclass(frozen=True)
class Code:
    """One kind of finding of the readers: its severity, a title and what to do (a page of docs/lint.md)."""

    severity: Severity
    title: str
    doc: str


_E, _W = Severity.ERROR, Severity.WARNING

CODES: dict[str, Code] = {
    "Y-001": Code(_E, "not YAML", "The text breaks YAML's grammar; nothing after this place was read."),
    "Y-002": Code(_E, "file too large", "Files above the limit (1 MiB) are refused before they are parsed."),
    "Y-003": Code(_E, "not UTF-8", "Save the file as UTF-8. UTF-16 files, as some editors write them, are refused."),
    "Y-004": Code(_E, "control character", "NUL and other control characters are refused; remove them."),
    "Y-005": Code(
        _E,
        "lone carriage return or other line break",
        "CR without LF, NEL, LS and PS are line breaks to some YAML readers and not to editors, so line numbers "
        "would lie. Use LF (CR LF is accepted).",
    ),
    "Y-006": Code(_W, "byte-order mark", "The mark at the start is skipped; save as UTF-8 without it."),
    "Y-007": Code(_E, "tab in the indentation", "YAML indents with spaces only."),
    "Y-008": Code(_E, "empty file", "There is nothing but blanks and comments; remove the file or fill it."),
    "Y-009": Code(_E, "wrong root", "The file must be a mapping (`key: value` lines), or the list that is asked for."),
    "Y-010": Code(_E, "several documents", "One file holds one document: split the file at the `---`."),
    "Y-011": Code(_E, "directive or tag", "`%YAML`, `%TAG` and `!tags` are refused. Quote a value to make it text."),
    "Y-012": Code(_E, "duplicate key", "Many readers keep the last value silently. Keep one."),
    "Y-013": Code(_E, "one key in two spellings", "`a-b` and `a_b` are the same key here. Keep one."),
    "Y-014": Code(_E, "merge key", "`<<` is refused: write the keys out, or use overrides and arms of the recipe."),
    "Y-015": Code(_E, "key is not text", "Keys are text: quote numbers, booleans and null; no mapping or list as key."),
    "Y-016": Code(_E, "too deep", "Nesting is limited to 64 levels, aliases included."),
    "Y-017": Code(_E, "alias bomb", "Aliases may expand a file to at most 20,000 values; it is refused unexpanded."),
    "Y-018": Code(_E, "bad anchor or alias", "An alias needs an anchor above it; an anchor is set once, never inside."),
    "Y-019": Code(_E, "no value", "A key or list item without a value: write null, '' or {} if that is meant."),
    "Y-020": Code(_E, "word that YAML 1.1 reads as a boolean", "For yes, no, on, off write true or false, or quote."),
    "Y-021": Code(_E, "spelling of null", "Null and NULL: write null, or quote it if the text is meant."),
    "Y-022": Code(_E, "base-60 number", "YAML 1.1 reads 1:30 as 90. Quote it, or write the number."),
    "Y-023": Code(_E, "leading zero", "YAML 1.1 reads 010 as 8, YAML 1.2 as 10. Write it without zeros, or quote it."),
    "Y-024": Code(_E, "octal or binary number", "0o17 and 0b101 mean different things to different readers."),
    "Y-025": Code(_E, "underscore in a number", "YAML 1.1 reads 1_000 as 1000, YAML 1.2 as text."),
    "Y-026": Code(_E, "infinite or undefined number", ".inf, .nan and numbers that overflow are refused."),
    "Y-027": Code(_E, "integer too large", "Integers must fit 64 bits; quote longer ones if text is meant."),
    "Y-028": Code(_E, "cannot read", "The file is missing or unreadable."),
    "S-001": Code(_E, "unknown key", "The key is not part of this kind of file; the message lists near spellings."),
    "S-002": Code(_E, "missing key", "A required key is absent."),
    "S-003": Code(_E, "wrong type", "The value has another type than asked. Nothing is converted: \"2\" is not 2."),
    "S-004": Code(_E, "not among the choices", "The value must be one of the listed ones."),
    "S-005": Code(_E, "out of range", "The number or length is outside of the stated limits."),
    "S-006": Code(_E, "wrong form of text", "The text does not match the pattern in the message."),
    "S-007": Code(_E, "broken rule of the file", "The values are well-formed but contradict a rule that is named."),
    "S-008": Code(_E, "kind not named", "A mapping that comes in several kinds needs the key that says which."),
    "S-009": Code(_E, "not acceptable", "The value is refused for the reason in the message."),
}


def finding(where: Mark, code: str, message: str, hint: str = "") -> Finding:
    """A Finding with the severity of the register."""
    return Finding(where, code, CODES[code].severity, message, hint)
