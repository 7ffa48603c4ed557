"""One visit of a point: load, scrapes at both ends of the window, and the visit as it is stored."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, field

from infx.errors import EngineError
from infx.measure.agentic import agentic
from infx.measure.summary import summarise
from infx.measure.validity import Expected, invalid_reasons
from infx.measure.window import Span
from infx.results.layout import PointKey
from infx.run.context import Context
from infx.run.events import PointProgress
from infx.run.load.client import LoadOutput, run_load
from infx.run.load.control import Ending, Progress
from infx.run.load.health import client_bound
from infx.run.load.spec import LoadSpec, WindowRule
from infx.run.start import RunningEngine
from infx.run.telemetry.engine import cache_block, engine_facts, engine_values, timeline_csv
from infx.run.telemetry.power import gpus_of, telemetry_values
from infx.run.telemetry.scrape import Poller, Samples, Scrape, fetch, parse
from infx.run.workload import Prepared, source_for
from infx.schema.metrics import METRICS
from infx.schema.plan import AgenticWorkload, FixedWorkload, Point
from infx.schema.result import Reason, Status, Value, Visit, Window

_SETTLED = {Ending.COMPLETE, Ending.CAP, Ending.EXHAUSTED}


@dataclass
class _Scrapes:
    """Scrapes of one window: both ends, and a poller between them."""

    base_url: str
    interval_s: float
    ends: list[Scrape] = field(default_factory=list)
    between: list[Scrape] = field(default_factory=list)
    poller: Poller | None = None

    def opened(self) -> None:
        self._end()
        self.poller = Poller(self.base_url, self.interval_s)
        self.poller.start()

    def closed(self) -> None:
        if self.poller is not None:
            self.between = self.poller.stop()
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(EngineError):
            self.ends.append(fetch(self.base_url))

    def timeline(self) -> list[tuple[int, Samples]]:
        """Parsed scrapes in order; empty unless both ends are there."""
        if len(self.ends) != 2:
            return []
        inner = [scrape for scrape in self.between if self.ends[0].ns < scrape.ns < self.ends[1].ns]
        try:
            return [(scrape.ns, parse(scrape.text)) for scrape in [self.ends[0], *inner, self.ends[1]]]
        except EngineError:
            return []


def visit_point(context: Context, engine: RunningEngine, point: Point, position: int) -> tuple[Visit, bytes | None]:
    """Measure a point once on a running engine; returns the visit and the bytes of its per-request columns."""
    salt = f"{point.key}/{engine.start.id}/{position}/{secrets.token_hex(8)}"
    scrapes = _Scrapes(engine.base_url, 0.5 if context.plan.quick else 1.0)
    prepared = source_for(context.plan, point, salt, context.root, context.environment)
    try:
        output = run_load(
            _spec(context, engine, point, prepared), prepared.source, on_window_open=scrapes.opened,
            on_window_close=scrapes.closed, on_progress=lambda now: _tell(context, point, now),
            should_stop=lambda: context.should_stop() or not engine.alive,
        )
    finally:
        if scrapes.poller is not None and not scrapes.between:
            scrapes.between = scrapes.poller.stop()
    _store_scrapes(context, engine, point, position, scrapes)
    visit = _visit(context, point, position, output, scrapes, repeats=prepared.repeats)
    visit = _with_expected(context, engine, point, _with_telemetry(engine, point, visit))
    visit = visit.model_copy(update={"counts": visit.counts | prepared.counts,
                                     "reasons": [*visit.reasons, *prepared.notes]})
    return visit, output.table.to_bytes() if len(output.table) else None


def _with_telemetry(engine: RunningEngine, point: Point, visit: Visit) -> Visit:
    """The visit with what a sampler says of its window; unchanged where the profile names no tool."""
    if engine.sampler is None or visit.window is None:
        return visit
    samples = engine.sampler.settle(visit.window.closed_unix)
    gpus, unknown = gpus_of(samples, engine.start.devices, point.parallel.gpus)
    rate = visit.metrics.get("output-throughput")
    tokens = rate.value * visit.window.seconds if rate is not None and rate.value is not None else None
    why = unknown if samples and unknown else engine.sampler.why_none()
    found = telemetry_values(samples, gpus, visit.window, tokens, why)
    return visit.model_copy(update={"engine": visit.engine | found})


def _with_expected(context: Context, engine: RunningEngine, point: Point, visit: Visit) -> Visit:
    """The visit with its output set against limit and prediction."""
    if context.expect is None or visit.window is None:
        return visit
    found = context.expect(context.plan, point, visit.metrics, visit.engine, engine.start.simulated)
    return visit.model_copy(update={"engine": visit.engine | found})


def _spec(context: Context, engine: RunningEngine, point: Point, prepared: Prepared) -> LoadSpec:
    limits = context.runner.limits
    server = context.plan.servers[point.server]
    return LoadSpec(
        base_url=engine.base_url, model=server.served_name, concurrency=point.concurrency, window=_window(point),
        endpoint=prepared.endpoint, request_timeout_s=limits.request_s, stall_s=limits.quiet_s,
        drain_s=limits.request_s,
    )


def _window(point: Point) -> WindowRule:
    if isinstance(point.workload, AgenticWorkload):
        return WindowRule(duration_s=point.workload.duration_s)
    stop = point.stop
    return WindowRule(minimum_requests=stop.min_requests, minimum_s=stop.window_s, cap_s=stop.cap_s,
                      target=stop.half_width)


def _tell(context: Context, point: Point, now: Progress) -> None:
    rule = _window(point)
    whole = rule.duration_s or rule.minimum_s
    share = {"ramp": 0.0, "open": min(1.0, now.window_s / whole)}.get(str(now.stage), 1.0)
    context.emit(PointProgress(point.key, str(now.stage), share, now.ended))


def _visit(context: Context, point: Point, position: int, output: LoadOutput, scrapes: _Scrapes, *, repeats: bool
           ) -> Visit:
    common = {"ordinal": 0, "position": position, "failures": output.failures, "seconds": output.seconds,
              "client": _client(output)}
    if output.window is None:
        status, reason = _no_window(output)
        return Visit(status=status, reasons=[reason, *_messages(output)], counts=_counts(output, None), **common)
    span = Span(output.window.open_ns, output.window.close_ns)
    metrics = summarise(output.table, span, gpus=point.parallel.gpus, concurrency=point.concurrency)
    timeline = scrapes.timeline()
    if isinstance(point.workload, AgenticWorkload):
        metrics |= agentic(output.table, span, cache_block(timeline))
    counters = context.engine.counters
    engine = engine_values(timeline, counters, point.concurrency)
    reasons = invalid_reasons(output.table, span, _expected(point, repeats), engine_facts(timeline, counters, engine))
    status, reasons = _judged(output, metrics, reasons)
    return Visit(
        status=status, reasons=reasons, metrics=metrics, engine=engine, counts=_counts(output, metrics),
        window=Window(opened_unix=output.window.opened_unix, closed_unix=output.window.closed_unix,
                      seconds=span.seconds), **common)


def _expected(point: Point, repeats: bool) -> Expected:
    fixed = isinstance(point.workload, FixedWorkload) and not repeats
    return Expected(
        concurrency=point.concurrency, failure_limit=point.stop.failure_share,
        known_hit_share=0.0 if fixed else None, synthetic_acceptance=point.acceptance_length,
        speculative=point.speculative is not None,
    )


def _judged(output: LoadOutput, metrics: dict[str, Value], reasons: list[Reason]) -> tuple[Status, list[Reason]]:
    """Status by severity: stopped, hung or failing, invalid, client-bound, ok."""
    if output.ending not in _SETTLED:
        status, reason = _no_window(output)
        return status, [reason, *reasons, *_messages(output)]
    if reasons:
        return Status.INVALID, [*reasons, *_messages(output)]
    tpot = metrics["tpot-p50"].value if "tpot-p50" in metrics else None
    bound = client_bound(output.health, tpot)
    if bound:
        return Status.CLIENT_BOUND, [Reason(code="client-bound", message=text) for text in bound]
    if output.ending is Ending.CAP:
        return Status.OK, [Reason(code="cap", message="the window closed at its cap, before the minimum of requests")]
    return Status.OK, []


def _no_window(output: LoadOutput) -> tuple[Status, Reason]:
    if output.ending is Ending.STOPPED:
        return Status.INTERRUPTED, Reason(code="stopped", message="the sweep was stopped while the point was measured")
    if output.ending is Ending.HUNG:
        return Status.FAILED, Reason(code="engine-hung", message=output.message)
    if output.ending is Ending.FAILING:
        return Status.FAILED, Reason(code="requests-fail", message=output.message)
    return Status.FAILED, Reason(code="no-window", message=output.message or "the window never opened")


def _messages(output: LoadOutput) -> list[Reason]:
    """The first message of each kind of failure."""
    return [Reason(code=f"first-{kind}", message=text[:500]) for kind, text in output.first_messages.items()]


def _counts(output: LoadOutput, metrics: dict[str, Value] | None) -> dict[str, int]:
    names = ("requests-measured", "requests-ok", "requests-failed", "requests-cut", "requests-all")
    found = {name.removeprefix("requests-"): metrics[name].value for name in names if metrics and name in metrics}
    return {"all": len(output.table), **{name: int(value) for name, value in found.items() if value is not None}}


def _client(output: LoadOutput) -> dict[str, Value]:
    health = output.health
    if not health:
        return {}
    figures = {
        "loop-lag-p99": max(worker.lag_p99_ms for worker in health),
        "client-cpu-share": max(worker.cpu_share for worker in health),
        "client-reads-rate": sum(worker.reads_per_s for worker in health),
        "client-gc-pause-max": max(worker.gc_pause_max_ms for worker in health),
    }
    return {name: Value(value=float(value), unit=METRICS[name].unit, n=len(health)) for name, value in figures.items()}


def _store_scrapes(context: Context, engine: RunningEngine, point: Point, position: int, scrapes: _Scrapes) -> None:
    key = PointKey.parse(point.key)
    folder = context.store.paths.start(engine.start.id).metrics
    for name, scrape in zip(("open", "close"), scrapes.ends, strict=False):
        context.store.write_file(folder / f"{key.axes}-c{key.concurrency}-{position}-{name}.prom", scrape.text)
    timeline = scrapes.timeline()
    if timeline:
        path = context.store.paths.timeline(point.key, engine.start.id, position)
        context.store.write_file(path, timeline_csv(timeline, context.engine.counters))

