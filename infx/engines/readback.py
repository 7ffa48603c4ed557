"""What every engine module's read-back is made of: wanted words of an argv, and verdicts on what was found."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from infx.schema.result import Observed


def wanted_flags(argv: Sequence[str]) -> dict[str, JsonValue]:
    """``--max-num-seqs 8 --enforce-eager --no-x`` → {"max-num-seqs": 8, "enforce-eager": true, "x": false}."""
    found: dict[str, JsonValue] = {}
    index = 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if not word.startswith("--"):
            continue
        values = []
        while index < len(argv) and not argv[index].startswith("--"):
            values.append(_value(argv[index]))
            index += 1
        name = word[2:]
        if not values and name.startswith("no-"):
            found[name[3:]] = False
        else:
            found[name] = True if not values else values[0] if len(values) == 1 else values
    return found


def _value(word: str) -> JsonValue:
    try:
        return json.loads(word)
    except ValueError:
        return word


def keywords(text: str) -> dict[str, JsonValue]:
    """``{'a': 1, 'b': Config(c=2)}`` or ``Args(a=1, b=Config(c=2))`` as plain values: calls become their keyword
    arguments, and what is no literal its source text. Empty for text that is no such expression.
    """
    try:
        found = _plain(ast.parse(text, mode="eval").body)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _plain(node: ast.expr) -> JsonValue:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_plain(key)): _plain(value) for key, value in pairs if key is not None}
    if isinstance(node, ast.Call):
        return {word.arg: _plain(word.value) for word in node.keywords if word.arg is not None}
    if isinstance(node, ast.List | ast.Tuple):
        return [_plain(item) for item in node.elts]
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
    return value if isinstance(value, str | int | float | bool | None) else ast.unparse(node)


def compared(name: str, wanted: JsonValue, found: JsonValue, evidence: str) -> Observed:
    """Verified when equal (numbers by value, mappings on the keys that were asked for), else a mismatch."""
    return Observed(name=name, wanted=wanted, found=found, evidence=evidence[:300],
                    verdict="verified" if same(wanted, found) else "mismatch")


def same(wanted: JsonValue, found: JsonValue) -> bool:
    """Equality as a recipe means it."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(same(value, found.get(key)) for key, value in wanted.items())
    if isinstance(found, list) and not isinstance(wanted, list):
        return len(found) == 1 and same(wanted, found[0])
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return float(wanted) == float(found)
    return wanted == found or str(wanted) == str(found)


def environment(wanted: Mapping[str, str], found: Mapping[str, str] | None, evidence: str) -> list[Observed]:
    """Every name that was asked for against the environment of the running process (None: it cannot be read)."""
    if found is None:
        return [Observed(name=f"env {name}", wanted=value, verdict="unreadable") for name, value in wanted.items()]
    return [compared(f"env {name}", value, found.get(name), evidence) for name, value in wanted.items()]
