"""Owns what a plain (unquoted) YAML word means: YAML 1.2 where it is obvious, a refusal where readers differ."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

Scalar = str | int | float | bool | None

_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_OLD_BOOLEAN = {"yes": True, "on": True, "no": False, "off": False}  # y and n are text to every reader in use
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_HEX = re.compile(r"[-+]?0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(?:[eE][-+]?[0-9]+)?")
_OTHER_BASE = re.compile(r"[-+]?0(?:o[0-7]+|b[01_]+)")
_UNDERSCORE = re.compile(r"[-+]?(?:0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?)")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMBER_START = frozenset("0123456789+-.")


@dataclass(frozen=True)
class Refusal:
    """Why a word is refused: the code, a message and the fix."""

    code: str
    message: str
    hint: str


def resolve(text: str) -> tuple[Scalar, Refusal | None]:
    """The value of a plain scalar, and a Refusal where YAML versions or readers disagree about it.

    With a Refusal the value is only a guess that keeps later checks quiet; it must not be used.
    """
    if text in _BOOLEAN:
        return _BOOLEAN[text], None
    if text in ("null", "~"):
        return None, None
    if not text:
        return None, Refusal("Y-019", "there is no value", "write null, '' or {} if that is meant")
    if text in ("Null", "NULL"):
        return None, Refusal("Y-021", f"{text} is null to some readers", f"write null, or quote it: '{text}'")
    if text.lower() in _OLD_BOOLEAN and text in (text.lower(), text.upper(), text.capitalize()):
        value = _OLD_BOOLEAN[text.lower()]
        fix = f"write {str(value).lower()}, or quote it: '{text}'"
        return value, Refusal("Y-020", f"{text} is a boolean in YAML 1.1 and text in YAML 1.2", fix)
    if text[0] in _NUMBER_START:
        return _number(text)
    return text, None


def _number(text: str) -> tuple[Scalar, Refusal | None]:
    if _INTEGER.fullmatch(text) or _HEX.fullmatch(text):
        return _integer(text)
    short = text if len(text) <= 40 else f"{text[:37]}…"
    quote = f"quote it: '{short}'"
    bare = short.lstrip("+-")
    if _LEADING_ZERO.fullmatch(text):
        fix = f"write {bare.lstrip('0') or '0'}, or {quote}"
        return 0, Refusal("Y-023", f"{short} has a leading zero: octal in YAML 1.1", fix)
    if _OTHER_BASE.fullmatch(text):
        return 0, Refusal("Y-024", f"{short} is a number to some YAML readers only", f"write it in tens, or {quote}")
    if _SEXAGESIMAL.fullmatch(text):
        return text, Refusal("Y-022", f"{short} is a base-60 number in YAML 1.1", f"{quote}, or write the number")
    if "_" in text and _UNDERSCORE.fullmatch(text):
        fix = f"write {short.replace('_', '')}, or {quote}"
        return 0, Refusal("Y-025", f"{short} is a number in YAML 1.1 and text in YAML 1.2", fix)
    if _NOT_FINITE.fullmatch(text):
        return 0.0, Refusal("Y-026", f"{text} is not a finite number", f"write a number, or {quote}")
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            return 0.0, Refusal("Y-026", f"{short} overflows", f"write a number, or {quote}")
        return value, None
    return text, None


def _integer(text: str) -> tuple[Scalar, Refusal | None]:
    digits = text.lstrip("+-")
    value = int(text, 16 if digits.startswith("0x") else 10) if len(digits) <= 20 else 1 << 64
    if -(1 << 63) <= value < (1 << 63):
        return value, None
    short = text if len(text) <= 40 else f"{text[:37]}…"
    return 0, Refusal("Y-027", f"the integer {short} does not fit 64 bits", f"quote it: '{short}'")
