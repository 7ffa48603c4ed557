"""The shipped catalog reads without a finding and holds the figures that its sources state."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.schema.features import ImageContents, ImageTable
from infx.sources.catalog import load_catalog
from infx.sources.tree import WorkingTree

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def catalog():
    catalog, found = load_catalog(WorkingTree(ROOT))
    assert found == []
    return catalog


def test_every_fact_has_a_source(catalog):
    for stated in [*catalog.models.values(), *catalog.hardware.values()]:
        assert stated.known
        assert all(fact.source for fact in stated.known.values())


def test_the_headline_model(catalog):
    model = catalog.models["deepseek-v4.1-flash"]
    assert model.location == "deepseek-ai/DeepSeek-V4.1-Flash"
    assert (model.context, model.number("layers"), model.number("hidden")) == (1048576, 40, 5120)
    assert (model.number("active-prompt"), model.number("active-decode")) == (8e9, 16e9)
    assert (model.number("mono-whole-layers"), model.number("mono-ffn-layers")) == (30, 10)
    assert "dense-bytes" in model.assumed() and "layers" not in model.assumed()
    assert round(model.number("engram-bytes") / 4 / 2**30, 1) == 47.2


def test_the_assumed_model_says_so(catalog):
    model = catalog.models["qwen3.8-27b-mxfp4"]
    assert model.architecture == "qwen3_5_text"
    assert set(model.assumed()) == set(model.known)
    assert model.number("kv-bytes") == 16 * 2 * 4 * 256 * 2


def test_local_models_match_what_is_made(catalog):
    tiny = catalog.models["tiny-bf16"]
    assert (tiny.location, tiny.number("hidden"), tiny.number("layers")) == (".engines/models/tiny-bf16", 128, 2)
    assert tiny.token_ids == (259, 4095)


def test_hardware(catalog):
    gpu = catalog.hardware["mi355x"]
    assert (gpu.arch, gpu.gpus_per_node, gpu.number("compute-units")) == ("gfx950", 8, 256)
    assert gpu.number("memory-bytes") == 294896 * 2**20
    # 256 CU × 8,192 FLOP a clock × 2.4 GHz
    assert gpu.number("fp8-flops") == pytest.approx(256 * 8192 * 2.4e9, rel=1e-3)
    assert set(catalog.hardware) == {"mi355x", "mi300x", "h200", "b200", "b300", "cpu"}


def test_engine_settings(catalog):
    engine = catalog.engines["vllm"]
    codec = engine.env["VLLM_ROCM_QUICK_REDUCE_QUANTIZATION"]
    assert "INT4" in codec.choices and not codec.any_case and codec.reaches == ["communication"]
    a4w4 = engine.env["VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4"]
    assert a4w4.lowers == ["activations"] and "draft" in a4w4.reaches
    assert engine.flags["max-model-len"].type == "count"
    assert engine.flags["stream-interval"].default == 1
    assert engine.flags["swa-bounded-replay"].default is True
    assert engine.env["VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD"].default == 256


def test_every_setting_of_the_shipped_recipes_is_listed(catalog):
    from infx.sources import yamlio

    for path in sorted((ROOT / "recipes").rglob("*.yaml")):
        value = yamlio.load(path.read_bytes(), path.name)[0].value
        engine = catalog.engines[value["engine"]]
        assert set(value.get("env", {})) - set(engine.env) == set()
        assert set(value.get("serve", {})) - set(engine.flags) == set()


@pytest.mark.parametrize(
    ("thinking", "drafts", "value"), [("thinking-on", 5, 3.51), ("thinking-on", 1, 1.81), ("thinking-off", 5, 4.07)]
)
def test_golden_values_of_the_headline(catalog, thinking, drafts, value):
    found = catalog.golden.acceptance_length("deepseek-v4.1-flash", thinking, drafts, "dspark", "probabilistic")
    assert (found.value, found.reason) == (value, None)
    assert catalog.golden.table("deepseek-v4.1-flash")[(drafts, "dspark", "probabilistic", thinking)] == value


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("nothing", "thinking-on", 1, "mtp", None), "no golden curve of nothing"),
        (("deepseek-v4.1-flash", "thinking-on", 5, "mtp", "probabilistic"), "method dspark, not mtp"),
        (("deepseek-v4.1-flash", "thinking-on", 5, "dspark", "greedy"), "probabilistic, not greedy"),
        (("deepseek-v4.1-flash", "thinking-on", 5, "dspark", None), "probabilistic, not engine default"),
        (("deepseek-v4.1-flash", "thinking-on", 6, "dspark", "probabilistic"), "1 to 5 drafts"),
        (("glm-5.2-fp8", "thinking-off", 1, "mtp", None), "no thinking-off"),
        (("minimax-m3", "thinking-on", 3, "eagle3", None), "name the draft"),
    ],
)
def test_no_golden_value_has_a_reason(catalog, asked, why):
    # P63
    found = catalog.golden.acceptance_length(*asked)
    assert found.value is None
    assert why in found.reason


def test_a_named_draft_chooses_its_own_curve(catalog):
    # P63: two drafts of one model have different curves
    ask = catalog.golden.acceptance_length
    assert ask("minimax-m3", "thinking-on", 3, "eagle3", None, "Inferact/MiniMax-M3-EAGLE3-GQA").value == 2.78
    assert ask("minimax-m3", "thinking-on", 3, "eagle3", None, "eagle3").value == 2.83
    assert (3, "eagle3", None, "thinking-on") not in catalog.golden.table("minimax-m3")


def test_curves_carry_their_provenance(catalog):
    assert len(catalog.golden.curves) == 10
    assert all(curve.provenance.run for curve in catalog.golden.curves)
    assert sum(len(values) for curve in catalog.golden.curves for values in curve.curves.values()) == 8 * (9 + 5) + 10


def test_images_are_looked_up_by_commit():
    full = "ab" * 20
    table = ImageTable(
        {
            full: ImageContents(has=["vllm#1"], has_not=["vllm#2"], source="s"),
            "cdcdcdcd": ImageContents(has=["vllm#2"], source="s"),
        }
    )
    assert table.has(f"vllm/x:nightly-rocm100-{full}", "vllm#1") is True
    assert table.has(f"vllm/x:nightly-{full}", "vllm#2") is False
    assert table.has(f"vllm/x:nightly-{full}", "vllm#3") is None
    assert table.has("vllm/x:nightly-" + "cd" * 20, "vllm#2") is True
    assert table.has("vllm/x:v1.0", "vllm#1") is None


def test_wrong_entries_are_left_out_and_named(tmp_path):
    for name in ("hardware", "labels", "price-book", "traces"):
        (tmp_path / "configs").mkdir(exist_ok=True)
        (tmp_path / "configs" / f"{name}.yaml").write_text("{}\n")
    (tmp_path / "configs" / "labels.yaml").write_text("a:\n  hardware: [gone]\n")
    (tmp_path / "configs" / "models.yaml").write_text(
        "m:\n  hub: a/b\n  architecture: x\n  quantization: bf16\n  status: new\n  facts:\n"
        "    - {source: s, values: {layers: 1}}\n"
        "n:\n  hub: a/b\n  architecture: x\n  quantization: bf16\n  status: current\n  facts:\n"
        "    - {source: s, values: {layerz: 1}}\n"
    )
    catalog, found = load_catalog(WorkingTree(tmp_path))
    assert catalog.models == {}
    texts = [str(item) for item in found]
    assert any(text.startswith("configs/models.yaml:5:11: S-004 m.status") for text in texts)
    assert any("configs/models.yaml:8:1: S-007" in text and "layerz" in text for text in texts)
    assert any("Y-028" in text and "engine-features" in text for text in texts)
    assert any("label 'a' names unknown hardware 'gone'" in text for text in texts)
    assert len(catalog.golden.curves) == 10
