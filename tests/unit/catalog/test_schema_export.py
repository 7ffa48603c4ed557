"""JSON Schemas by a validator that is not ours: shipped files pass, bad ones do not, and infx agrees on each."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from infx.engines import ENGINES
from infx.findings import errors
from infx.lint.engine import lint
from infx.plan.load import check_file
from infx.schema.export import GROUPS, KINDS, names_of, schema
from infx.schema.recipe import Recipe
from infx.schema.runner import Runner
from infx.sources import modelio, yamlio
from infx.sources.catalog import load_catalog
from infx.sources.recipes import RecipeFile
from infx.sources.tree import WorkingTree

ROOT = Path(__file__).parents[3]
TREE = WorkingTree(ROOT)
CATALOG = load_catalog(TREE)[0]
HOMES = {name: engine.homes for name, engine in ENGINES.items()}
VALIDATORS = {name: Draft202012Validator(schema(name, CATALOG, HOMES)) for name in KINDS}


def value(text: bytes):
    document, found = yamlio.load(text, "x.yaml", root="sequence" if text.startswith(b"-") else "mapping")
    assert errors(found) == []
    return document.value


def complaints(kind: str, document) -> list[str]:
    return [f"{'.'.join(map(str, one.absolute_path))}: {one.message}" for one in VALIDATORS[kind].iter_errors(document)]


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_of_the_dialect_that_they_name(kind):
    made = schema(kind, CATALOG, HOMES)
    Draft202012Validator.check_schema(made)
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"


SHIPPED = [(kind, path) for kind, item in KINDS.items() for path in TREE.glob(item.files)]


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=[path for _, path in SHIPPED])
def test_every_shipped_file_validates(kind, path):
    text = (ROOT / path).read_bytes()
    document = yamlio.load(text, path)[0]
    assert complaints(kind, None if document is None else document.value) == []


def test_recipes_profiles_and_each_config_are_among_them():
    kinds = {kind for kind, _ in SHIPPED}
    assert {"recipe", "runner", "changelog", *names_of("configs")} <= kinds
    assert GROUPS == ("configs", "results")


RECIPE = {
    "image": "vllm/vllm-openai-rocm:nightly-rocm100-7d0b4e57aac4c4323225b0eee9ae960ce75ffffe",
    "model": "deepseek-v4.1-flash", "precision": "fp4", "hardware": "mi355x", "engine": "vllm",
    "runner": "cluster:mi355x-amds", "upstream-recipe": "https://recipes.vllm.ai/x",
    "scenario": {"kind": "agentic-coding", "traces": "cc-traces-weka-062126", "duration-s": 3600},
    "speculative": {"method": "dspark", "draft-tokens": 5, "thinking": "thinking-on",
                    "draft-sample-method": "probabilistic"},
    "env": {"VLLM_ROCM_USE_AITER": "1"}, "serve": {"max-num-seqs": 64, "swa-bounded-replay": False},
    "ladder": [{"tp": 2, "concurrency": [1, 2, 4]}, {"tp": 4, "concurrency": {"from": 1, "to": 16}}],
    "overrides": [{"when": {"tp": 4}, "serve": {"block-size": 64}}],
    "arms": {"plain": {"env": {"VLLM_ROCM_USE_AITER": None}}},
}  # fmt: skip
FIXED = {"scenario": {"kind": "fixed-seq-len", "isl": 8, "osl": 8}, "speculative": None}

BAD = {
    "unknown key": ({"imagee": "x"}, "", "'imagee' was unexpected"),
    "image missing": ({"image": ...}, "", "'image' is a required property"),
    "another precision": ({"precision": "fp5"}, "precision", "'fp5' is not one of"),
    "unknown model": ({"model": "deepseek-v4.1-flsh"}, "model", "is not one of"),
    "unknown hardware": ({"hardware": "mi355"}, "hardware", "is not one of"),
    "unknown engine": ({"engine": "vlm"}, "engine", "is not one of"),
    "unknown label": ({"runner": "cluster:x"}, "runner", "is not one of"),
    "unknown traces": ({"scenario.traces": "x"}, "scenario", ""),
    "unknown scenario": ({"scenario.kind": "agentic"}, "scenario", ""),
    "no duration": ({"scenario.duration-s": ...}, "scenario", ""),
    "dataset without path": ({**FIXED, "scenario": {"kind": "fixed-seq-len", "isl": 8, "osl": 8,
                                                    "dataset": {"kind": "sharegpt"}}}, "scenario", ""),
    "random with path": ({**FIXED, "scenario": {"kind": "fixed-seq-len", "isl": 8, "osl": 8,
                                                "dataset": {"kind": "random", "path": "x"}}}, "scenario", ""),
    "drafts as text": ({"speculative.draft-tokens": "5"}, "speculative", ""),
    "number in env": ({"env.VLLM_ROCM_USE_AITER": 1}, "env.VLLM_ROCM_USE_AITER", "is not of type 'string'"),
    "null in the base's env": ({"env.VLLM_ROCM_USE_AITER": None}, "env.VLLM_ROCM_USE_AITER", "is not of type"),
    "unknown env": ({"env.VLLM_ROCM_USE_AITR": "1"}, "env", "'VLLM_ROCM_USE_AITR' is not one of"),
    "yep": ({"env.VLLM_ROCM_USE_AITER": "yep"}, "env.VLLM_ROCM_USE_AITER", "does not match"),
    "wrong case": ({"env.VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": "int4"},
                   "env.VLLM_ROCM_QUICK_REDUCE_QUANTIZATION", "is not one of"),
    "name with a space": ({"env.A B": "1"}, "env", ""),
    "unknown flag": ({"serve.max-num-seq": 64}, "serve", "'max-num-seq' does not match"),
    "flag with a home": ({"serve.tensor-parallel-size": 2}, "serve.tensor-parallel-size", "should not be valid"),
    "text where a number is": ({"serve.max-num-seqs": [1]}, "serve.max-num-seqs", "is not of type"),
    "wrong choice": ({"serve.moe-backend": "aitre"}, "serve.moe-backend", ""),
    "flag of an arm": ({"arms.plain.serve": {"max-num-seq": 1}}, "arms.plain.serve", "'max-num-seq'"),
    "env of an override": ({"overrides": [{"when": {"tp": 4}, "env": {"VLLM_X": "1"}}]}, "overrides.0.env", "VLLM_X"),
    "override without when": ({"overrides": [{"serve": {}}]}, "overrides.0", "'when' is a required property"),
    "empty bounds": ({"overrides": [{"when": {"concurrency": {}}}]}, "overrides.0.when.concurrency", ""),
    "empty ladder": ({"ladder": []}, "ladder", "should be non-empty"),
    "concurrency twice": ({"ladder": [{"tp": 1, "concurrency": [4, 4]}]}, "ladder.0.concurrency", "non-unique"),
    "concurrency zero": ({"ladder": [{"tp": 1, "concurrency": [0, 4]}]}, "ladder.0.concurrency", ""),
    "tp missing": ({"ladder": [{"concurrency": [4]}]}, "ladder.0", "'tp' is a required property"),
    "http upstream": ({"upstream-recipe": "http://x"}, "upstream-recipe", ""),
    "stop above one": ({"stop": {"failure-share": 2}}, "stop.failure-share", "greater than the maximum"),
}  # fmt: skip


def changed(changes: dict) -> dict:
    made = copy.deepcopy(RECIPE)
    for path, new in changes.items():
        steps = path.split(".") if not path.startswith(("env.A ",)) else ["env", path[4:]]
        if steps[0] in ("env", "serve", "scenario", "speculative", "arms") and len(steps) > 1:
            target = made
            for step in steps[:-1]:
                target = target[step]
        else:
            target, steps = made, [path]
        if new is ...:
            del target[steps[-1]]
        else:
            target[steps[-1]] = new
    return made


def infx_refuses(document: dict) -> bool:
    loaded, found = yamlio.load(yaml.safe_dump(document, sort_keys=False).encode(), "recipes/r.yaml")
    recipe, more = modelio.parse(loaded, Recipe, given={"key": "r"})
    file = RecipeFile("recipes/r.yaml", "r", loaded, recipe, (*found, *more))
    said = check_file(file, CATALOG)
    return bool(errors([*said, *(lint(recipe, loaded, CATALOG) if recipe else [])]))


def test_the_good_recipe_is_good_to_both():
    assert complaints("recipe", RECIPE) == []
    assert not infx_refuses(RECIPE)


@pytest.mark.parametrize("name", BAD)
def test_bad_recipes_do_not_validate_and_infx_says_the_same(name):
    changes, where, words = BAD[name]
    document = changed(changes)
    found = complaints("recipe", document)
    assert any(one.startswith(f"{where}: ") and words in one for one in found), found
    assert infx_refuses(document)


GOOD = {
    "snake case flag": {"serve.max_num_seqs": 64},
    "a count with a letter": {"serve.max-model-len": "1M"},
    "null removes in an arm": {"arms.plain.serve": {"max-num-seqs": None}},
    "free env": {"env.MY_OWN": "1"},
    "another engine's env": {"env.SGLANG_USE_AITER": "1"},
    "nothing speculative": {"speculative": None},
}


@pytest.mark.parametrize("name", GOOD)
def test_what_recipes_may_write_validates(name):
    assert complaints("recipe", changed(GOOD[name])) == []


def test_no_schema_asks_for_what_a_file_never_says():
    for kind, item in KINDS.items():
        made = schema(kind, CATALOG, HOMES)
        for definition in (made, *made.get("$defs", {}).values()):
            words = [field.get("description", "") for field in definition.get("properties", {}).values()
                     if isinstance(field, dict)]  # fmt: skip
            assert not [text for text in words if "not written in the" in text], (kind, item.given)


PROFILE = {"place": "here", "launch": "process", "serves": "any", "executable": "vllm"}
SLURM = {"place": "slurm", "slurm": {}}
BAD_PROFILES = [
    {**PROFILE, "executable": None}, {**PROFILE, "launch": "docker"}, {**PROFILE, "url": "http://x"},
    {**PROFILE, "slurm": {}}, {**PROFILE, "place": "slurm"}, {**PROFILE, "serves": "some"}, {**PROFILE, "gpus": -1},
    {"place": "here", "launch": "pyxis", "serves": "any", "container": {}},
    {"launch": "endpoint", "url": "http://x", "serves": "any", **SLURM},
    {"place": "here", "launch": "docker", "serves": "any",
     "container": {"tool": "podman", "ipc": "host", "shm-size": "1g"}},
    {**PROFILE, "limits": {"ready-s": 0}}, {**PROFILE, "name": "x"},
]  # fmt: skip


@pytest.mark.parametrize("document", BAD_PROFILES, ids=range(len(BAD_PROFILES)))
def test_bad_profiles_do_not_validate_and_infx_says_the_same(document):
    assert complaints("runner", PROFILE) == complaints("runner", {**PROFILE, **SLURM}) == []
    assert complaints("runner", document) != []
    loaded, _ = yamlio.load(yaml.safe_dump(document).encode(), "r.yaml")
    assert modelio.parse(loaded, Runner, given={"name": "r"})[0] is None


MODEL = b"""
x: {hub: a/b, architecture: a, quantization: b, status: current, facts: [{source: s, values: {layers: 1}}]}
"""
BAD_CONFIGS = [
    ("models", MODEL, (b"status: current", b"status: old"), "x.status"),
    ("models", MODEL, (b"layers: 1", b"layer: 1"), "x.facts.0.values"),
    ("models", MODEL, (b"hub: a/b", b"hub: a/b, path: c"), "x.hub"),
    ("models", MODEL, (b"hub: a/b, ", b""), "x"),
    ("models", MODEL, (b"source: s, ", b""), "x.facts.0"),
    ("models", MODEL, (b"status: current", b"status: current, deprecated: [{why: old}]"), "x.deprecated.0"),
    ("hardware", b"g: {name: n, vendor: amd, arch: a}", (b"amd", b"intel"), "g.vendor"),
    ("labels", b"l: {hardware: [cpu]}", (b"[cpu]", b"cpu"), "l.hardware"),
    ("price-book", b"g: {usd-per-gpu-hour: 1, source: s}", (b": 1", b": 0"), "g.usd-per-gpu-hour"),
    ("engine-features", b"features: {}", (b"features", b"feature"), ""),
    ("engine-features", b"known-failures: {f: {when: [{of: tp, equals: 2}], what: w, source: s, hint: h}}",
     (b", equals: 2", b""), "known-failures.f.when.0"),
    ("golden-curve", b"model: m\nmethod: mtp\nprovenance: {source: s, dataset: d, sampling: t, engine: e, "
     b"hardware: h}\ncurves: {thinking-on: [1.8]}", (b"1.8", b"0.8"), "curves.thinking-on.0"),
    ("changelog", b"- {config-keys: [a], description: [d], pr-link: XXX}", (b"XXX", b"http://x/1"), "0"),
    ("changelog", b"- {config-keys: [a], description: [d], pr-link: XXX}", (b"XXX}", b"XXX, kind: note}"), "0"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "good", "change", "where"), BAD_CONFIGS, ids=range(len(BAD_CONFIGS)))
def test_bad_configs_do_not_validate(kind, good, change, where):
    assert complaints(kind, value(good)) == []
    found = complaints(kind, value(good.replace(*change)))
    assert any(one.startswith(f"{where}: ") for one in found), found


def test_claims_of_the_changelog_are_checked():
    text = (b"- {config-keys: [a-*], description: [d], pr-link: https://git.example/o/n/pull/7,\n"
            b"   expect: [{points: 'tp=2, c<=8', metric: itl-p50, verdict: better, by: 0.05, within: 0.01}]}\n")
    assert complaints("changelog", value(text)) == []
    for wrong in (b"metric: itl-p51", b"verdict: best", b"within: 2"):
        key = wrong.split(b":")[0]
        bad = b"\n".join(re.sub(key + rb": [\w.-]+", wrong, line) for line in text.split(b"\n"))
        assert bad != text and complaints("changelog", value(bad)) != []


def test_names_follow_the_catalog():
    made = schema("recipe", CATALOG, HOMES)
    assert made["properties"]["model"]["enum"] == sorted(CATALOG.models)
    assert set(made["$defs"]["vllm-serve"]["properties"]) == {*CATALOG.engines["vllm"].flags, *HOMES["vllm"]}
