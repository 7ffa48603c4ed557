"""From a point's workload to the source of its requests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from infx.errors import RunnerError
from infx.findings import errors
from infx.plan.generated import corpora, generated, hashed
from infx.schema.catalog import Trace
from infx.schema.plan import AgenticWorkload, FixedWorkload, Plan, Point
from infx.schema.result import Reason
from infx.schema.runner import Runner
from infx.sources.catalog import load_catalog
from infx.sources.traces import corpus_hash, read_corpus
from infx.sources.tree import Tree, find_tree
from infx.workload.dataset import Prompts, read_prompts
from infx.workload.generator import generated_source
from infx.workload.lanes import FixedLength, LaneSource
from infx.workload.random import TokenIds
from infx.workload.recorded import recorded_source
from infx.workload.replay import ReplayOptions
from infx.workload.traces.model import Corpus

SEED = 20261201
TRACES = "INFX_TRACES"
"""Environment variable that names the folder of trace corpora."""


@dataclass(frozen=True)
class Prepared:
    """The requests of a point and the endpoint that takes them; ``counts`` and ``notes`` say what of its corpus is
    played, ``repeats`` that prompts come again, so that an engine's prefix cache will hit."""

    source: LaneSource
    endpoint: Literal["completions", "chat"] = "completions"
    repeats: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[Reason] = field(default_factory=list)


def source_for(plan: Plan, point: Point, salt: str, root: Path, environment: Mapping[str, str]) -> Prepared:
    """The requests of a point, deterministic by the fixed seed and ``salt`` (fresh for every visit).

    A corpus comes from the repository around ``root`` or from the folder that ``INFX_TRACES`` names in
    ``environment``. RunnerError for one that is not at hand, is not the planned one or has errors.
    """
    low, high = plan.token_ids
    ids = TokenIds(high + 1, first=low)
    workload = point.workload
    if isinstance(workload, FixedWorkload) and workload.dataset.path is not None:
        return _prompts(point, workload, salt, root)
    if isinstance(workload, FixedWorkload):
        return Prepared(FixedLength(ids, workload.isl, workload.osl, seed=SEED, salt=salt))
    assert isinstance(workload, AgenticWorkload)
    options = ReplayOptions(seed=SEED, salt=salt, warmup_turns=workload.warmup_turns, idle_cap_s=workload.idle_cap_s,
                            live=workload.answers == "live")
    if workload.traces.startswith("generator:"):
        return Prepared(generated_source(
            ids, point.concurrency, options, context_limit=point.context_limit,
            prompt_cap=workload.max_prompt_tokens, pause_cap=workload.idle_cap_s,
        ))  # fmt: skip
    corpus = _corpus(workload.traces, workload.trace_hash, root, environment.get(TRACES))
    limit = min(point.context_limit, workload.max_prompt_tokens or point.context_limit)
    made = recorded_source(ids, corpus, point.concurrency, options, context_limit=limit)
    if made.source is None:
        raise RunnerError("; ".join(map(str, made.findings)), where=point.key)
    notes = [Reason(code=found.code, message=f"{found.message} ({found.hint})") for found in made.findings]
    counts = {"sessions-kept": made.kept, "sessions-dropped": made.dropped}
    return Prepared(made.source, counts=counts, notes=notes)


def _prompts(point: Point, workload: FixedWorkload, salt: str, root: Path) -> Prepared:
    """Prompts of a file; text goes to the chat endpoint, so that the engine's template is the one that counts."""
    path, kind = workload.dataset.path, workload.dataset.kind
    assert path is not None and kind != "random"
    data = find_tree(root).read_bytes(path)
    if hashlib.sha256(data).hexdigest() != workload.dataset_hash:
        raise RunnerError(f"the data set {path} is not the one that was planned", where=point.key, hint="plan again")
    prompts, findings = read_prompts(data, kind, path)
    if errors(findings) or not prompts:
        listed = "\n".join(map(str, errors(findings)[:20])) or "it holds no prompt"
        raise RunnerError(f"the data set {path} cannot be sent:\n{listed}", where=point.key)
    chat = any(prompt.ids is None for prompt in prompts)
    source = Prompts(prompts, point.concurrency, workload.osl, seed=SEED, salt=salt, chat=chat)
    return Prepared(source, endpoint="chat" if chat else "completions", repeats=True,
                    counts={"prompts": len(prompts)})


def with_corpora(plan: Plan, runner: Runner, root: Path, environment: Mapping[str, str]) -> Plan:
    """The plan with the hashes of its corpora; on a profile that stands in, generators take a missing one's place.

    RunnerError elsewhere: nothing may be measured on sessions that the recipe does not name.
    """
    plan = with_hashes(plan, root, environment)
    known = load_catalog(find_tree(root))[0].traces
    for name in sorted(corpora(plan)):
        facts = known.get(name)
        if _at_hand(facts, environment):
            continue
        if not runner.stands_in or facts is None or facts.generator is None:
            raise RunnerError(f"the trace corpus {name!r} of {plan.recipe} is not at hand",
                              where=f"runners/{runner.name}.yaml",
                              hint=f"set {TRACES} to the folder that holds it (a generator stands in on the simulator)")
        plan = generated(plan, name, facts.generator)
    return plan


def with_hashes(plan: Plan, root: Path, environment: Mapping[str, str]) -> Plan:
    """The plan with the hash of every corpus that ships or lies in the folder that ``INFX_TRACES`` names.

    So a corpus that configs/ does not pin is pinned by the plan, and every start of the run replays the same bytes;
    fingerprints keep to what is declared. RunnerError for a named folder that lacks one, and for other bytes than those
    pinned or planned.
    """
    tree = find_tree(root)
    known = load_catalog(tree)[0].traces
    for name, planned in sorted(corpora(plan).items()):
        facts = known.get(name)
        if _at_hand(facts, environment):
            plan = hashed(plan, name, _found_hash(facts or _nowhere(name), planned, tree, environment.get(TRACES)))
    return plan


def _at_hand(facts: Trace | None, environment: Mapping[str, str]) -> bool:
    return bool(environment.get(TRACES)) or (facts is not None and facts.path is not None)


def _found_hash(facts: Trace, planned: str | None, tree: Tree, given: str | None) -> str:
    found = corpus_hash(facts, tree, Path(given) if given else None)
    if found is None:
        raise RunnerError(f"the trace corpus {facts.key!r} is not in {given or facts.path}", where=TRACES,
                          allowed=f"DIR/{facts.key}/ with its files, or DIR/{facts.key}.jsonl",
                          hint=f"unset {TRACES} where a generator may stand in (simulator)")
    for sha256, by in ((facts.sha256, "configs/traces.yaml pins"), (planned, "the plan was made for")):
        if sha256 not in (None, found):
            raise RunnerError(f"the trace corpus {facts.key!r} has sha256 {found}, {by} {sha256}",
                              hint="take that corpus, or plan again")
    return found


def _nowhere(name: str) -> Trace:
    return Trace(key=name, format="weka", source="nowhere that configs/traces.yaml knows")


@lru_cache(maxsize=2)
def _corpus(name: str, sha256: str | None, root: Path, folder: str | None) -> Corpus:
    facts = load_catalog(find_tree(root))[0].traces.get(name) or _nowhere(name)
    reading = read_corpus(facts, find_tree(root), Path(folder) if folder else None)
    bad = errors(reading.findings)
    if reading.corpus is None or bad:
        raise RunnerError(f"trace corpus {name!r} cannot be replayed:\n" + "\n".join(map(str, bad[:20])),
                          hint=f"set {TRACES} to the folder that holds it, or correct it (`infx trace stats FILE`)")
    if sha256 not in (None, reading.corpus.sha256):
        raise RunnerError(f"trace corpus {name!r} has sha256 {reading.corpus.sha256}, the plan was made for {sha256}",
                          hint="plan again, or take the planned corpus")
    return reading.corpus
