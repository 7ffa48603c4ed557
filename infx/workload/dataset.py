"""Prompts with real text: JSONL files and ShareGPT's JSON, as lanes of single turns.

Lines of a JSONL file: ``{"prompt": "text"}``, ``{"messages": [{"role": …, "content": …}, …]}`` or
``{"prompt_ids": [1, 2, 3]}``, optionally with ``"output_tokens": n``. ShareGPT: a JSON array of objects with
``conversations`` of ``{"from": "human" | "gpt" | "system", "value": "text"}``; the messages up to the last human
one are the prompt. Text and messages are counted by the engine alone: their ``prompt_tokens`` is 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from infx.findings import Finding, Mark, Severity
from infx.workload.random import order_of
from infx.workload.session import Due, Phase, Request

Kind = Literal["jsonl", "sharegpt"]
_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant",
          "system": "system"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: exactly one of text, messages and ids; ``output_tokens`` where the file says how many."""

    text: str | None = None
    messages: list[dict[str, object]] | None = None
    ids: list[int] | None = None
    output_tokens: int | None = None


def read_prompts(data: bytes, kind: Kind, path: str) -> tuple[list[Prompt], list[Finding]]:
    """The prompts of a file and a finding (D-001 … D-004) for every entry that is none.

    D-001 not JSON or not UTF-8, D-002 not a prompt, D-003 no message of a human, D-004 no prompt at all.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return [], [_finding(path, 0, "D-001", f"not UTF-8: {error.reason} at byte {error.start}")]
    found, findings = _jsonl(text, path) if kind == "jsonl" else _sharegpt(text, path)
    if not found and not findings:
        findings = [_finding(path, 0, "D-004", "no prompt in this file")]
    return found, findings


def _jsonl(text: str, path: str) -> tuple[list[Prompt], list[Finding]]:
    prompts: list[Prompt] = []
    findings: list[Finding] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            findings.append(_finding(path, number, "D-001", f"not JSON: {error}"))
            continue
        made = _prompt(entry)
        if isinstance(made, Prompt):
            prompts.append(made)
        else:
            findings.append(_finding(path, number, "D-002", made))
    return prompts, findings


def _prompt(entry: object) -> Prompt | str:
    """A prompt, or what is wrong with the entry."""
    if not isinstance(entry, dict):
        return f"an object with prompt, messages or prompt_ids, not {type(entry).__name__}"
    given = [key for key in ("prompt", "messages", "prompt_ids") if key in entry]
    if len(given) != 1:
        return f"exactly one of prompt, messages and prompt_ids, not {', '.join(given) or 'none'}"
    output = entry.get("output_tokens")
    if output is not None and (not isinstance(output, int) or isinstance(output, bool) or output < 1):
        return f"output_tokens is a whole number above 0, not {output!r}"
    value = entry[given[0]]
    if given[0] == "prompt":
        return Prompt(text=value, output_tokens=output) if isinstance(value, str) and value else "prompt is empty"
    if given[0] == "prompt_ids":
        whole = isinstance(value, list) and value and all(type(i) is int and i >= 0 for i in value)
        return Prompt(ids=value, output_tokens=output) if whole else "prompt_ids is a list of ids ≥ 0"
    roles = isinstance(value, list) and value and all(isinstance(m, dict) and "role" in m for m in value)
    return Prompt(messages=value, output_tokens=output) if roles else "messages is a list of objects with a role"


def _sharegpt(text: str, path: str) -> tuple[list[Prompt], list[Finding]]:
    try:
        entries = json.loads(text)
    except ValueError as error:
        return [], [_finding(path, getattr(error, "lineno", 0), "D-001", f"not JSON: {error}")]
    if not isinstance(entries, list):
        return [], [_finding(path, 0, "D-002", "ShareGPT data is an array of conversations")]
    prompts: list[Prompt] = []
    findings: list[Finding] = []
    for number, entry in enumerate(entries):
        made = _conversation(entry)
        if made is None:
            findings.append(_finding(path, 0, "D-003", f"entry {number}: no conversation with a message of a human"))
        else:
            prompts.append(made)
    return prompts, findings


def _conversation(entry: object) -> Prompt | None:
    turns = entry.get("conversations") if isinstance(entry, dict) else None
    if not isinstance(turns, list):
        return None
    messages: list[dict[str, object]] = []
    for turn in turns:
        if isinstance(turn, dict) and turn.get("from") in _ROLES and isinstance(turn.get("value"), str):
            messages.append({"role": _ROLES[turn["from"]], "content": turn["value"]})
    last = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=-1)
    return Prompt(messages=messages[: last + 1]) if last >= 0 else None


def _finding(path: str, line: int, code: str, message: str) -> Finding:
    return Finding(Mark(path, line, 1 if line else 0), code, Severity.ERROR, message)


class Prompts:
    """A ``LaneSource`` over prompts: a shuffled deal to the lanes, begun anew with another order when it is used up.

    ``output_tokens`` is asked for where the file does not say; ``exact`` asks for exactly that many (ignore_eos),
    otherwise the model may stop. ``salt`` changes the order, not the prompts: a file of fewer prompts than requests
    repeats, and an engine with a prefix cache will hit. For the chat endpoint text becomes one user message.
    """

    def __init__(
        self, prompts: Sequence[Prompt], lanes: int, output_tokens: int, *, seed: int, salt: str,
        chat: bool = False, exact: bool = True,
    ) -> None:
        if not prompts:
            raise ValueError("no prompts")
        self.prompts = list(prompts)
        self.lanes = lanes
        self.output_tokens = output_tokens
        self.seed = seed
        self.salt = salt
        self.chat = chat
        self.exact = exact

    def start(self, lane: int) -> list[Due]:
        return [Due(0.0, self._request(lane, 0))]

    def finished(self, request: Request, output_ids: Sequence[int] | None) -> list[Due]:
        return [Due(0.0, self._request(request.lane, request.session // self.lanes + 1))]

    def _request(self, lane: int, turn: int) -> Request:
        place = turn * self.lanes + lane  # the place in the endless deal, and the session's number
        lap, index = divmod(place, len(self.prompts))
        prompt = self.prompts[order_of(len(self.prompts), self.seed, self.salt, lap)[index]]
        messages, text = prompt.messages, prompt.text
        if self.chat and text is not None:
            messages, text = [{"role": "user", "content": text}], None
        wanted = prompt.output_tokens or self.output_tokens
        return Request(
            lane=lane, session=place, turn=0, max_tokens=wanted, min_tokens=wanted if self.exact else 0,
            prompt_ids=prompt.ids, messages=messages, text=text, ignore_eos=self.exact, phase=Phase.MAIN,
        )  # fmt: skip
