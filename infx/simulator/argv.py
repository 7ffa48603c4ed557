"""argv of ``vllm serve`` → settings, refusing as vLLM's argparse does: usage, one error line, exit status 2."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from infx.findings import did_you_mean
from infx.simulator.flags import FLAGS, SHORT

SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Arguments:
    """``values``: every flag by its name with underscores."""

    values: dict[str, object]

    def __getitem__(self, name: str) -> object:
        return self.values[name]

    def non_default(self) -> dict[str, object]:
        """The settings that differ from the defaults, as the engine logs them at start."""
        shown: dict[str, object] = {"model_tag": self.values["model"]}
        for flag, (_, default) in FLAGS.items():
            name = flag.replace("-", "_")
            if self.values[name] != default:
                shown[name] = self.values[name]
        return shown


class _Parser(argparse.ArgumentParser):
    def parse_known_args(self, args=None, namespace=None):  # type: ignore[override]
        known, extra = super().parse_known_args(args, namespace)
        if extra:
            flag = next((word for word in extra if word.startswith("--")), "")
            hint = did_you_mean(flag.split("=")[0].lstrip("-").replace("_", "-"), FLAGS, cutoff=0.7)
            self.error(f"unrecognized arguments: {' '.join(extra)}" + (f"\ninfx-sim: {hint}" if hint else ""))
        return known, extra


def count(text: str) -> int:
    """``16384``, ``16k`` (× 1000), ``16K`` (× 1024) and so on for m, M, g, G."""
    factor = SUFFIXES.get(text[-1:], 1)
    return int(float(text[:-1]) * factor) if text[-1:] in SUFFIXES else int(text)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to <function loads>.") from None


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``infx-sim serve`` (sub-command ``serve`` only, as the profile uses no other)."""
    top = argparse.ArgumentParser(prog="infx-sim", allow_abbrev=False)
    top.add_argument("-v", "--version", action="store_true", help="print the version and exit")
    commands = top.add_subparsers(dest="command", parser_class=_Parser)
    serve = commands.add_parser("serve", allow_abbrev=False, usage="infx-sim serve [model_tag] [options]")
    serve.add_argument("model_tag", nargs="?")
    readers = {"int": int, "count": count, "float": float, "json": _json, "str": str}
    for flag, (kind, default) in FLAGS.items():
        names = [f"--{flag}", *([SHORT[flag]] if flag in SHORT else [])]
        if kind == "bool":
            serve.add_argument(*names, action=argparse.BooleanOptionalAction, default=default)
        elif kind == "list":
            serve.add_argument(*names, nargs="+", default=default)
        elif kind in readers:
            serve.add_argument(*names, type=readers[kind], default=default)
        else:
            serve.add_argument(*names, choices=kind.split("|"), default=default)
    return top


def normalise(words: Sequence[str]) -> list[str]:
    """``--a_b`` → ``--a-b``, and ``--flag.key value`` folded into the flag's JSON, as vLLM's parser does."""
    plain: list[str] = []
    nested: dict[str, dict[str, object]] = {}
    words = list(words)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("--"):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        head, dot, path = name[2:].partition(".")
        head = head.replace("_", "-")
        if dot and FLAGS.get(head, ("", None))[0] == "json":
            if not equals:
                value = words[index] if index < len(words) else ""
                index += 1
            _nest(nested.setdefault(head, {}), path.split("."), value)
            continue
        plain.append(f"--{head}{dot}{path}{equals}{value}")
    for head, value in nested.items():
        plain += [f"--{head}", json.dumps(value)]
    return plain


def _nest(into: dict[str, object], path: list[str], text: str) -> None:
    for key in path[:-1]:
        into = into.setdefault(key, {})  # type: ignore[assignment]
    try:
        into[path[-1]] = json.loads(text)
    except json.JSONDecodeError:
        into[path[-1]] = text


def parse(words: Sequence[str]) -> Arguments | None:
    """Settings of a command line, or None where it only asked for the version. SystemExit(2) on a wrong one."""
    parser = build_parser()
    words = list(words)
    found = parser.parse_args(words[:1] + normalise(words[1:]) if words[:1] == ["serve"] else words)
    if found.version:
        return None
    if found.command != "serve":
        parser.print_usage(sys.stderr)
        parser.exit(2, "infx-sim: error: the only command is serve\n")
    values = {flag.replace("-", "_"): getattr(found, flag.replace("-", "_")) for flag in FLAGS}
    values["model"] = found.model_tag or values["model"]
    if not values["model"]:
        parser.exit(2, "infx-sim: error: a model is needed: infx-sim serve MODEL\n")
    return Arguments(values)
