"""Owns what a visit's output is set against: the most that memory, compute and links allow, and the simulator's word.

Measured ÷ limit is kept for every engine; measured ÷ predicted never for one that simulates, and only where the
simulator was calibrated: single-turn requests of a fixed length on an architecture whose constants are not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from infx.errors import InfxError
from infx.predict.expect import Traffic, served_limit
from infx.schema.catalog import Catalog
from infx.schema.metrics import METRICS
from infx.schema.plan import FixedWorkload, Plan, Point
from infx.schema.result import Value
from infx.simulator.argv import parse
from infx.simulator.deployment import resolve
from infx.simulator.facts import Constants, device_shape, load_facts, model_shape
from infx.simulator.offline import closed_loop, steady
from infx.sources.tree import Tree

LIMIT, PREDICTED = "limit-share", "prediction-ratio"
WAVES = 4  # requests a stream; the first of each opens the steady window

Values = Mapping[str, Value]
Expect = Callable[[Plan, Point, Values, Values, bool], dict[str, Value]]
"""(plan, point, metrics, engine's values, whether the engine simulates) → values to keep beside the metrics."""


@dataclass
class _Facts:
    """Catalog and constants of a tree, read once when they are first asked for; predictions by server and load."""

    tree: Tree
    read: tuple[Catalog, Constants] | None = None

    def get(self) -> tuple[Catalog, Constants]:
        if self.read is None:
            self.read = load_facts(self.tree)
        return self.read


def expectations(tree: Tree) -> Expect:
    """The function that sets a visit against limit and prediction, by the facts of ``tree``."""
    facts = _Facts(tree)
    known: dict[str, float | str] = {}

    def expect(plan: Plan, point: Point, metrics: Values, engine: Values, simulated: bool) -> dict[str, Value]:
        rate = _number(metrics, "output-throughput-per-gpu")
        if rate is None:
            return {}
        try:
            catalog, constants = facts.get()
        except InfxError as error:
            return {LIMIT: _missing(LIMIT, f"configs cannot be read: {error.message}")}
        made = {LIMIT: _against(LIMIT, rate, _limit(catalog, constants, plan, point, metrics, engine))}
        if not simulated:
            if point.fingerprint not in known:
                known[point.fingerprint] = _prediction(catalog, constants, plan, point)
            made[PREDICTED] = _against(PREDICTED, rate, known[point.fingerprint])
        return made

    return expect


def _against(name: str, rate: float, bound: float | str) -> Value:
    if isinstance(bound, str):
        return _missing(name, bound)
    return Value(value=rate / bound, unit=METRICS[name].unit)


def _missing(name: str, reason: str) -> Value:
    return Value.missing(METRICS[name].unit, reason)


def _number(values: Values, name: str) -> float | None:
    found = values.get(name)
    return None if found is None or not found.value or found.value <= 0 else found.value


def _limit(
    catalog: Catalog, constants: Constants, plan: Plan, point: Point, metrics: Values, engine: Values
) -> float | str:
    """Output tok/s/GPU that the point cannot exceed, from the lengths that were measured; or why it is not known."""
    layout = point.parallel
    if (layout.pp, layout.dp) != (1, 1):
        return "the limit is not worked out for pipeline and data parallelism"
    prompt, output = _number(metrics, "input-length-mean"), _number(metrics, "output-length-mean")
    if prompt is None or output is None:
        return "the lengths of requests are not known"
    try:
        model, hardware = catalog.models[plan.model], catalog.hardware[plan.hardware]
        shape, device = model_shape(model), device_shape(hardware, model.quantization)
    except KeyError as error:
        return f"a fact is missing: {error.args[0]}"
    hits = _number(engine, "prefix-hit-share") or 0.0
    traffic = Traffic(
        streams=max(point.concurrency, _number(metrics, "streams-mean") or 0.0), prompt=prompt,
        fresh=prompt * (1 - hits), output=output, drafts=point.speculative.draft_tokens if point.speculative else 0,
        accepted=_number(engine, "acceptance-length") or point.acceptance_length or 1.0,
    )  # fmt: skip
    codecs = constants.quick_reduce["ratio"]
    env = plan.servers[point.server].env
    ratio = min((codecs[value] for value in env.values() if value in codecs and value != "NONE"), default=1.0)
    return served_limit(shape, device, layout.tp, traffic, reduce_ratio=ratio).tokens_s_gpu


def _prediction(catalog: Catalog, constants: Constants, plan: Plan, point: Point) -> float | str:
    """Output tok/s/GPU of the simulator in its steady window; or why it has no word on this point."""
    if not isinstance(point.workload, FixedWorkload):
        return "the simulator was not calibrated on replays"
    if point.speculative is not None:
        return "the simulator was not calibrated with drafts"
    hardware = catalog.hardware.get(plan.hardware)
    row = constants.overheads.get(hardware.arch) if hardware else None
    if row is None or "all" in row["assumed"]:
        return f"the simulator's constants for {hardware.arch if hardware else plan.hardware} are assumed"
    server = plan.servers[point.server]
    env = {**server.env, "INFX_SIM_HARDWARE": plan.hardware, "INFX_SIM_IMAGE": server.image}
    try:
        words = parse(server.argv)
        assert words is not None
        scheduler = resolve(words, env, catalog, constants).scheduler()
    except (InfxError, SystemExit, AssertionError):
        return "the simulator does not take this server's arguments"
    lengths = [(point.workload.isl, point.workload.osl)] * (WAVES * point.concurrency)
    try:
        return steady(closed_loop(scheduler, point.concurrency, lengths)).output_s / point.parallel.gpus
    except ValueError as error:
        return f"the simulator has no steady window: {error}"
