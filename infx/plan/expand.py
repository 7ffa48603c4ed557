"""Expansion: one recipe and the catalog's facts → servers, points and blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from infx.engines import ENGINES
from infx.engines.protocol import ServerFacts
from infx.plan.fingerprint import point_fingerprint, server_fingerprint
from infx.plan.merge import Resolved, resolve
from infx.plan.offload import Dram, with_offload
from infx.schema.plan import AgenticWorkload, Block, FixedWorkload, Plan, Point, Workload
from infx.schema.recipe import FixedSeqLen, Recipe, Rung, Speculative
from infx.schema.settings import Parallel, ServerConfig
from infx.schema.version import RUN_FORMAT


@dataclass(frozen=True)
class PlanFacts:
    """What a plan takes from the catalog for one recipe.

    ``model_path``: what the engine is given as model. ``token_ids``: lowest and highest id safe in random
    prompts. ``context``: the model's context limit, tokens. ``golden``: acceptance length by
    (draft tokens, method, draft sampling, thinking mode); absent keys have no golden curve. ``trace_hash``
    and ``dataset_hash``: sha256 where the bytes are known. ``dram``: host memory behind KV offload.
    """

    model_path: str
    token_ids: tuple[int, int]
    context: int
    golden: dict[tuple[int, str, str | None, str], float] = field(default_factory=dict)
    trace_hash: str | None = None
    dataset_hash: str | None = None
    dram: Dram | None = None
    assumed: tuple[str, ...] = ()


def expand(recipe: Recipe, facts: PlanFacts, *, source: str, arms: tuple[str | None, ...] = (None,)) -> Plan:
    """Expand a checked recipe. ``arms`` are expanded in order; None is the base.

    Points that need one and the same server (equal server fingerprints within one arm) share a block.
    """
    servers: dict[str, ServerConfig] = {}
    points: list[Point] = []
    blocks: list[Block] = []
    for arm in arms:
        by_server: dict[str, list[Point]] = {}
        for rung in recipe.ladder:
            for concurrency in rung.concurrencies():
                server, point = _point(recipe, facts, rung, concurrency, arm)
                servers[server.id] = server
                points.append(point)
                by_server.setdefault(server.id, []).append(point)
        blocks += _blocks(arm, by_server)
    return Plan(
        format_version=RUN_FORMAT, recipe=recipe.key, source=source, label=recipe.runner, hardware=recipe.hardware,
        engine=recipe.engine, model=recipe.model, precision=recipe.precision, token_ids=facts.token_ids,
        servers=servers, points=points, blocks=blocks, assumed=list(facts.assumed),
        recipe_text=recipe.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
    )


def point_key(recipe: str, arm: str | None, parallel: Parallel, concurrency: int) -> str:
    """``recipe[@arm]/tp2[-ep2]/c64``."""
    return f"{recipe}{f'@{arm}' if arm else ''}/{parallel.axes()}/c{concurrency}"


def acceptance_length(recipe: Recipe, resolved: Resolved, facts: PlanFacts) -> float | None:
    """The golden AL for synthetic acceptance; None with real acceptance or without a golden curve."""
    spec = resolved.speculative
    if spec is None or not wants_golden(recipe, spec):
        return None
    return facts.golden.get((spec.draft_tokens, spec.method, spec.draft_sample_method, spec.thinking))


def wants_golden(recipe: Recipe, spec: Speculative) -> bool:
    """Synthetic acceptance at the golden curve: asked for, or an agentic recipe that does not say `real`."""
    default = "golden" if recipe.scenario.kind == "agentic-coding" else "real"
    return (spec.acceptance or default) == "golden"


def _point(recipe: Recipe, facts: PlanFacts, rung: Rung, concurrency: int, arm: str | None
           ) -> tuple[ServerConfig, Point]:
    engine = ENGINES[recipe.engine]
    resolved = resolve(recipe, rung, concurrency, arm)
    golden = acceptance_length(recipe, resolved, facts)
    served = resolved.serve.get("served-model-name")
    served_name = served if isinstance(served, str) else facts.model_path
    layout = {"tp": rung.tp, "pp": rung.pp, "dp": rung.dp, "ep": rung.ep}
    parallel = Parallel(**layout, gpus=engine.gpus(**layout))
    wanted = ServerFacts(model_path=facts.model_path, served_name=served_name, **layout,
                         serve=with_offload(resolved.serve, recipe, rung, facts.dram),
                         speculative=resolved.speculative, acceptance_length=golden)
    argv, env = engine.argv(wanted), {**resolved.env, **engine.env(wanted)}
    identity = server_fingerprint(engine=recipe.engine, image=resolved.image, hardware=recipe.hardware,
                                  precision=recipe.precision, parallel=parallel, argv=argv, env=env,
                                  kv_offload=recipe.kv_offload)
    server = ServerConfig(id=identity, engine=recipe.engine, image=resolved.image, model=recipe.model,
                          model_path=facts.model_path, served_name=served_name, parallel=parallel, argv=argv,
                          env=env)
    workload = _workload(recipe, facts)
    limit = engine.context_limit(resolved.serve)
    point = Point(
        key=point_key(recipe.key, arm, parallel, concurrency), arm=arm, server=identity, parallel=parallel,
        concurrency=concurrency, workload=workload, stop=recipe.stop, speculative=resolved.speculative,
        acceptance_length=golden, overrides=list(resolved.overrides),
        context_limit=min(facts.context, limit) if limit else facts.context,
        fingerprint=point_fingerprint(server=identity, workload=workload, concurrency=concurrency),
    )
    return server, point


def _workload(recipe: Recipe, facts: PlanFacts) -> Workload:
    scenario = recipe.scenario
    if isinstance(scenario, FixedSeqLen):
        return FixedWorkload(kind="fixed-seq-len", isl=scenario.isl, osl=scenario.osl, dataset=scenario.dataset,
                             dataset_hash=facts.dataset_hash)
    return AgenticWorkload(
        kind="agentic-coding", traces=scenario.traces, trace_hash=facts.trace_hash,
        duration_s=scenario.duration_s, idle_cap_s=scenario.idle_cap_s, warmup_turns=scenario.warmup_turns,
        answers=scenario.answers,
    )


def _blocks(arm: str | None, by_server: dict[str, list[Point]]) -> list[Block]:
    axes = [points[0].parallel.axes() for points in by_server.values()]
    blocks = []
    seen: dict[str, int] = {}
    for axis, (server, points) in zip(axes, by_server.items(), strict=True):
        seen[axis] = seen.get(axis, 0) + 1
        suffix = f".{seen[axis]}" if axes.count(axis) > 1 else ""
        blocks.append(Block(id=f"{arm or 'base'}-{axis}{suffix}", server=server, points=[p.key for p in points]))
    return blocks
