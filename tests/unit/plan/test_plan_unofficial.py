"""--unofficial: the mark, and another image under fingerprints of its own."""

from __future__ import annotations

from pathlib import Path

from infx.plan.load import plans_for
from infx.plan.local import unofficial
from infx.sources.tree import WorkingTree

ROOT = Path(__file__).parents[3]
IMAGE = "sha256:" + "1" * 64


def test_another_image_changes_every_fingerprint_and_nothing_else():
    (plan,) = plans_for(WorkingTree(ROOT), ["qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono"], arms=["base", "no-mono"])
    local = unofficial(plan, IMAGE)
    assert local.unofficial and {server.image for server in local.servers.values()} == {IMAGE}
    assert all(key == server.id for key, server in local.servers.items())
    assert {block.server for block in local.blocks} == set(local.servers) == {p.server for p in local.points}
    assert not {p.fingerprint for p in plan.points} & {p.fingerprint for p in local.points}
    assert [p.key for p in plan.points] == [p.key for p in local.points]
    assert [s.argv for s in plan.servers.values()] == [s.argv for s in local.servers.values()]


def test_the_own_image_gives_the_own_fingerprints():
    (plan,) = plans_for(WorkingTree(ROOT), ["tiny-bf16-cpu-vllm-256-64"])
    (image,) = {server.image for server in plan.servers.values()}
    assert unofficial(plan, image) == plan.model_copy(update={"unofficial": True})
    assert unofficial(plan) == plan.model_copy(update={"unofficial": True})
