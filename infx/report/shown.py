"""What a reader is told about a run in words: its marks, its provenance and the name of a point."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from infx.results.layout import PointKey
from infx.results.load import LoadedRun
from infx.schema.result import PointResult, Status


def marks(loaded: LoadedRun) -> list[str]:
    """``SIMULATED``, ``UNOFFICIAL``, ``QUICK``: what must be read before any figure."""
    found = (("SIMULATED", loaded.simulated), ("UNOFFICIAL", loaded.unofficial), ("QUICK", loaded.quick))
    return [word for word, holds in found if holds]


def meaning(mark: str) -> str:
    """One clause on what a mark says."""
    return {
        "SIMULATED": "no hardware was measured",
        "UNOFFICIAL": "rules were relaxed",
        "QUICK": "short prompts and windows",
    }[mark]


def short(key: str) -> str:
    """A point without its recipe: ``[arm ]tp2 c8``."""
    parts = PointKey.parse(key)
    arm = f"{parts.arm} " if parts.arm else ""
    return f"{arm}{parts.axes} c{parts.concurrency}"


def tally(loaded: LoadedRun) -> dict[str, int]:
    """How many points of the plan stand at each status; ``missing`` for those that no start has."""
    counts: Counter[str] = Counter()
    for point in loaded.plan.points:
        result = loaded.chosen(point.key)
        counts["missing" if result is None else str(result.status)] += 1
    order = [*map(str, Status), "missing"]
    return {name: counts[name] for name in order if counts[name]}


def reasons(result: PointResult) -> list[str]:
    """The reasons of a result as ``code: message (evidence)``; a code that only repeats the status is left out."""
    return [
        ("" if reason.code == result.status else f"{reason.code}: ")
        + reason.message
        + (f" ({reason.evidence})" if reason.evidence else "")
        for reason in result.reasons
    ]


def provenance(loaded: LoadedRun) -> list[tuple[str, str]]:
    """Where the figures come from, as (name, value) lines; unknown facts say so."""
    run, plan = loaded.run, loaded.plan
    starts = list(loaded.starts.values())
    verdicts = Counter(observed.verdict for start in starts for observed in start.observed)
    settings = ", ".join(f"{verdicts[v]} {v}" for v in ("verified", "mismatch", "unreadable") if verdicts[v])
    versions = _distinct(str(start.version.get("version", "unknown")) for start in starts)
    counts = ", ".join(f"{number} {name}" for name, number in tally(loaded).items())
    lines = [
        ("run", run.id),
        ("state", f"{loaded.state}: {counts}"),
        ("recipe", f"{run.recipe} ({plan.model}, {plan.precision}, {plan.hardware})"),
        ("engine", f"{plan.engine} {versions or 'never started'}"),
        ("image", _distinct(_image(start.image, start.digest) for start in starts)
         or _distinct(server.image for server in plan.servers.values())),
        ("runner", f"{run.runner} on {_distinct(start.node for start in starts) or 'no node'}"),
        ("driver", _distinct(start.driver or "unknown" for start in starts) or "unknown"),
        ("settings", settings or "none read back"),
        ("client", f"{run.client_version} on {run.client_host}"),
        ("infx", f"{run.harness_version} ({run.harness_commit or 'commit unknown'})"),
        ("made", datetime.fromtimestamp(run.created_unix, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")),
    ]
    if plan.assumed:
        lines.append(("assumed", _assumed(plan.assumed)))
    return lines


def _assumed(facts: list[str]) -> str:
    """Facts without a source, those of one thing together: ``model: weight-bytes, kv-pool-bytes``."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        owner, colon, name = fact.partition(": ")
        groups.setdefault(owner if colon else "", []).append(name if colon else fact)
    return "; ".join(f"{owner}: {', '.join(names)}" if owner else ", ".join(names) for owner, names in groups.items())


def _image(image: str, digest: str | None) -> str:
    return f"{image} ({digest})" if digest and digest not in image else image


def _distinct(words) -> str:
    return ", ".join(dict.fromkeys(words))
