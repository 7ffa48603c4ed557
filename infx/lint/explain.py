"""Owns the explanation of a point before it runs: command, rows, features, graphs, memory, chunks and the roofline."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from infx.engines.acceptance import spelled
from infx.findings import Mark
from infx.lint.view import RecipeView, ServerView
from infx.plan.offload import offload_budget_gb
from infx.predict.capture import coverage
from infx.predict.defaults import max_num_batched_tokens
from infx.predict.deployment import Deployment
from infx.predict.features import RUNS, FeatureState, LaunchState, State
from infx.predict.memory import budget
from infx.predict.offload import MOST_MIB, offloaded_tokens
from infx.predict.roofline import Limit, StepShape, limit
from infx.schema.plan import Plan, Point
from infx.schema.recipe import FixedSeqLen
from infx.simulator.facts import device_shape, model_shape

GIB = 2.0**30
AGENTIC_CONTEXT = 65536


@dataclass(frozen=True)
class FeatureLine:
    """One feature at one point: the ``word`` is engaged, partial, not engaged, off, clamped, refused or unknown."""

    name: str
    title: str
    word: str
    details: tuple[str, ...]
    where: Mark | None


@dataclass(frozen=True)
class Explanation:
    """What one point will do. ``rows`` is a full decode step; sections are lines of text."""

    key: str
    command: str
    rows: int
    features: tuple[FeatureLine, ...]
    steps: tuple[str, ...]
    memory: tuple[str, ...]
    roofline: tuple[str, ...]
    assumed: bool

    def words(self) -> dict[str, str]:
        """Feature → word, for comparisons."""
        return {line.name: line.word for line in self.features}


def explain(view: RecipeView, plan: Plan) -> list[Explanation]:
    """Every point of ``plan``, which must be the plan of the view's recipe."""
    found = []
    for point in plan.points:
        server = _server(view, point)
        if server is not None:
            found.append(_point(view, plan, point, server))
    return found


def _server(view: RecipeView, point: Point) -> ServerView | None:
    axes = (point.parallel.tp, point.parallel.pp, point.parallel.dp, point.parallel.ep)
    for server in view.servers:
        layout = server.layout
        same = (layout.tp, layout.pp, layout.dp, layout.ep) == axes and server.arm == point.arm
        if same and point.concurrency in server.concurrencies:
            return server
    return None


def _point(view: RecipeView, plan: Plan, point: Point, server: ServerView) -> Explanation:
    deployment = server.at_concurrency(point.concurrency)
    rows = point.concurrency * (1 + deployment.drafts)
    config = plan.servers[point.server]
    words = [*(f"{name}={value}" for name, value in config.env.items()), config.engine, *config.argv]
    features = [_feature(view, server, state, rows, deployment) for state in server.engagement.features.values()]
    memory, assumed = _memory(deployment, point.concurrency)
    return Explanation(
        key=point.key, command=" ".join(_quoted(word) for word in words), rows=rows,
        features=tuple(line for line in features if line is not None),
        steps=(*_steps(deployment, rows), *_accepted(point)),
        memory=(*memory, *_offload(view, server)),
        roofline=tuple(_roofline(view, deployment, server, point.acceptance_length)),
        assumed=assumed or bool(deployment.model.assumed()),
    )  # fmt: skip


def _quoted(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name}={shlex.quote(value)}" if equals and name.isidentifier() else shlex.quote(word)


def _feature(
    view: RecipeView, server: ServerView, state: FeatureState, rows: int, deployment: Deployment
) -> FeatureLine | None:
    if state.state is State.NOT_APPLICABLE or (state.state is State.OFF and not state.asked and not state.launches):
        return None
    where = _asked_at(view, server, state)
    if state.state not in RUNS:
        return FeatureLine(state.name, state.title, str(state.state), state.reasons, where)
    engaged, details = [], []
    for launch in state.launches:
        if launch.state is State.OFF and view.catalog.features[state.name].launches[launch.name].instead_of:
            continue
        takes = launch.engages(rows, False, rows)
        engaged.append(takes)
        details.append(_launch(launch, takes, rows, deployment))
    word = "engaged" if all(engaged) else "partial" if any(engaged) else "not engaged"
    if state.state is State.CLAMPED:
        word += ", clamped"
    return FeatureLine(state.name, state.title, word, tuple(details), where)


def _launch(launch: LaunchState, takes: bool, rows: int, deployment: Deployment) -> str:
    """One launch in a full decode step: taken or not, with the bound that decides."""
    parts = [f"{launch.name} ({launch.title}{f', {launch.layers} layers' if launch.layers else ''}):"]
    if launch.state not in RUNS:
        return " ".join([*parts, "off;", "; ".join(launch.reasons)])
    per_stream = 1 + deployment.drafts
    if launch.cap is not None:
        sign = "≤" if rows <= launch.cap else ">"
        streams = launch.cap // per_stream
        parts.append(f"{rows} rows {sign} {launch.cap}, so up to {streams} streams" if launch.cap else "")
    if launch.floor is not None:
        sign = "≥" if rows >= launch.floor else "<"
        parts.append(f"{rows} tokens {sign} {launch.floor} (threshold); steps with a chunk of that size are above it")
    if not takes:
        parts.append("→ not in full decode steps")
    return " ".join([*parts, *(f"({reason})" for reason in launch.reasons)])


def _asked_at(view: RecipeView, server: ServerView, state: FeatureState) -> Mark | None:
    for test in view.catalog.features[state.name].asked_by:
        kind, _, name = test.of.partition(".")
        if kind in ("env", "serve") and server.deployment.variable(name) is not None:
            return view.place_of(kind, name, server)
    return None


def _steps(deployment: Deployment, rows: int) -> Iterable[str]:
    chunk = max_num_batched_tokens(deployment)
    yield f"{rows} rows in a full decode step: {deployment.concurrency} streams × (1 + {deployment.drafts} drafts)"
    yield f"graphs: {coverage(deployment).reason}"
    budget_left = max(chunk - rows, 0)
    yield f"a step has {chunk:,} tokens, so a chunk beside a full decode step has up to {budget_left:,} prompt tokens"


def _accepted(point: Point) -> Iterable[str]:
    """The golden length in every engine's words: a review compares submissions of several."""
    if point.acceptance_length is not None:
        said = "; ".join(f"{name} {words}" for name, words in spelled(point.acceptance_length).items())
        yield f"golden acceptance length {point.acceptance_length:g}: {said}"


def _memory(deployment: Deployment, concurrency: int) -> tuple[tuple[str, ...], bool]:
    found = budget(deployment)
    if found.unknown:
        return (f"unknown: {', '.join(found.unknown)}",), False
    lines = [f"{found.usable / GIB:.1f} of {found.total / GIB:.1f} GiB a GPU may be used"]
    for item in found.items:
        mark = " (assumed)" if item.assumed else ""
        lines.append(f"{item.bytes / GIB:8.1f} GiB  {item.name}: {item.formula}{mark}")
    lines.append(f"{found.left / GIB:8.1f} GiB  left for KV cache")
    if found.kv_tokens is not None:
        each = found.tokens_per_request(concurrency)
        lines.append(f"{found.kv_tokens:,} KV tokens, {each:,} a stream")
    if found.host_bytes:
        lines.append(f"{found.host_bytes / GIB:.1f} GiB in host memory")
    return tuple(lines), found.assumed


def _offload(view: RecipeView, server: ServerView) -> Iterable[str]:
    """The host memory that KV offload may fill, with its formula, and the tokens that it holds."""
    asked, dram = view.recipe.kv_offload, view.dram
    found = offload_budget_gb(view.recipe, server.layout, dram)
    if asked is None or dram is None or found is None:
        return
    gpus = view.gpus(server.layout)
    line = (f"{found:,} GB of host memory for KV offload by {asked.backend}: min({dram.host_memory_mib:,}, "
            f"{MOST_MIB:,}) MiB × {asked.dram_utilization:g} × {gpus} of {dram.gpus_per_node} GPUs")
    if "kv-pool-bytes" in server.deployment.model.known:
        held = offloaded_tokens(found, server.deployment.model.number("kv-pool-bytes"))
        line += f"; it holds {held:,} tokens of KV in the pool's own format"
    yield line


def _roofline(
    view: RecipeView, deployment: Deployment, server: ServerView, acceptance: float | None
) -> Iterable[str]:
    """The least time of a full decode step and of a full chunk; nothing where the model's facts do not suffice."""
    try:
        model = model_shape(deployment.model)
        device = device_shape(deployment.hardware, deployment.model.quantization)
    except KeyError as error:
        yield f"unknown: {error.args[0]}"
        return
    scenario = view.recipe.scenario
    streams = deployment.concurrency or 1
    fixed = isinstance(scenario, FixedSeqLen)
    context = scenario.isl + scenario.osl / 2 if isinstance(scenario, FixedSeqLen) else AGENTIC_CONTEXT
    rows = streams * (1 + deployment.drafts)
    decode = StepShape(decode_seqs=streams, decode_rows=rows, decode_context=streams * context,
                       drafting=deployment.drafts > 0)  # fmt: skip
    said = "" if fixed else " (context assumed)"
    found = limit(model, device, deployment.tp, decode, streams * (acceptance or 1 + deployment.drafts))
    yield f"decode step at {context:,.0f} tokens of context a stream{said}: {_bound(found)}"
    chunk = max_num_batched_tokens(deployment)
    prompt = min(chunk, scenario.isl * streams) if isinstance(scenario, FixedSeqLen) else chunk
    prefill = StepShape(prompt_tokens=int(prompt), prompt_pairs=prompt * context / 2, prompt_seqs=1, prompt_ends=1)
    stalled = limit(model, device, deployment.tp, prefill)
    codec = any(
        launch.floor is not None and launch.engages(0, True, int(prompt))
        for state in server.engagement.features.values() if state.state in RUNS for launch in state.launches
    )  # fmt: skip
    note = " (messages counted uncompressed)" if codec else ""
    yield f"chunk of {int(prompt):,} prompt tokens: {_bound(stalled)}; decoding streams wait that long{note}"


def _bound(found: Limit) -> str:
    work = found.work
    moved = (work.weight_bytes + work.kv_bytes) / 1e9
    return (
        f"at least {found.seconds * 1e3:.2f} ms, {found.bound}-bound ({moved:.1f} GB and {work.flops / 1e12:.2f} TFLOP "
        f"a GPU), at most {found.tokens_s_gpu:,.0f} tok/s/GPU"
    )
