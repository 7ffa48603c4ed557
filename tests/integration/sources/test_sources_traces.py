"""A trace corpus by its name: shipped, in a folder, with another hash, or nowhere."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from infx.findings import errors
from infx.schema.catalog import Trace
from infx.sources.catalog import load_catalog
from infx.sources.traces import corpus_hash, read_corpus
from infx.sources.tree import Packaged, WorkingTree


def line(name: str) -> bytes:
    turn = {"t": 0.0, "type": "n", "model": "m", "in": 70, "out": 5, "hash_ids": [1]}
    record = {"id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [turn]}
    return json.dumps(record).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "corpus"
    inside.mkdir()
    (inside / "b.json").write_bytes(line("b"))
    (inside / "a.json").write_bytes(line("a"))
    (inside / "README.md").write_text("not a trace")
    return tmp_path


def trace(**facts) -> Trace:
    return Trace(**{"key": "corpus", "format": "weka", "source": "somewhere", **facts})


def test_shipped_corpora_are_the_pinned_ones():
    catalog, found = load_catalog(Packaged())
    assert errors(found) == []
    shipped = [one for one in catalog.traces.values() if one.path]
    assert [one.key for one in shipped] == ["small-coding-agent"]
    for one in shipped:
        reading = read_corpus(one, Packaged(), None)
        assert reading.findings == []
        assert reading.corpus.sha256 == one.sha256 and len(reading.corpus.sessions) == 12


def test_a_tree_without_the_shipped_corpus_takes_the_package_s(tmp_path):
    catalog, _ = load_catalog(Packaged())
    assert read_corpus(catalog.traces["small-coding-agent"], WorkingTree(tmp_path), None).corpus is not None


@pytest.mark.parametrize("place", [".", "corpus"])
def test_a_folder_s_files_are_one_corpus_hashed_in_order_of_names(folder, place):
    expected = hashlib.sha256(line("a") + line("b")).hexdigest()
    reading = read_corpus(trace(), Packaged(), folder / place)
    assert reading.findings == []
    assert [session.id for session in reading.corpus.sessions] == ["a", "b"]
    assert reading.corpus.sha256 == expected == corpus_hash(trace(), Packaged(), folder / place)


def test_a_file_called_after_the_corpus_is_found(tmp_path):
    (tmp_path / "corpus.jsonl").write_bytes(line("a") + line("b"))
    assert len(read_corpus(trace(), Packaged(), tmp_path).corpus.sessions) == 2


def test_another_corpus_than_the_pinned_one_is_refused(folder):
    reading = read_corpus(trace(sha256="0" * 64), Packaged(), folder)
    assert reading.corpus is None and [f.code for f in reading.findings] == ["T-016"]


@pytest.mark.parametrize("given", [True, False])
def test_a_corpus_that_is_not_there_is_a_finding(tmp_path, given):
    reading = read_corpus(trace(), Packaged(), tmp_path if given else None)
    assert reading.corpus is None and [f.code for f in reading.findings] == ["T-017"]
    assert "DIR/corpus/" in reading.findings[0].hint
    assert corpus_hash(trace(), Packaged(), tmp_path if given else None) is None
