"""Memory and graph capture against what engines reported for the headline recipe on MI355X."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.predict.capture import capture_sizes, coverage
from infx.predict.deployment import Deployment
from infx.predict.memory import budget
from infx.sources.catalog import load_catalog
from infx.sources.tree import WorkingTree

CATALOG = load_catalog(WorkingTree(Path(__file__).parents[3]))[0]
OLD = "x:nightly-ac9126e58aa7bbab1856ba6593ba4d5003fea516"
NEW = "x:nightly-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe"


def v41(tp, *, offload, image=OLD, concurrency=64, **serve):
    return Deployment(
        model=CATALOG.models["deepseek-v4.1-flash"], hardware=CATALOG.hardware["mi355x"], image=image, tp=tp,
        concurrency=concurrency, images=CATALOG.images, speculative={"method": "dspark", "draft-tokens": 5},
        serve={"engram-config": {"cpu_offload": offload}, "gpu-memory-utilization": 0.9, "max-model-len": 1048576,
               "max-num-batched-tokens": 16384, "max-cudagraph-capture-size": 1024,
               **{key.replace("_", "-"): value for key, value in serve.items()}},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tp", "offload", "observed"), [(2, True, 7.84e6), (4, False, 14.83e6), (4, True, 33.06e6)]
)
def test_kv_room_agrees_with_what_engines_reported(tp, offload, observed):
    assert budget(v41(tp, offload=offload)).kv_tokens == pytest.approx(observed, rel=0.05)


def test_the_indexer_workspace_before_and_after_the_fix():
    def logits(image):
        return next(item for item in budget(v41(2, offload=True, image=image)).items if item.name == "indexer logits")

    assert logits(OLD).bytes == 16384 * 2**20 * 4 == 64 * 2**30
    assert logits(NEW).bytes == 1024 * 6 * 2**20 * 4
    assert logits("x:unknown").assumed


def test_resident_engram_does_not_fit_at_tp2():
    # 94.4 GiB beside the weights
    tight = budget(v41(2, offload=False))
    assert tight.fits is False and tight.kv_tokens == 0
    assert next(i.bytes for i in tight.items if i.name == "Engram tables") / 2**30 == pytest.approx(94.4, abs=0.01)
    offloaded = budget(v41(2, offload=True))
    assert offloaded.host_bytes / 2**30 == pytest.approx(188.8, abs=0.01) and offloaded.fits


def test_room_per_request_at_the_point_that_collapsed():
    assert budget(v41(2, offload=True)).tokens_per_request(64) == pytest.approx(122_000, rel=0.05)


def test_unknown_facts_conclude_nothing():
    tiny = CATALOG.models["tiny-bf16"]
    few = [group for group in tiny.facts if "weight-bytes" not in group.values]
    bare = type(tiny).model_validate({**tiny.model_dump(), "facts": few})
    nothing = budget(Deployment(model=bare, hardware=CATALOG.hardware["mi355x"], image="x"))
    assert nothing.fits is None and nothing.kv_tokens is None


def test_heads_split_the_kv_of_other_models():
    model = CATALOG.models["qwen3-8b"]
    one = budget(Deployment(model=model, hardware=CATALOG.hardware["h200"], image="x", tp=1))
    expected = (141e9 * 0.92 - 16381000000) / 147456
    assert one.kv_tokens == int(expected)
    four = budget(Deployment(model=model, hardware=CATALOG.hardware["h200"], image="x", tp=4))
    assert four.kv_tokens == int((141e9 * 0.92 - 16381000000 / 4) / (147456 / 4))


@pytest.mark.parametrize(
    ("concurrency", "padded"), [(1, 8), (8, 48), (43, 272), (64, 384), (170, 1024), (171, None)]
)
def test_capture_coverage(concurrency, padded):
    found = coverage(v41(2, offload=True, concurrency=concurrency))
    assert (found.padded_to, found.covered, found.largest) == (padded, padded is not None, 1024)


def test_capture_sizes_without_a_flag():
    gpu = CATALOG.hardware["mi355x"]
    plain = Deployment(model=CATALOG.models["qwen3-8b"], hardware=gpu, image="x", concurrency=300)
    assert capture_sizes(plain)[:6] == [1, 2, 4, 8, 16, 24] and capture_sizes(plain)[-1] == 512
    assert coverage(plain).padded_to == 304
    eager = replace(plain, serve={"enforce-eager": True})
    assert capture_sizes(eager) == [] and "eager" in coverage(eager).reason
    listed = replace(plain, serve={"cudagraph-capture-sizes": [4, 1, 400]})
    assert capture_sizes(listed) == [1, 4, 400]
