"""One block: engine starts until every point of it has been visited, or no start gets any further."""

from __future__ import annotations

from dataclasses import dataclass, field

from infx.errors import EngineError, InterruptedSweep
from infx.run.context import Context
from infx.run.events import EngineDied, EngineReady, PointDone, PointSkipped
from infx.run.policy import Outcome, visits
from infx.run.start import RunningEngine, death_of, end_start, start_engine
from infx.run.visit import visit_point
from infx.schema.plan import Block
from infx.schema.result import Death, Reason, Status, Visit


@dataclass
class _Progress:
    """What is still to visit in a block, and what became of the rest."""

    block: Block
    pending: list[str]
    statuses: dict[str, Status] = field(default_factory=dict)
    position: int = 0

    def note(self, key: str, status: Status) -> None:
        self.statuses.setdefault(key, status)


def run_block(context: Context, block: Block) -> Outcome:
    """Measure a block's points. A dead engine is started again for the rest if its start measured anything."""
    progress = _Progress(block, visits(block, revisit=not context.plan.quick))
    while progress.pending and not context.should_stop():
        before = len(progress.pending)
        _one_start(context, progress)
        if progress.pending and len(progress.pending) == before:
            break
    for key in progress.pending:
        if key not in progress.statuses:
            progress.note(key, Status.INTERRUPTED)
            context.emit(PointSkipped(key, "the sweep was stopped" if context.should_stop() else "no engine"))
    return Outcome(block, progress.statuses)


def _one_start(context: Context, progress: _Progress) -> None:
    """Start the engine, visit what is pending until it is done, stopped or dead; the start is stored in any case."""
    try:
        engine = start_engine(context, progress.block)
    except EngineError as error:
        death = Death(reason="not-launched", message=str(error))
        context.emit(EngineDied(progress.block.id, death))
        raise
    death: Death | None = engine.death
    try:
        if death is None:
            context.emit(EngineReady(engine.start))
            death = _visit_all(context, progress, engine)
        if death is not None:
            context.emit(EngineDied(progress.block.id, death))
            if not engine.served:
                _fail_all(context, progress, engine, death)
    finally:
        end_start(context, engine, death)


def _visit_all(context: Context, progress: _Progress, engine: RunningEngine) -> Death | None:
    while progress.pending and not context.should_stop():
        key = progress.pending[0]
        point = context.plan.point(key)
        visit, requests = visit_point(context, engine, point, progress.position)
        death = death_of(engine, visit)
        if death is not None and not context.should_stop():
            others = [reason for reason in visit.reasons if reason.code != "stopped"]
            visit = visit.model_copy(update={"status": Status.FAILED, "reasons": [_because(death), *others]})
        result = context.store.append_visit(point, engine.start.id, visit, requests)
        progress.position += 1
        progress.note(key, visit.status)
        context.emit(PointDone(key, result, len(result.visits) - 1))
        if visit.status is Status.INTERRUPTED:
            raise InterruptedSweep("stopped; what was finished is kept")
        progress.pending.pop(0)
        engine.served = engine.served or visit.status is not Status.FAILED
        if death is not None:
            return death
    return None


def _fail_all(context: Context, progress: _Progress, engine: RunningEngine, death: Death) -> None:
    """Every pending point of a start that served nothing failed with its death; a wrong label makes it invalid."""
    status = Status.INVALID if death.reason == "label-mismatch" else Status.FAILED
    for key in dict.fromkeys(progress.pending):
        visit = Visit(ordinal=0, position=progress.position, status=status, reasons=[_because(death)])
        result = context.store.append_visit(context.plan.point(key), engine.start.id, visit)
        progress.note(key, status)
        context.emit(PointDone(key, result, len(result.visits) - 1))
    progress.pending.clear()


def _because(death: Death) -> Reason:
    cause = f" (cause: {death.cause}; {death.advice})" if death.cause not in ("", "unknown") else ""
    evidence = "\n".join(dict.fromkeys([*death.lines[:1], *death.lines[-2:]]))
    return Reason(code=f"engine-{death.reason}", message=death.message + cause, evidence=evidence)

