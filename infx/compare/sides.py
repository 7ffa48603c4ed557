"""The two sides of a comparison: which starts measured which points, and under which facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from infx.results.layout import PointKey
from infx.results.load import LoadedRun
from infx.schema.changelog import Results
from infx.schema.plan import Plan, Point, Workload
from infx.schema.result import PointResult, Reason, Start, Status, Value

Rerun = Literal["latest", "repeats"]
"""What becomes of a point that several runs measured: the newest run's starts, or every start as a repeat."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a measurement is of; None where it was not recorded."""

    recipe: str
    arm: str | None
    axes: Mapping[str, int]
    concurrency: int
    fingerprint: str
    workload: str | None = None
    fixed_length: bool = False
    model: str | None = None
    precision: str | None = None
    hardware: str | None = None
    engine: str | None = None
    gpus: int | None = None
    client: str | None = None
    simulated: bool | None = None
    quick: bool | None = None
    unofficial: bool | None = None
    image: str | None = None
    digest: str | None = None
    node: str | None = None
    driver: str | None = None
    version: str | None = None
    harness: str | None = None

    @property
    def label(self) -> str:
        """The point without recipe and arm: ``tp2/c64``."""
        return f"{self.curve}/c{self.concurrency}"

    @property
    def curve(self) -> str:
        """The curve that the point lies on, its layout: ``tp2``, ``tp2-ep2``."""
        extra = [f"{name}{size}" for name, size in self.axes.items() if name != "tp" and size != 1]
        return "-".join([f"tp{self.axes.get('tp', 1)}", *extra])


_FACTS = tuple(Facts.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Measured:
    """One point in one engine start: the first visit's values, and the file that holds them."""

    start: str
    run: str
    launched: float
    facts: Facts
    status: Status
    reasons: tuple[Reason, ...]
    values: Mapping[str, Value]
    file: Path | None = None
    sha256: str | None = None

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its measurements by point label, in ladder order, and the points that it planned and lacks.

    ``planned_starts`` says in how many starts one run's plan measures a point (0 for several runs): more than one
    makes the run an interleaved A/B, whose schedule of looks follows from that number.
    """

    name: str
    points: Mapping[str, tuple[Measured, ...]]
    missing: tuple[str, ...] = ()
    planned_starts: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Measured, ...] = ()

    def good(self, label: str) -> tuple[Measured, ...]:
        """The usable measurements of a point, by launch."""
        return tuple(m for m in self.points.get(label, ()) if m.ok)

    @property
    def starts(self) -> set[str]:
        return {m.start for measured in self.points.values() for m in measured}


def side_of(
    name: str, runs: Iterable[LoadedRun], arm: str | None = None, rerun: Rerun = "repeats",
    keep: Collection[str] | None = None,
) -> Side:
    """The measurements of ``arm`` (None: the base) in ``runs``, by point label.

    ``rerun`` says what becomes of a point that several runs measured. Points are in the order of the first plan that
    has them; starts by launch time. ``runs`` is gone through once, and only metrics in ``keep`` (None: all) are held,
    so that hundreds of runs fit into memory.
    """
    points: dict[str, list[Measured]] = {}
    planned: dict[str, int] = {}
    count = 0
    for loaded in runs:
        count += 1
        facts, starts = planned_facts(loaded.plan, arm), _starts_by_point(loaded.plan)
        declared = {key: {name: getattr(fact, name) for name in _FACTS} for key, fact in facts.items()}
        for key, fact in facts.items():
            points.setdefault(fact.label, [])
            planned[fact.label] = starts.get(key, 0)
        for result in loaded.results:
            if result.point in facts:
                points[facts[result.point].label].append(_measured(loaded, result, declared[result.point], keep))
    kept = {label: settle(found, rerun) for label, found in points.items()}
    missing = tuple(label for label, (found, _) in kept.items() if not found)
    return Side(name, {label: found for label, (found, _) in kept.items() if found}, missing,
                planned if count == 1 else {},
                tuple(m for _, dropped in kept.values() for m in dropped))


def side_of_entry(name: str, entry: Results) -> Side:
    """A results entry of the changelog as a side: one measurement a point, its printed figures, few facts."""
    points = {}
    for item in entry.points:
        key = PointKey.parse(item.point)
        facts = Facts(
            recipe=entry.recipe, arm=key.arm, axes=axes_of(key.axes), concurrency=key.concurrency,
            fingerprint=item.fingerprint, simulated=bool({"simulated", "stands-in"} & set(entry.provenance)),
            quick="quick" in entry.provenance, unofficial="unofficial" in entry.provenance, harness=entry.harness,
        )
        values = {metric: Value(value=figure, unit="") for metric, figure in item.metrics.items()}
        measured = Measured(start=f"{entry.run}:{item.sha256[:12]}", run=entry.run, launched=0.0, facts=facts,
                            status=Status(item.status), reasons=(), values=values, sha256=item.sha256)
        points[facts.label] = (*points.get(facts.label, ()), measured)
    return Side(name, points)


def settle(found: Iterable[Measured], rerun: Rerun) -> tuple[tuple[Measured, ...], tuple[Measured, ...]]:
    """(kept, dropped) measurements of one point by the declared policy, by launch.

    ``repeats`` keeps every start; ``latest`` keeps the starts of the run that has the newest one.
    """
    ordered = tuple(sorted(found, key=lambda m: (m.launched, m.run, m.start)))
    if rerun == "repeats" or not ordered:
        return ordered, ()
    newest = ordered[-1].run
    return tuple(m for m in ordered if m.run == newest), tuple(m for m in ordered if m.run != newest)


def axes_of(text: str) -> dict[str, int]:
    """``tp2-ep2`` → {tp: 2, ep: 2}. ValueError for other text."""
    axes = {}
    for part in text.split("-"):
        word = part.rstrip("0123456789")
        axes[word] = int(part[len(word):])
    return axes


def workload_text(workload: Workload) -> str:
    """A workload as one comparable line."""
    return json.dumps(workload.model_dump(mode="json", by_alias=True), sort_keys=True)


def evidence(measured: Iterable[Measured], hash_of: Callable[[Path], str]) -> dict[str, str]:
    """Result files by run and start with their sha256; what an entry stored is taken as stored."""
    found = {}
    for m in measured:
        digest = m.sha256 or (hash_of(m.file) if m.file is not None else None)
        if digest is not None:
            found[f"{m.start} {m.facts.label}"] = digest
    return found


def planned_facts(plan: Plan, arm: str | None) -> dict[str, Facts]:
    """Declared facts of an arm's points by point key."""
    return {point.key: _declared(plan, point) for point in plan.points if point.arm == arm}


def _starts_by_point(plan: Plan) -> dict[str, int]:
    starts: dict[str, int] = {}
    for block in plan.blocks:
        for key in block.points:
            starts[key] = starts.get(key, 0) + 1
    return starts


def _declared(plan: Plan, point: Point) -> Facts:
    parallel = point.parallel
    return Facts(
        recipe=plan.recipe, arm=point.arm, concurrency=point.concurrency, fingerprint=point.fingerprint,
        axes={"tp": parallel.tp, "pp": parallel.pp, "dp": parallel.dp, "ep": parallel.ep},
        workload=workload_text(point.workload), fixed_length=point.workload.kind == "fixed-seq-len",
        model=plan.model, precision=plan.precision, hardware=plan.hardware, engine=plan.engine,
        image=plan.servers[point.server].image,
    )


def _measured(loaded: LoadedRun, result: PointResult, declared: Mapping[str, object], keep: Collection[str] | None
              ) -> Measured:
    start: Start = loaded.starts[result.start]
    visit = result.visits[0]
    observed = {
        **declared,
        "fingerprint": result.fingerprint, "gpus": result.gpus, "client": result.client_version,
        "simulated": loaded.run.stands_in or start.simulated, "quick": loaded.quick,
        "unofficial": loaded.unofficial, "image": start.image, "digest": start.digest, "node": start.node,
        "driver": start.driver, "version": str(start.version.get("version", "")) or None,
        "harness": loaded.run.harness_commit or loaded.run.harness_version,
    }
    return Measured(
        start=f"{loaded.run.id}:{start.id}", run=loaded.run.id, launched=start.launched_unix, facts=Facts(**observed),
        status=result.status, reasons=tuple(result.reasons),
        values={name: value for part in (visit.engine, visit.metrics) for name, value in part.items()
                if keep is None or name in keep},
        file=loaded.paths.point(result.point, result.start).result,
    )
