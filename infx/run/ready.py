"""Readiness: a pure judge over what was seen, and the loop that looks. Ready means one real generated token."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import requests

from infx.errors import InterruptedSweep
from infx.schema.result import Death

REFUSED_FOR_S = 20.0
"""An engine that answers a plain request with an error for this long will not become ready."""


@dataclass(frozen=True)
class Seen:
    """One look at the engine: seconds since launch, alive, and the answer (None: no connection yet)."""

    at_s: float
    alive: bool
    status: int | None = None
    tokens: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """``ready``, ``wait`` or ``give-up`` with a stable reason code and a sentence."""

    state: str
    code: str = ""
    message: str = ""


def judge(history: list[Seen], limit_s: float) -> Verdict:
    """Judge the looks so far, oldest first."""
    last = history[-1]
    if last.tokens > 0:
        return Verdict("ready")
    if not last.alive:
        return Verdict("give-up", "exited", f"the engine ended {last.at_s:.1f} s after launch, before its first token")
    refused_since = _refusing_since(history)
    if refused_since is not None and last.at_s - refused_since >= REFUSED_FOR_S:
        return Verdict("give-up", "answers-errors",
                       f"the engine answered HTTP {last.status} to a one-token request for "
                       f"{last.at_s - refused_since:.0f} s: {last.detail}")
    if last.at_s >= limit_s:
        state = "no connection" if last.status is None else f"HTTP {last.status}: {last.detail}"
        return Verdict("give-up", "never-ready", f"no token within the limit of {limit_s:.0f} s ({state})")
    return Verdict("wait")


def _refusing_since(history: list[Seen]) -> float | None:
    """When the unbroken run of error answers (503 is loading, 404 may be) that ends now began."""
    since = None
    for seen in reversed(history):
        if seen.status is None or seen.status < 400 or seen.status in (404, 503):
            break
        since = seen.at_s
    return since


def wait_until_ready(
    ask: Callable[[float], Seen], limit_s: float, should_stop: Callable[[], bool], on_wait: Callable[[float], None]
) -> tuple[float, Death | None]:
    """Look until the judge decides; returns (seconds since launch, death or None). Raises InterruptedSweep."""
    began = time.monotonic()
    history: list[Seen] = []
    pause = 0.1
    while True:
        if should_stop():
            raise InterruptedSweep("stopped while the engine was starting")
        history.append(ask(time.monotonic() - began))
        del history[:-2000]
        verdict = judge(history, limit_s)
        if verdict.state == "ready":
            return time.monotonic() - began, None
        if verdict.state == "give-up":
            return time.monotonic() - began, Death(reason=verdict.code, message=verdict.message)
        on_wait(history[-1].at_s)
        time.sleep(pause)
        pause = min(pause * 1.3, 1.0)


def ask_for_a_token(base_url: str, model: str, token_ids: tuple[int, int], alive: Callable[[], bool],
                    timeout_s: float) -> Callable[[float], Seen]:
    """A look: is it alive, and what does it answer to a one-token completion of three token ids."""
    low, high = token_ids
    prompt = [low, min(low + 1, high), min(low + 2, high)]
    body = {"model": model, "prompt": prompt, "max_tokens": 1, "min_tokens": 1, "ignore_eos": True, "temperature": 0}

    def look(at_s: float) -> Seen:
        if not alive():
            return Seen(at_s, alive=False)
        try:
            reply = requests.post(f"{base_url}/v1/completions", json=body, timeout=timeout_s, allow_redirects=False)
        except requests.RequestException as error:
            return Seen(at_s, alive=alive(), detail=type(error).__name__)
        return _seen(at_s, reply)

    return look


def _seen(at_s: float, reply: requests.Response) -> Seen:
    detail = " ".join(reply.text[:300].split())
    if reply.status_code != 200:
        return Seen(at_s, alive=True, status=reply.status_code, detail=detail)
    try:
        usage = reply.json()["usage"]["completion_tokens"]
    except (ValueError, KeyError, TypeError):
        return Seen(at_s, alive=True, status=599, detail=f"an answer without usage: {detail}")
    return Seen(at_s, alive=True, status=200, tokens=int(usage), detail=detail)
