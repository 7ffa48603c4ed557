"""Twenty cases of draft precision: what lowers it, what does not, and what is the image's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.lint.engine import lint
from infx.lint.rules import draft
from infx.schema.recipe import Recipe
from infx.sources import modelio, yamlio
from infx.sources.catalog import load_catalog
from infx.sources.tree import WorkingTree

CATALOG = load_catalog(WorkingTree(Path(__file__).parents[3]))[0]
RULES = (draft.DraftPrecision, draft.BannedSetting, draft.CompressedMessages, draft.UndeclaredOnDraft,
         draft.DraftSubstituted)  # fmt: skip
BASE = """\
image: vllm/vllm-openai-rocm:nightly-rocm100-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe
model: {model}
precision: fp4
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {{kind: agentic-coding, traces: cc-traces-weka-062126, duration-s: 3600}}
{speculative}
env: {{{env}}}
serve: {{{serve}}}
ladder: [{{tp: 4, concurrency: [1, 2, 4, 8, 16]}}]
arms: {{other: {{{arm}}}}}
"""
DSPARK = "speculative: {method: dspark, draft-tokens: 5}"
OTHER = "speculative: {method: dspark, draft-tokens: 5, model: me/smaller-draft}"
A4W4, CODEC = "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4", "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION"
NEXTN = "SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE"

CASES = [
    ("a4w4 experts", {"env": f'{A4W4}: "1"'}, ["R-005"]),
    ("a4w4 spelled true", {"env": f'{A4W4}: "TRUE"'}, ["R-005"]),
    ("a4w4 off", {"env": f'{A4W4}: "0"'}, []),
    ("a4w4 without drafts", {"env": f'{A4W4}: "1"', "speculative": ""}, []),
    ("a4w4 in an arm alone", {"arm": f'env: {{{A4W4}: "1"}}'}, ["R-005"]),
    ("situv2 a4w4", {"env": "VLLM_ROCM_USE_AITER_MOE_SITUV2: a4w4"}, ["R-005"]),
    ("situv2 a8w4", {"env": "VLLM_ROCM_USE_AITER_MOE_SITUV2: a8w4"}, []),
    ("marlin int8 inputs", {"env": "VLLM_MARLIN_INPUT_DTYPE: int8"}, ["R-005"]),
    ("fp8 nextn", {"env": f'{NEXTN}: "1"'}, ["R-006"]),
    ("fp8 nextn off", {"env": f'{NEXTN}: "0"'}, []),
    ("fp8 nextn without drafts", {"env": f'{NEXTN}: "1"', "speculative": ""}, ["R-006"]),
    ("int4 messages", {"env": f"{CODEC}: INT4"}, ["R-007"]),
    ("uncompressed messages", {"env": f"{CODEC}: FP"}, []),
    ("online quantization", {"serve": "quantization: fp8"}, ["R-005"]),
    ("kv cache nvfp4", {"serve": "kv-cache-dtype: nvfp4"}, ["R-005"]),
    ("kv cache as shipped", {"serve": "kv-cache-dtype: fp8_ds_mla"}, []),
    ("float16 instead of bfloat16", {"serve": "dtype: float16"}, ["R-005"]),
    ("bfloat16", {"serve": "dtype: bfloat16"}, []),
    ("another draft", {"speculative": OTHER}, ["R-009"]),
    ("undeclared name", {"env": 'DRAFT_FAST_MATH: "1"'}, ["R-008"]),
    ("undeclared name without drafts", {"env": 'DRAFT_FAST_MATH: "1"', "speculative": ""}, []),
    ("a default that is on", {"env": 'VLLM_CPU_INT4_W4A8: "1"'}, []),
    ("humming weights", {"env": "VLLM_HUMMING_ONLINE_QUANT_CONFIG: '{}'"}, ["R-005"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "codes"), CASES, ids=[case[0] for case in CASES])
def test_case(name, change, codes):
    filled = {"model": "deepseek-v4.1-flash", "speculative": DSPARK, "env": "", "serve": "", "arm": "", **change}
    loaded, found = yamlio.load(BASE.format(**filled).encode(), "r.yaml")
    recipe, more = modelio.parse(loaded, Recipe, given={"key": "r"})
    assert [*found, *more] == []
    assert [item.code for item in lint(recipe, loaded, CATALOG, rules=RULES)] == codes
