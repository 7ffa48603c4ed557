"""The table of a drafter: which tensors are its own, how they are stored, how coarse their scales are (P33)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from infx.predict.drafts import differences, draft_table


@dataclass(frozen=True)
class T:
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int = 1


def table(*tensors: T, config=None, pattern="*"):
    return draft_table({one.name: one for one in tensors}, config or {}, pattern)


def pair(dtype, shape, scale_dtype, scale_shape, scale="weight_scale", weight="weight"):
    [row] = table(T(f"m.{weight}", dtype, shape), T(f"m.{scale}", scale_dtype, scale_shape)).rows
    return row.values, row.scales, row.granularity


FOUR = " with 2 values of 4 bits each"


@pytest.mark.parametrize(("stored", "said"), [
    (("F8_E4M3", (256, 512), "F32", (2, 4), "weight_scale_inv"), ("F8_E4M3", "F32", "128×128")),
    (("F8_E4M3", (250, 500), "F32", (2, 4), "weight_scale_inv"), ("F8_E4M3", "F32", "125×125")),
    (("F8_E4M3", (256, 512), "F32", ()), ("F8_E4M3", "F32", "per tensor")),
    (("F8_E4M3", (256, 512), "F32", (1,)), ("F8_E4M3", "F32", "per tensor")),
    (("F8_E4M3", (256, 512), "F32", (256, 1)), ("F8_E4M3", "F32", "per output channel")),
    (("F8_E4M3", (256, 512), "BF16", (256,)), ("F8_E4M3", "BF16", "per output channel")),
    (("U8", (256, 256), "U8", (256, 16)), (f"U8{FOUR}", "U8", "1×32")),
    (("I8", (256, 256), "F8_E8M0", (256, 16), "scale"), (f"I8{FOUR}", "F8_E8M0", "1×32")),
    (("I8", (256, 256), "F32", (256, 1)), ("I8", "F32", "per output channel")),
    (("F4", (256, 512), "F8_E8M0", (256, 16)), ("F4", "F8_E8M0", "1×32")),
    (("U8", (8, 256, 256), "F8_E8M0", (8, 256, 16)), (f"U8{FOUR}", "F8_E8M0", "1×32")),
    (("F8_E4M3", (8, 256, 256), "F32", (8,)), ("F8_E4M3", "F32", "per expert")),
    (("I32", (256, 64), "BF16", (256, 4), "weight_scale", "weight_packed"),
     ("I32 with 8 values of 4 bits each", "BF16", "1×128")),
    (("I32", (64, 256), "F16", (4, 256), "scales", "qweight"), ("I32 with 8 values of 4 bits each", "F16", "1×128")),
    (("I32", (512, 32), "F16", (4, 256), "scales", "qweight"), ("I32 with 8 values of 4 bits each", "F16", "1×128")),
])  # fmt: skip
def test_values_and_scales(stored, said):
    assert pair(*stored) == said


def test_scales_beside_fused_experts_are_theirs():
    [row] = table(T("e.gate_up_blocks", "U8", (8, 64, 64)), T("e.gate_up_scales", "U8", (8, 64, 4))).rows
    assert (row.name, row.values, row.granularity) == ("e.gate_up_blocks", f"U8{FOUR}", "1×32")


def test_second_scales_and_input_scales_are_said():
    rows = table(T("m.weight", "U8", (64, 64), 10), T("m.weight_scale", "F8_E4M3", (64, 8), 5),
                 T("m.weight_scale_2", "F32", (), 4), T("m.input_scale", "F32", (), 4)).rows  # fmt: skip
    assert [(row.values, row.scales, row.granularity, row.bytes) for row in rows] == [
        (f"U8{FOUR}, static input scales", "F8_E4M3 × F32", "1×16", 23)]


def test_integers_without_scales_are_told_apart_from_floats():
    rows = table(T("a.weight", "I8", (4, 4)), T("b.weight", "BF16", (4, 4)), T("c.ids", "I64", (4,))).rows
    assert [row.values for row in rows] == ["I8, no scales found", "BF16", "I64"]


MIXED = (T("model.layers.0.mlp.w.weight", "BF16", (4, 4)), T("model.layers.2.mlp.w.weight", "F8_E4M3", (4, 4)),
         T("mtp.0.fc.weight", "BF16", (4, 4)), T("model.norm.weight", "BF16", (4,)))  # fmt: skip


@pytest.mark.parametrize(("config", "pattern", "names", "why"), [
    ({}, None, {"mtp.*.fc.weight"}, "names of a drafter"),
    ({"num_hidden_layers": 2}, None, {"mtp.*.fc.weight", "model.layers.*.mlp.w.weight"},
     "names of a drafter and layers from 2 on, behind the 2 of config.json"),
    ({"text_config": {"num_hidden_layers": 2}}, None, {"mtp.*.fc.weight", "model.layers.*.mlp.w.weight"},
     "names of a drafter and layers from 2 on, behind the 2 of config.json"),
    ({"num_hidden_layers": 3}, None, {"mtp.*.fc.weight"}, "names of a drafter"),
    ({"num_hidden_layers": True}, None, {"mtp.*.fc.weight"}, "names of a drafter"),
    ({"architectures": ["LlamaForCausalLMEagle3"]}, None,
     {"model.layers.*.mlp.w.weight", "mtp.*.fc.weight", "model.norm.weight"},
     "the whole checkpoint is a drafter (LlamaForCausalLMEagle3)"),
    ({"architectures": "text"}, "model.norm*", {"model.norm.weight"}, "names that match model.norm*"),
])  # fmt: skip
def test_which_tensors_are_the_drafts(config, pattern, names, why):
    found = table(*MIXED, config=config, pattern=pattern)
    assert ({row.name for row in found.rows}, found.why, found.of) == (names, why, 4)


def test_roles_are_counted_over_layers_and_experts():
    found = table(*(T(f"mtp.0.e.{i}.w.weight", "BF16", (2, 2), 8) for i in range(5)), pattern=None)
    [row] = found.rows
    assert (row.name, row.count, row.bytes, found.bytes) == ("mtp.*.e.*.w.weight", 5, 40, 40)


def test_another_stored_precision_than_upstream_is_named():
    # P33: upstream stores bf16, the submission's draft fp8
    ours = table(T("mtp.0.fc.weight", "F8_E4M3", (4, 4)), T("mtp.0.fc.weight_scale", "F32", ()))
    theirs = table(T("mtp.0.fc.weight", "BF16", (4, 4)))
    assert differences(ours, theirs) == [
        "mtp.*.fc.weight is 1 × F8_E4M3 with F32 scales per tensor; the other checkpoint has 1 × BF16"]
    assert ours.digest != theirs.digest
    assert differences(ours, ours) == []


def test_tensors_of_one_checkpoint_alone_are_named():
    one, two = table(T("a.weight", "BF16", (2,))), table(T("b.weight", "BF16", (2,)))
    assert differences(one, two) == ["a.weight is not in the other checkpoint",
                                     "b.weight is in the other checkpoint alone"]  # fmt: skip


def test_the_digest_is_of_names_dtypes_and_shapes_in_any_order():
    first, second = T("a.weight", "BF16", (2, 3)), T("b.weight", "BF16", (2,))
    assert table(first, second).digest == table(second, first).digest
    assert table(first).digest != table(T("a.weight", "BF16", (3, 2))).digest
