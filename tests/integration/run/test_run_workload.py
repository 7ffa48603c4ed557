"""From a planned point to its requests: generator, shipped corpus, a folder's corpus, and none."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from infx.errors import RunnerError
from infx.run.workload import source_for
from infx.schema.plan import AgenticWorkload
from infx.sources.catalog import load_catalog
from infx.sources.tree import Packaged

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
