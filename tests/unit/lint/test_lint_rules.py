"""Each rule finds its bad recipe at its line, and nothing else is said about it that was not said of the good one."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.findings import Severity
from infx.lint.engine import lint
from infx.lint.pages import codes, document, explain
from infx.lint.rules import RULES
from infx.schema.recipe import Recipe
from infx.sources import modelio, yamlio
from infx.sources.catalog import load_catalog
from infx.sources.tree import WorkingTree
from infx.sources.waivers import Waiver, read_waiver

ROOT = Path(__file__).parents[3]
CATALOG = load_catalog(WorkingTree(ROOT))[0]

GOOD = """\
image: vllm/vllm-openai-rocm:nightly-rocm100-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe
model: deepseek-v4.1-flash
precision: fp4
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
upstream-recipe: https://recipes.vllm.ai/x
scenario: {kind: agentic-coding, traces: cc-traces-weka-062126, duration-s: 3600}
speculative: {method: dspark, draft-tokens: 5, thinking: thinking-on, draft-sample-method: probabilistic}
env:
  VLLM_ROCM_USE_AITER: "1"
serve:
  swa-bounded-replay: false
  max-cudagraph-capture-size: 1024
ladder:
  - {tp: 2, concurrency: [1, 2, 4, 8, 16]}
  - {tp: 4, concurrency: [1, 2, 4, 8, 16]}
overrides:
  - {when: {tp: 4}, serve: {engram-config: {cpu_offload: false}}}
"""

FIXED = """\
image: vllm/vllm-openai-rocm:nightly-rocm100-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe
model: qwen3.8-27b-mxfp4
precision: fp4
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
upstream-recipe: https://recipes.vllm.ai/x
scenario: {kind: fixed-seq-len, isl: 8192, osl: 1024}
env:
  VLLM_ROCM_USE_AITER: "1"
serve:
  max-model-len: 9472
ladder:
  - {tp: 1, concurrency: [4, 8, 16, 32, 64]}
"""


def check(text: str, waivers=()):
    loaded, found = yamlio.load(text.encode(), "r.yaml")
    recipe, more = modelio.parse(loaded, Recipe, given={"key": "r"})
    assert [*found, *more] == []
    return lint(recipe, loaded, CATALOG, waivers)


def changed(base: str, old: str, new: str) -> str:
    assert old in base
    return base.replace(old, new, 1)


ENV, SERVE = "env:\n", "serve:\n"


def env(line: str, base: str = GOOD) -> str:
    return changed(base, ENV, f"{ENV}  {line}\n")


def serve(line: str, base: str = GOOD) -> str:
    return changed(base, SERVE, f"{SERVE}  {line}\n")


@pytest.mark.parametrize("text", [GOOD, FIXED])
def test_good_recipes_have_no_finding(text):
    assert check(text) == []


BAD = {
    "other image": (changed(GOOD, "vllm/vllm-openai-rocm", "someone/vllm"), "R-001", "1:8"),
    "placeholder": (changed(FIXED, FIXED.split("\n")[0], "image: placeholder:soon"), "R-002", "1:8"),
    "unknown image": (env('VLLM_ROCM_MONO_DECODE: "1"').replace("7d0b4e57aac4", "000000000000"), "R-003", "1:8"),
    "patched": (env("PYTHONPATH: /patch"), "R-004", "11:3"),
    "patched worker": (serve("worker-cls: my.Worker"), "R-004", "13:3"),
    "a4w4": (env('VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4: "1"'), "R-005", "11:3"),
    "kv cache below": (serve("kv-cache-dtype: nvfp4"), "R-005", "13:3"),
    "sglang's fp8 draft": (env('SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE: "1"'), "R-006", "11:3"),
    "compressed": (env("VLLM_ROCM_QUICK_REDUCE_QUANTIZATION: INT4"), "R-007", "11:3"),
    "undeclared": (env('MY_KERNELS: "1"'), "R-008", "11:3"),
    "other draft": (changed(GOOD, "method: dspark,", "method: dspark, model: me/other,"), "R-009", "9:38"),
    "real acceptance": (changed(GOOD, "method: dspark,", "method: dspark, acceptance: real,"), "R-010", "9:43"),
    "forced acceptance": (env('SGLANG_SIMULATE_ACC_LEN: "3.5"'), "R-012", "11:3"),
    "overrides": (serve("hf-overrides: {index_topk_freq: 4}"), "R-013", "13:3"),
    "random tokens": (
        changed(FIXED, ENV, f"speculative: {{method: mtp, draft-tokens: 1}}\n{ENV}"), "R-014", "8:11",
    ),
    "stream interval": (serve("stream-interval: 20"), "R-015", "13:3"),
    "no upstream recipe": (changed(GOOD, "upstream-recipe: https://recipes.vllm.ai/x\n", ""), "R-017", "1:8"),
    "secret": (env("VLLM_API_KEY: abc"), "R-018", "11:3"),
    "cap below": (serve("max-num-seqs: 8"), "R-019", "13:3"),
    "cap binds": (serve("max-num-seqs: 16"), "R-020", "13:3"),
    "too long": (serve("max-model-len: 2097152"), "R-021", "13:3"),
    "does not fit": (
        changed(GOOD, "{when: {tp: 4}", "{when: {tp: [2, 4]}"), "R-022", "16:5",
    ),
    "little room": (changed(GOOD, "8, 16]}\n  - {tp: 4", "8, 16, 128]}\n  - {tp: 4"), "R-023", "16:26"),
    "tp does not divide": (changed(FIXED, "tp: 1,", "tp: 5,"), "R-025", "14:10"),
    "too many gpus": (changed(FIXED, "tp: 1,", "tp: 8, pp: 2,"), "R-026", "14:5"),
    "not captured": (changed(GOOD, "capture-size: 1024", "capture-size: 64"), "R-027", "14:3"),
    "no budget": (
        changed(GOOD, "runner: cluster:mi355x-amds", "runner: local\nkv-offload: {tier: dram, backend: native, "
                "dram-utilization: 0.5}"), "R-028", "7:13",
    ),
    "offload backend": (
        changed(GOOD, "runner: cluster:mi355x-amds", "runner: cluster:mi355x-amds\nkv-offload: {tier: dram, backend: "
                "hicache, dram-utilization: 0.5}"), "R-042", "7:35",
    ),
    "known failure": (env('VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4: "1"'), "R-029", "11:3"),
    "bounded replay": (changed(GOOD, "  swa-bounded-replay: false\n", ""), "R-029", "15:5"),
    "mono at tp8": (
        env('VLLM_ROCM_MONO_DECODE: "1"').replace("tp: 2,", "tp: 8,", 1), "R-030", "11:3",
    ),
    "mono in an old image": (
        env('VLLM_ROCM_MONO_DECODE: "1"').replace("7d0b4e57aac4c4323225b0eee9ae960ce75ffffe",
                                                  "ac9126e58aa7bbab1856ba6593ba4d5003fea516"), "R-031", "11:3",
    ),
    "small budget": (serve("max-num-batched-tokens: 64"), "R-032", "13:3"),
    "unknown env": (env('VLLM_ROCM_MONO_DECODES: "1"'), "R-033", "11:3"),
    "unknown flag": (serve("max-num-seq: 64"), "R-034", "13:3"),
    "wrong type": (serve('max-num-seqs: "many"'), "R-035", "13:17"),
    "wrong type of env": (env("VLLM_ROCM_MONO_DECODE: yep"), "R-035", "11:26"),
    "wrong case": (env("VLLM_ROCM_QUICK_REDUCE_QUANTIZATION: int4"), "R-036", "11:40"),
    "wrong choice": (serve("moe-backend: aitre"), "R-036", "13:16"),
    "default": (env('VLLM_ROCM_USE_AITER_MOE: "1"'), "R-037", "11:3"),
    "other vendor": (changed(changed(FIXED, "mi355x\n", "h200\n"), "mi355x-amds", "h200"), "R-038", "10:3"),
    "eager": (serve("enforce-eager: true"), "R-039", "15:3"),
    "capture contradicts": (serve("cudagraph-capture-sizes: [8, 512]"), "R-043", "15:3"),
    "few points": (changed(FIXED, "[4, 8, 16, 32, 64]", "[4, 8]"), "R-040", "14:3"),
    "falls through": (  # P62
        changed(GOOD, "overrides:\n", "overrides:\n  - {when: {concurrency: [2, 8]}, serve: {block-size: 64}}\n"),
        "R-041", "19:12",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_recipes_are_found_at_their_line(name):
    text, code, where = BAD[name]
    found = check(text)
    assert (code, where) in [(item.code, f"{item.where.line}:{item.where.column}") for item in found], found
    # a second rule may see the same fault; these pairs are known to
    pairs = {
        "a4w4": {"R-029"}, "known failure": {"R-005"}, "does not fit": {"R-023", "R-029"}, "no budget": {"R-026"},
        "too long": {"R-022", "R-023"}, "small budget": {"R-027"},
    }  # fmt: skip
    assert {item.code for item in found} - {code} <= pairs.get(name, set())


SPEC = "method: dspark, draft-tokens: 5, thinking: thinking-on, draft-sample-method: probabilistic"
PATCHED = {
    "precision in an override": ('overrides: {when: {tp: 4}, env: {VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4: "1"}}', "R-005"),
    "banned in an arm": ('arms: {env: {SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE: "1"}}', "R-006"),
    "banned in an override": ('overrides: {when: {tp: 2}, env: {SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE: "1"}}', "R-006"),
    "other draft in an arm": (f"arms: {{speculative: {{{SPEC}, model: me/other}}}}", "R-009"),
    "real acceptance in an arm": (f"arms: {{speculative: {{{SPEC}, acceptance: real}}}}", "R-010"),
    "forced acceptance in an arm": ('arms: {env: {TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS: "2.51"}}', "R-012"),
    "architecture in an override": ("overrides: {when: {tp: 4}, serve: {hf_overrides: {top_k: 2}}}", "R-013"),
    "architecture as text": ("arms: {serve: {hf-overrides: '{\"top_k\": 2}'}}", "R-013"),
    "preload in an arm": ("arms: {env: {LD_PRELOAD: /x.so}}", "R-004"),
    "image in an arm": ("arms: {image: 'lmsysorg/sglang:v0.5.9'}", "R-001"),
    "image by digest in an arm": (f"arms: {{image: 'me/vllm@sha256:{'a' * 64}'}}", "R-001"),
    "interval in snake case": ("arms: {serve: {stream_interval: 8}}", "R-015"),
    "cap at one concurrency": ("overrides: {when: {concurrency: 16}, serve: {max-num-seqs: 8}}", "R-019"),
    "context in an arm": ("arms: {serve: {max-model-len: 2M}}", "R-021"),
    "tables on two GPUs": ("arms: {serve: {engram-config: {cpu_offload: false}}}", "R-022"),
    "a chunk too large": ("arms: {serve: {max-num-batched-tokens: 4194304}}", "R-022"),
    "graphs in an arm": ("arms: {serve: {max-cudagraph-capture-size: 48}}", "R-027"),
    "a list of graphs in an arm": ("arms: {serve: {max-cudagraph-capture-size: null, cudagraph-capture-sizes: [8]}}",
                                   "R-027"),
    "known failure at TP2 alone": ('overrides: {when: {tp: 2}, env: {VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4: "1"}}',
                                   "R-029"),
    "adaptive verification": (f"arms: {{speculative: {{{SPEC}, adaptive-verification: true}}}}", "R-029"),
    "mono beside A4W4": ('arms: {env: {VLLM_ROCM_MONO_DECODE: "1", VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4: "1"}}', "R-030"),
    "a typing error in an override": ('overrides: {when: {tp: 4}, env: {VLLM_ROCM_MONO_DECOED: "1"}}', "R-033"),
    "a flag of the next version": ("arms: {serve: {max-num-batch-tokens: 1}}", "R-034"),
    "a secret in an arm": ("arms: {env: {HF_TOKEN: hf_abc}}", "R-018"),
}


@pytest.mark.parametrize("name", PATCHED)
def test_what_overrides_and_arms_write_is_judged_as_well(name):
    text, code = PATCHED[name]
    kind, _, patch = text.partition(": ")
    written = f"arms:\n  x: {patch}\n" if kind == "arms" else None
    recipe = f"{GOOD}{written}" if written else changed(GOOD, "overrides:\n", f"overrides:\n  - {patch}\n")
    found = {item.code: item for item in check(recipe)}
    assert code in found, found
    assert 16 <= found[code].where.line <= 21, found[code]


def test_every_rule_but_the_undemonstrable_has_a_bad_recipe():
    # need a catalog with an assumed curve or a deprecated model, R-024 a small machine, R-044 a waiver:
    # below
    shown = {code for _, code, _ in BAD.values()}
    assert {rule.code for rule in RULES} - shown == {"R-011", "R-016", "R-024", "R-044"}


def test_rules_that_the_catalog_triggers(monkeypatch):
    model = CATALOG.models["deepseek-v4.1-flash"]
    label = CATALOG.labels["cluster:mi355x-amds"]
    old = type(model).model_validate({**model.model_dump(), "status": "deprecated"})
    monkeypatch.setitem(CATALOG.models, model.key, old)
    monkeypatch.setitem(CATALOG.labels, label.key, label.model_copy(update={"host_memory_mib": 1024}))
    curves = [curve.model_copy(update={"assumed": True}) for curve in CATALOG.golden.curves]
    monkeypatch.setattr(CATALOG.golden, "curves", tuple(curves))
    assert {item.code for item in check(GOOD)} == {"R-011", "R-016", "R-024"}


@pytest.mark.parametrize(("axes", "hit"), [
    ({"scenario": "agentic-coding"}, True), ({"scenario": "fixed-seq-len"}, False), ({"method": "dspark"}, True),
    ({"method": "none"}, False), ({"hardware": "mi355x", "precision": "fp4", "engine": "vllm"}, True),
    ({"hardware": "mi355x", "precision": "fp8"}, False), ({"hardware": "h200", "method": "dspark"}, False),
])  # fmt: skip
def test_a_deprecated_combination_needs_every_axis(axes, hit, monkeypatch):
    model = CATALOG.models["deepseek-v4.1-flash"]
    item = {**axes, "why": "nobody waits for it"}
    old = type(model).model_validate({**model.model_dump(), "deprecated": [item]})
    monkeypatch.setitem(CATALOG.models, model.key, old)
    found = check(GOOD)
    assert [(one.code, str(one.where), one.hint) for one in found] == (
        [("R-016", "r.yaml:2:8", "nobody waits for it")] if hit else [])


def test_messages_name_value_choices_fix_and_servers():
    [case] = [item for item in check(BAD["wrong case"][0]) if item.code == "R-036"]
    assert '"int4"; choices: FP, INT8' in case.message and "write INT4" in case.hint
    [typo] = check(BAD["unknown env"][0])
    assert "VLLM_ROCM_MONO_DECODE'" in typo.hint
    [refused] = [item for item in check(BAD["mono at tp8"][0]) if item.code == "R-030"]
    assert refused.message.endswith("[tp8]") and "size 2 or 4" in refused.message
    [failure] = [item for item in check(BAD["known failure"][0]) if item.code == "R-029"]
    assert failure.message.endswith("[tp2]") and "vllm#60273" in failure.message
    [flag] = check(serve("no-swa-bounded-replay: true"))
    assert flag.hint == "write `swa-bounded-replay: false`"


def test_the_image_environment_is_the_baseline_but_bans_reach_it(monkeypatch):
    image = GOOD.split("\n")[0].removeprefix("image: ")
    contents = CATALOG.images.contents(image)
    inherited = {"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1", "SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE": "1"}
    monkeypatch.setitem(CATALOG.images.images, image, contents.model_copy(update={"env": inherited}))
    found = check(GOOD)
    assert {item.code for item in found} == {"R-006", "R-029"}
    assert str(next(item for item in found if item.code == "R-006").where) == "r.yaml:1:8"


def test_a_waiver_turns_findings_to_notes_where_it_may():
    waiver = Waiver(pull_request=12, recipes=["r"], rules=["R-005", "R-029"], what="x", why="y",
                    upstream="https://github.com/x/y/pull/1", removal="soon")  # fmt: skip
    found = check(BAD["a4w4"][0], [waiver])
    said = {item.code: item for item in found}
    assert said["R-005"].severity is Severity.NOTE and "docs/waiver/12.md" in said["R-005"].message
    assert said["R-029"].severity is Severity.ERROR and "cannot silence" in said["R-029"].message
    other = waiver.model_copy(update={"recipes": ["another"]})
    assert [item.severity for item in check(BAD["a4w4"][0], [other])] == [Severity.ERROR, Severity.ERROR]


def test_a_waived_image_needs_an_upstream_recipe_of_the_same_curve_beside_it():
    waiver = Waiver(pull_request=12, recipes=["r"], rules=["R-001"], what="x", why="y",
                    upstream="https://github.com/x/y/pull/1", removal="soon")  # fmt: skip
    text = BAD["other image"][0]
    loaded, _ = yamlio.load(text.encode(), "r.yaml")
    recipe, _ = modelio.parse(loaded, Recipe, given={"key": "r"})
    upstream, _ = modelio.parse(yamlio.load(GOOD.encode(), "u.yaml")[0], Recipe, given={"key": "u"})

    def said(*beside):
        found = lint(recipe, loaded, CATALOG, [waiver], beside=beside)
        return {item.code: item.severity for item in found if item.code in ("R-001", "R-044")}

    alone = {"R-001": Severity.NOTE, "R-044": Severity.ERROR}
    assert said(recipe, upstream) == {"R-001": Severity.NOTE}
    assert said() == said(recipe) == said(upstream.model_copy(update={"hardware": "h200"})) == alone
    assert said(upstream.model_copy(update={"image": "placeholder:soon"})) == alone
    shorter = upstream.scenario.model_copy(update={"duration_s": 60.0})
    assert said(upstream.model_copy(update={"scenario": shorter})) == alone


@pytest.mark.parametrize("table", ["models", "hardware"])
def test_new_hardware_and_new_architectures_are_excepted_from_upstream_images(table, monkeypatch):
    key = {"models": "deepseek-v4.1-flash", "hardware": "mi355x"}[table]
    entry = getattr(CATALOG, table)[key]
    monkeypatch.setitem(getattr(CATALOG, table), key, entry.model_copy(update={"new": True}))
    assert check(BAD["other image"][0]) == []


SGLANG = """\
image: lmsysorg/sglang:v0.5.9
model: qwen3-8b-bf16
precision: bf16
hardware: h200
engine: sglang
runner: local:h200
scenario: {kind: fixed-seq-len, isl: 1024, osl: 128}
env: {}
serve:
  max-running-requests: 64
ladder:
  - {tp: 1, concurrency: [4, 8, 16, 32, 64]}
"""


@pytest.mark.parametrize(("line", "code"), [
    ("stream-interval: 4", "R-015"), ("num-continuous-decode-steps: 4", "R-015"), ("stream_interval: 1", None),
    ("json-model-override-args: {num_experts_per_tok: 2}", "R-013"), ("mem-fraction: 0.8", "R-034"),
    ("kv-cache-dtype: fp8", "R-036"), ("enable-aiter-allreduce-fusion: true", "R-038"),
    ("speculative-accept-threshold-acc: 0.5", "R-012"), ("cuda-graph-max-bs: 8", "R-027"),
    ("cuda-graph-bs: [8]\n  cuda-graph-max-bs: 64", "R-043"),
])  # fmt: skip
def test_rules_hold_for_another_engine_s_words(line, code):
    found = [item.code for item in check(changed(SGLANG, SERVE, f"{SERVE}  {line}\n")) if item.code != "R-037"]
    assert code in found if code else found == []


def test_waiver_files_are_read_with_places():
    good = b"---\nrecipes: [r]\nrules: [R-004]\nwhat: a\nwhy: b\nupstream: https://x.y/1\nremoval: c\n---\nText.\n"
    waiver, found = read_waiver(good, "docs/waiver/7.md", 7)
    assert (waiver.pull_request, waiver.rules, found) == (7, ["R-004"], [])
    waiver, found = read_waiver(good.replace(b"why: b\n", b""), "docs/waiver/7.md", 7)
    assert waiver is None and [item.code for item in found] == ["S-002"]
    waiver, found = read_waiver(good.replace(b"https://x", b"x"), "docs/waiver/7.md", 7)
    assert (found[0].where.line, found[0].code) == (6, "S-006")
    assert read_waiver(b"no facts", "docs/waiver/7.md", 7)[1][0].code == "Y-001"


def test_codes_are_gapless_and_pages_are_filled():
    assert [rule.code for rule in RULES] == [f"R-{number:03}" for number in range(1, len(RULES) + 1)]
    for rule in RULES:
        assert "Why:" in rule.page() and "Mend:" in rule.page(), rule.code
        assert rule.title and rule.message
    assert explain("r-005").startswith("R-005 draft precision lowered (error; may be waived)")
    assert explain("R-999") is None
    assert all(f"### {code} " in document() for code in codes())


def test_the_rules_name_no_engine_setting():
    names = {*CATALOG.engines["vllm"].env, *(name for name in CATALOG.engines["vllm"].flags if "-" in name)}
    for path in sorted((ROOT / "infx" / "lint").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert [name for name in names if f'"{name}"' in text or f"'{name}'" in text] == [], path.name


def test_shipped_recipes_have_no_error():
    for path in sorted((ROOT / "recipes").rglob("*.yaml")):
        loaded, _ = yamlio.load(path.read_bytes(), path.name)
        recipe, _ = modelio.parse(loaded, Recipe, given={"key": path.stem})
        assert [item for item in lint(recipe, loaded, CATALOG) if item.severity is Severity.ERROR] == []
