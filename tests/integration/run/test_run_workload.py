"""From a planned point to its requests: generator, shipped corpus, a folder's corpus, and none."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from infx.errors import RunnerError
from infx.plan.load import plans_for
from infx.run.workload import source_for, with_corpora, with_hashes
from infx.schema.plan import AgenticWorkload
from infx.sources.catalog import load_catalog
from infx.sources.runners import get_runner
from infx.sources.tree import Packaged, find_tree

ROOT = Path(__file__).parents[3]

SHIPPED = load_catalog(Packaged())[0].traces["small-coding-agent"]


def source(root: Path, *, limit=2048, lanes=2, cap=None, folder=None, **facts):
    workload = AgenticWorkload(
        kind="agentic-coding", duration_s=10.0, idle_cap_s=300.0, warmup_turns=1, max_prompt_tokens=cap,
        **{"traces": "small-coding-agent", "trace_hash": SHIPPED.sha256, **facts},
    )  # fmt: skip
    point = SimpleNamespace(key="r/tp1/c2", workload=workload, concurrency=lanes, context_limit=limit)
    environment = {"INFX_TRACES": str(folder)} if folder else {}
    return source_for(SimpleNamespace(token_ids=(100, 999)), point, "salt", root, environment)


def conversation(name: str) -> bytes:
    turn = {"t": 0.0, "type": "n", "model": "m", "in": 70, "out": 5, "hash_ids": [1]}
    record = {"id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [turn]}
    return json.dumps(record).encode() + b"\n"


def test_a_shipped_corpus_is_played_and_counted(tmp_path):
    made = source(tmp_path)
    assert made.counts == {"sessions-kept": 12, "sessions-dropped": 0} and made.notes == []
    (due,) = made.source.start(0)
    assert min(due.request.prompt_ids) >= 100 and max(due.request.prompt_ids) <= 999


def test_sessions_beyond_the_limit_are_counted_and_lanes_noted(tmp_path):
    made = source(tmp_path, limit=1_000, lanes=8)
    assert made.counts["sessions-dropped"] == 8
    assert [note.code for note in made.notes] == ["T-012"]
    assert source(tmp_path, cap=1_000).counts["sessions-dropped"] == 8


def test_nothing_within_the_limit_is_refused(tmp_path):
    with pytest.raises(RunnerError, match="all 12 sessions exceed the context limit of 100 tokens"):
        source(tmp_path, limit=100)


def test_the_generator_needs_no_corpus(tmp_path):
    made = source(tmp_path, traces="generator:coding-agent", trace_hash=None, limit=100_000, cap=4_096)
    assert made.counts == {}
    assert all(due.request.prompt_tokens <= 4_096 for due in made.source.start(1))


def test_a_corpus_from_a_folder(tmp_path):
    (tmp_path / "mine.jsonl").write_bytes(conversation("a"))
    assert source(tmp_path, traces="mine", trace_hash=None, folder=tmp_path).counts["sessions-kept"] == 1
    with pytest.raises(RunnerError, match="the plan was made for 000"):
        source(tmp_path, traces="mine", trace_hash="0" * 64, folder=tmp_path)


def test_a_corpus_with_errors_or_none_is_refused(tmp_path):
    with pytest.raises(RunnerError, match="T-017"):
        source(tmp_path, traces="absent", trace_hash=None)
    (tmp_path / "bad.jsonl").write_bytes(conversation("a") + b"{")
    with pytest.raises(RunnerError, match=r"bad.jsonl:2:2: T-001"):
        source(tmp_path, traces="bad", trace_hash=None, folder=tmp_path)


RECIPE = """image: pypi:toy==1.0
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {kind: agentic-coding, traces: cc-traces-weka-062126, duration-s: 10}
ladder: [{tp: 1, concurrency: [1, 2]}]
"""


def planned(root: Path):
    for name in ("configs", "runners"):
        shutil.copytree(ROOT / name, root / name)
    (root / "recipes").mkdir()
    (root / "recipes" / "toy.yaml").write_text(RECIPE)
    (plan,) = plans_for(find_tree(root), ["toy"])
    return plan


def test_an_unpinned_corpus_is_pinned_by_the_plan(tmp_path):
    plan = planned(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    file = folder / "cc-traces-weka-062126.jsonl"
    file.write_bytes(conversation("a"))
    given = {"INFX_TRACES": str(folder)}
    made = with_hashes(plan, tmp_path, given)
    assert {p.workload.trace_hash for p in made.points} == {hashlib.sha256(file.read_bytes()).hexdigest()}
    assert [p.fingerprint for p in made.points] == [p.fingerprint for p in plan.points], "as in the pull request"
    assert with_hashes(made, tmp_path, given) == made
    assert {p.workload.trace_hash for p in with_hashes(plan, tmp_path, {}).points} == {None}
    runner = get_runner(find_tree(tmp_path), "simulator")
    assert with_corpora(plan, runner, tmp_path, given) == made
    stood_in = with_corpora(plan, runner, tmp_path, {})
    assert {p.workload.traces for p in stood_in.points} == {"generator:coding-agent"}
    file.write_bytes(conversation("b"))
    with pytest.raises(RunnerError, match="the plan was made for"):
        with_hashes(made, tmp_path, given)
    file.unlink()
    with pytest.raises(RunnerError, match="is not in .*mine"):
        with_corpora(plan, runner, tmp_path, given)


def test_a_shipped_corpus_that_was_changed_is_refused_before_anything_starts(tmp_path):
    plan = planned(tmp_path)
    shipped = [p.model_copy(update={"workload": p.workload.model_copy(
        update={"traces": "small-coding-agent", "trace_hash": SHIPPED.sha256})}) for p in plan.points]
    plan = plan.model_copy(update={"points": shipped})
    assert with_hashes(plan, tmp_path, {}) == plan
    (tmp_path / "infx/workload/traces").mkdir(parents=True)
    (tmp_path / SHIPPED.path).write_bytes(conversation("a"))
    with pytest.raises(RunnerError, match="configs/traces.yaml pins 8e7602"):
        with_hashes(plan, tmp_path, {})


def test_live_answers_ask_for_ids_and_are_another_workload(tmp_path):
    from infx.plan.fingerprint import point_fingerprint

    (recorded,), (live,) = source(tmp_path).source.start(0), source(tmp_path, answers="live").source.start(0)
    follow = [source_.source.finished(due.request, [7] * due.request.max_tokens)
              for source_, due in ((made, made.source.start(0)[0]) for made in (
                  source(tmp_path), source(tmp_path, answers="live")))]
    assert [due.request.need_ids for (due,) in follow] == [False, True]
    assert not recorded.request.need_ids and not live.request.need_ids  # a primer's answer goes nowhere
    facts = {"kind": "agentic-coding", "traces": "t", "duration_s": 10.0, "idle_cap_s": 300.0, "warmup_turns": 1}
    prints = [point_fingerprint(server="s", workload=AgenticWorkload(**facts, **more), concurrency=1)
              for more in ({}, {"answers": "recorded"}, {"answers": "live"})]
    assert prints[0] == prints[1] != prints[2]
