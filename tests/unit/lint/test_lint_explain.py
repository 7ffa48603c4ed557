"""Explanations of points, and the text of a change, for the seed's recipe: every figure by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.errors import UsageError
from infx.lint import about
from infx.lint.diff import arguments, compare
from infx.lint.explain import Explanation
from infx.sources.tree import WorkingTree

ROOT = Path(__file__).parents[3]
V41 = "dsv41flash-fp4-mi355x-vllm-agentic-dspark"
QWEN = "qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono"
TREE = WorkingTree(ROOT)


class Edited(WorkingTree):
    """The repository with some texts replaced: a revision without git."""

    def __init__(self, *edits: tuple[str, str, str]) -> None:
        super().__init__(ROOT)
        self.edits = edits

    def read_bytes(self, path: str) -> bytes:
        text = super().read_bytes(path).decode()
        for name, old, new in self.edits:
            if path.endswith(name):
                assert old in text
                text = text.replace(old, new)
        return text.encode()


def words(key, only, arms=()):
    [item] = about.explanations(TREE, [key], only=[only], arms=arms)
    return item, item.words()


def test_the_headline_point_where_mono_ends():
    item, said = words(V41, "tp2/c8")
    assert item.rows == 48 and item.command.startswith("AITER_TRITON_LOG_LEVEL=ERROR ")
    assert "vllm serve deepseek-ai/DeepSeek-V4.1-Flash" in item.command
    assert '"synthetic_acceptance_length":3.51' in item.command
    assert said == {"mono-decode-v41": "engaged", "shared-expert-overlap": "engaged", "quick-reduce": "not engaged"}
    mono = item.features[0]
    assert "48 rows ≤ 48, so up to 8 streams" in mono.details[0] and "30 layers" in mono.details[0]
    assert mono.where.path.endswith(f"{V41}.yaml") and mono.where.line > 0
    [golden] = [line for line in item.steps if line.startswith("golden acceptance length 3.51: ")]
    assert "NUM_ACCEPTED_TOKENS=2.51" in golden and "--spec-decode-acceptance-length=3.51" in golden
    assert any("48 rows a step replay the graph of 48" in line for line in item.steps)
    assert any("indexer logits: 6144 rows" in line for line in item.memory)
    assert "memory-bound" in item.roofline[0] and item.assumed


def test_thresholds_crossed_at_64():
    _, said = words(V41, "tp2/c64")
    assert said == {"mono-decode-v41": "not engaged", "shared-expert-overlap": "not engaged", "quick-reduce": "engaged"}
    assert words(V41, "tp4/c32")[1]["quick-reduce"] == "not engaged"


def test_an_arm_without_the_feature_does_not_name_it():
    item, said = words(V41, "*tp2/c8", ["before"])
    assert "mono-decode-v41" not in said
    assert any("16384 rows (batched tokens)" in line for line in item.memory)


def test_k1_and_k2_are_named_apart():
    item, said = words(QWEN, "tp2/c4", ["no-k2"])
    assert said["dense-mono-qwen38"] == "partial"
    lines = {line.split(" ")[0]: line for line in item.features[0].details}
    assert "4 rows ≤ 8" in lines["k1"] and "off" in lines["k2"] and "_K2 is 0" in lines["k2"]
    assert words(QWEN, "tp1/c8")[1]["dense-mono-qwen38"] == "engaged"
    assert words(QWEN, "tp1/c16")[1]["dense-mono-qwen38"] == "not engaged"


def test_an_unknown_point_is_refused():
    with pytest.raises(UsageError, match="tp9/c1"):
        about.explanations(TREE, [V41], only=["tp9/c1"])


def test_the_seeds_change_point_by_point():
    """ac9126e5 → 7d0b4e57, mono, INT4, and a chunk of 8192 → 16384 at TP2 concurrency 64."""
    name = f"{V41}.yaml"
    before = Edited(
        (name, "7d0b4e57aac4c4323225b0eee9ae960ce75ffffe", "ac9126e58aa7bbab1856ba6593ba4d5003fea516"),
        (name, '  VLLM_ROCM_MONO_DECODE: "1"\n', ""),
        (name, "  VLLM_ROCM_QUICK_REDUCE_QUANTIZATION: INT4", "  #"),
        (name, "arms:\n  no-mono: {env: {VLLM_ROCM_MONO_DECODE: null}}\n", "arms:\n"),
        (name, "    env: {VLLM_ROCM_MONO_DECODE: null, VLLM_ROCM_QUICK_REDUCE_QUANTIZATION: null}\n",
         "    serve: {block-size: 64}\n"),
        (name, "overrides:\n",
         "overrides:\n  - {when: {tp: 2, concurrency: 64}, serve: {max-num-batched-tokens: 8192}}\n"),
    )  # fmt: skip
    [found] = about.differences(before, TREE, [V41])
    assert (found.added, found.removed, found.untouched) == ((), (), ())
    by_point = {point: change.lines for change in found.changed for point in change.points}
    assert len(by_point) == 14
    shared = "env VLLM_ROCM_MONO_DECODE: added, 1"
    assert all(shared in lines and any(line.startswith("image: ") for line in lines) for lines in by_point.values())
    mono = "mono-decode-v41: off → engaged"
    assert {key.split("/", 1)[1] for key, lines in by_point.items() if mono in lines} == {
        f"tp{tp}/c{c}" for tp in (2, 4) for c in (1, 2, 4, 8)
    }
    chunk = "--max-num-batched-tokens: 8192 → 16384"
    assert [key.split("/", 1)[1] for key, lines in by_point.items() if chunk in lines] == ["tp2/c64"]


def test_one_override_changes_its_points_alone():
    # P36
    name = f"{V41}.yaml"
    edited = Edited((name, "overrides:\n", "overrides:\n  - {when: {tp: 2, concurrency: 32}, serve: "
                     "{max-num-batched-tokens: 8192}}\n"))  # fmt: skip
    [found] = about.differences(TREE, edited, [V41])
    assert [change.points for change in found.changed] == [(f"{V41}/tp2/c32",)]
    assert len(found.untouched) == 13
    assert about.differences(TREE, TREE, []) == []


def test_new_and_gone_recipes():
    assert compare("r", None, None).changed == ()
    shown = about.as_dict(compare("r", None, None))
    assert shown["recipe"] == "r"


def test_arguments_are_read_by_flag():
    argv = ["serve", "m", "--a", "1", "--b", "--c", "x", "y"]
    assert arguments(argv) == {"word 1": "serve", "word 2": "m", "--a": "1", "--b": "on", "--c": "x y"}


def test_linter_and_plain_data():
    check, found = about.linter(TREE)
    assert found == []
    [item] = about.explanations(TREE, ["tiny-bf16-cpu-vllm-256-64"], only=["tp1/c1"])
    assert isinstance(item, Explanation) and about.as_dict(item)["rows"] == 1
