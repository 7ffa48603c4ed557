"""What an importer hands over: figures taken from another tool's file as they stand, or null with a reason.

An importer computes no metric. A figure whose definition is one of ours stands under our name (units converted);
every other figure stays under the name that its tool gives it, in ``foreign``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, JsonValue

from infx.results.formats.names import mislabelled
from infx.schema.metrics import METRICS
from infx.schema.result import Reason, Status, Value
from infx.schema.strict import Strict

CORE = (
    "output-throughput", "total-throughput", "output-throughput-per-gpu", "total-throughput-per-gpu",
    "input-throughput-per-gpu", "output-throughput-whole-wall", "total-throughput-whole-wall",
    "output-throughput-whole-wall-per-gpu", "total-throughput-whole-wall-per-gpu", "request-throughput",
    "ttft-mean", "ttft-p50", "ttft-p90", "ttft-p99", "tpot-p50", "tpot-p90",
    "tpot-common-formula-mean", "tpot-common-formula-p50", "tpot-common-formula-p90", "tpot-common-formula-p99",
    "itl-mean", "itl-p50", "chunk-gap-mean", "chunk-gap-p50", "chunk-gap-p90", "chunk-gap-p99",
    "e2el-mean", "e2el-p50", "e2el-p90", "e2el-p99", "interactivity-median", "interactivity-at-p90-tpot",
    "e2e-interactivity-median", "acceptance-length", "prefix-hit-share", "energy-per-output-token",
)
"""Metrics that every import states, with a value or with the reason why there is none."""


class Imported(Strict):
    """One measured point of another tool."""

    format: str = Field(description="Name of the format.")
    source: str = Field(description="File or folder it was read from.")
    model: str | None = Field(default=None, description="Model as the file names it.")
    hardware: str | None = Field(default=None, description="Hardware as the file names it.")
    engine: str | None = Field(default=None, description="Engine as the file names it.")
    image: str | None = Field(default=None, description="Image as the file names it.")
    gpus: int | None = Field(default=None, description="GPUs, when the file says.")
    concurrency: int | None = Field(default=None, description="Concurrency asked for, when the file says.")
    status: Status = Field(strict=False, description="Our judgement of the file's own words.")
    reasons: list[Reason] = Field(default_factory=list, description="Why it is not ok, and what a reader must know.")
    counts: dict[str, int] = Field(default_factory=dict, description="Requests: sent, ok, failed, cut.")
    metrics: dict[str, Value] = Field(description="Figures whose definition is ours, and nulls for the rest.")
    foreign: dict[str, float] = Field(default_factory=dict, description="Other figures, under the tool's own names.")
    facts: dict[str, JsonValue] = Field(default_factory=dict, description="Other statements of the file.")


@dataclass(frozen=True, slots=True)
class Take:
    """One figure to take: its name in the file, our name or None (then it stays foreign), and unit factor."""

    key: str
    ours: str | None = None
    factor: float = 1.0


@dataclass(frozen=True)
class Found:
    """What a reader of one format found, before the rules that hold for all formats are applied."""

    format: str
    source: str
    figures: Mapping[str, Any]
    takes: Iterable[Take]
    lacks: Mapping[str, str]
    counts: Mapping[str, int]
    reasons: tuple[Reason, ...] = ()
    identity: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] | None = None
    stopped: Status | None = None


def settle(found: Found) -> Imported:
    """Judge what was found: zeros and non-finite figures become null, failures that look finished are named."""
    identity = dict(found.identity or {})
    counts = {name: count for name, count in found.counts.items() if count is not None}
    status, reasons = _judge(counts, found)
    reasons += mislabelled(found.source, identity.get("model"), identity.get("concurrency"))
    metrics: dict[str, Value] = {}
    foreign: dict[str, float] = {}
    dead = status is Status.FAILED
    for take in found.takes:
        raw = found.figures.get(take.key)
        if not _is_number(raw) or dead:
            continue
        if take.ours is None:
            if math.isfinite(raw):
                foreign[take.key] = float(raw)
        else:
            metrics[take.ours] = _value(take, raw, counts.get("ok"))
    for name in CORE:
        if name not in metrics:
            why = "the run failed; its figures are no measurement" if dead else found.lacks.get(name)
            metrics[name] = Value.missing(METRICS[name].unit, why or f"{found.format} does not state it")
    return Imported(
        format=found.format, source=found.source, status=status, reasons=reasons, counts=counts, metrics=metrics,
        foreign=foreign, facts={key: plain(value) for key, value in (found.facts or {}).items()}, **identity,
    )


def _value(take: Take, raw: float, ok: int | None) -> Value:
    metric = METRICS[take.ours or ""]
    if not math.isfinite(raw):
        return Value.missing(metric.unit, f"{take.key} is {raw} in the file")
    if raw == 0 and metric.statistic in ("rate", "mean", "p50", "p90", "p99"):
        return Value.missing(metric.unit, f"{take.key} is 0 in the file, which no measurement gives")
    n = ok if metric.statistic in ("mean", "p50", "p90", "p99") else None
    return Value(value=raw * take.factor, unit=metric.unit, n=n)


def _judge(counts: Mapping[str, int], found: Found) -> tuple[Status, list[Reason]]:
    ok, sent, failed = counts.get("ok"), counts.get("sent"), counts.get("failed")
    reasons = list(found.reasons)
    if ok == 0:
        of = f" of {sent}" if sent is not None else ""
        message = f"0{of} requests completed; the file looks finished, its zeros are no figures"
        return Status.FAILED, [Reason(code="nothing-completed", message=message), *reasons]
    if found.stopped is not None:
        return found.stopped, reasons
    short = failed or (sent - ok if sent is not None and ok is not None and sent > ok else 0)
    if short:
        message = f"{short} of {sent if sent is not None else (ok or 0) + short} requests did not complete"
        return Status.INVALID, [Reason(code="failures-above-limit", message=message), *reasons]
    if failed is None and (ok is None or sent is None):
        reasons.append(Reason(code="failures-unknown", message="the file does not say how many requests failed"))
    bad = any(reason.code in INVALIDATING for reason in reasons)
    return (Status.INVALID if bad else Status.OK), reasons


INVALIDATING = frozenset({"file-disagrees-with-itself", "unclean-exit"})


def disagreement(what: str, stated: float, other: float, tolerance: float = 0.01) -> tuple[Reason, ...]:
    """A reason when two statements of one file differ by more than ``tolerance``."""
    if abs(stated - other) <= tolerance * max(abs(stated), abs(other)):
        return ()
    return (Reason(code="file-disagrees-with-itself", message=f"{what}: {stated:g} against {other:g}"),)


def plain(value: Any) -> JsonValue:
    """A value that strict JSON can hold: infinities and not-a-number as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
