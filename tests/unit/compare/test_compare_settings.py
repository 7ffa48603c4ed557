"""P30, silent default changes: settings of two starts, and who asked for what differs."""

from __future__ import annotations

import dataclasses

import pytest

from infx.compare.settings import Mark, as_data, reading_of, sentences, settings_diff
from infx.engines import ENGINES
from infx.schema.result import Start
from infx.schema.settings import Parallel, ServerConfig

ARGV = ["serve", "m", "--max-num-seqs", "256"]
LOGGED = {"max-num-seqs": 256, "max-num-batched-tokens": 2048, "enforce-eager": False, "port": 1}


def reading(name="A", argv=ARGV, effective=LOGGED, count=1, engine="vllm", model="m", **changes):
    server = ServerConfig(id="s", engine=engine, image="r/e:1", model="k", model_path=model, served_name="m",
                          parallel=Parallel(tp=1, gpus=1), argv=argv, env={})
    logged = effective if isinstance(effective, list) else [effective] * count
    facts = {"format_version": 1, "block": "b", "server": "s", "argv": ["vllm", *argv], "env": {}, "image": "r/e:1",
             "digest": "sha256:1", "node": "n", "version": {"version": "0.1"}, **changes}
    starts = [Start(**facts, id=f"{name}{i}", launched_unix=float(i), effective=each) for i, each in enumerate(logged)]
    return reading_of(name, server, starts, ENGINES[engine].decides)


def found(**second):
    return settings_diff(reading("A"), reading("B", **second))


def rows(differences):
    return [(d.name, d.first, d.second, d.mark) for d in differences]


def test_equal_but_for_the_port_is_the_same():
    diff = found(effective={**LOGGED, "port": 2}, argv=ARGV)
    assert (diff.verdict, diff.differences, diff.same) == ("same", (), 3)
    assert sentences(diff)[-1] == "same: 0 differences, 0 of them silent; 3 settings the same"


def test_a_changed_default_is_silent():
    diff = found(effective={**LOGGED, "max-num-batched-tokens": 8192}, image="r/e:2", digest="sha256:2",
                 version={"version": "0.2"})
    assert rows(diff.settings) == [("max-num-batched-tokens", (2048,), (8192,), Mark.SILENT)]
    assert rows(diff.what) == [("image", ("r/e:1",), ("r/e:2",), None), ("digest", ("sha256:1",), ("sha256:2",), None),
                               ("version", ("0.1",), ("0.2",), None)]
    assert (diff.verdict, diff.same) == ("differ", 2)
    assert sentences(diff)[:7] == [
        "A (A0) → B (B0)", "engine: vllm  same", "image: r/e:1 → r/e:2", "digest: sha256:1 → sha256:2",
        "version: 0.1 → 0.2", "settings that differ:", "  max-num-batched-tokens: 2048 → 8192  silent"]
    assert "silent: nobody asked for it" in sentences(diff)


def test_asked_in_argv_and_the_rest_stays_silent():
    diff = found(argv=["serve", "m", "--max-num-seqs", "512"],
                 effective={**LOGGED, "max-num-seqs": 512, "enforce-eager": True})
    assert rows(diff.settings) == [("enforce-eager", (False,), (True,), Mark.SILENT),
                                   ("max-num-seqs", (256,), (512,), Mark.ASKED)]
    assert diff.asked == ()


def test_the_same_flag_on_both_sides_with_another_effect_is_silent():
    assert rows(found(effective={**LOGGED, "max-num-seqs": 128}).settings) == [
        ("max-num-seqs", (256,), (128,), Mark.SILENT)]


def test_asked_by_environment():
    diff = found(env={"VLLM_ENFORCE_EAGER": "1"}, effective={**LOGGED, "enforce-eager": True})
    assert rows(diff.settings) == [("enforce-eager", (False,), (True,), Mark.ASKED)]
    assert rows(diff.env) == [("VLLM_ENFORCE_EAGER", (), ("1",), Mark.ASKED)]


def test_asked_under_another_name():
    spec = ["--speculative-config", '{"method":"mtp"}']
    diff = found(argv=[*ARGV, *spec], model="n", effective={**LOGGED, "draft-method": "mtp", "model-tag": "n"})
    assert rows(diff.settings) == [("draft-method", (), ("mtp",), Mark.ASKED), ("model-tag", (), ("n",), Mark.ASKED)]
    first, second = (reading(n, argv=["--tensor-parallel-size", str(n)], effective={"tp-size": n}, engine="sglang")
                     for n in (1, 2))
    assert rows(settings_diff(first, second).settings) == [("tp-size", (1,), (2,), Mark.ASKED)]


def test_asked_without_effect_is_said():
    diff = found(argv=["serve", "m", "--max-num-seqs", "512", "--swap-space", "4"])
    assert [(d.name, d.note) for d in diff.asked] == [
        ("max-num-seqs", "the engine logged max-num-seqs 256 on both sides"), ("swap-space", "not read back")]
    assert diff.verdict == "differ"


def test_settings_of_one_side():
    diff = found(effective={"max-num-seqs": 256, "max-num-batched-tokens": 2048, "new": None})
    assert rows(diff.settings) == [("enforce-eager", (False,), (), Mark.SILENT), ("new", (), (None,), Mark.SILENT)]
    assert {"settings that one side has:", "  enforce-eager: false → (none)  silent",
            "  new: (none) → null  silent"} <= set(sentences(diff))


@pytest.mark.parametrize("silent", ["A", "B", "AB"])
def test_no_settings_is_unknown_never_the_same(silent):
    first, second = (reading(n, effective={} if n in silent else LOGGED) for n in "AB")
    diff = settings_diff(first, second)
    assert (diff.verdict, diff.settings, diff.same) == ("unknown", (), 0)
    assert [text[:13] for text in diff.unreadable] == [f"settings of {n}"[:13] for n in silent]
    assert sentences(diff)[-1].startswith("unknown: ")


def test_starts_of_one_side_that_disagree_or_are_mute():
    diff = found(effective=[LOGGED, {**LOGGED, "max-num-seqs": 512}, {}])
    assert diff.settings[0].text == "max-num-seqs: 256 → 256 | 512  silent"
    assert diff.unreadable == ("settings of 1 of 3 starts of B: B2 logged none",)
    turned = settings_diff(reading(effective=[{"x": 1}, {"x": 2}]), reading(effective=[{"x": 2}, {"x": 1}]))
    assert turned.verdict == "same"


def test_true_is_not_one():
    diff = settings_diff(reading(effective={"x": 1}), reading(effective={"x": True}))
    assert rows(diff.settings) == [("x", (1,), (True,), Mark.SILENT)]


def test_environment_of_the_image_is_silent_and_the_recipe_covers_it():
    first = reading("A", image_env={"HSA": "1", "PATH": "/a", "OVER": "1"}, env={"OVER": "3"})
    second = reading("B", image_env={"HSA": "2", "PATH": "/a", "OVER": "2"}, env={"OVER": "3"})
    assert rows(settings_diff(first, second).env) == [("HSA", ("1",), ("2",), Mark.SILENT)]


def test_an_image_environment_read_on_one_side_only_is_unknown():
    diff = settings_diff(reading("A", image_env={"HSA": "1"}), reading("B"))
    assert (diff.env, diff.verdict) == ((), "unknown")
    assert diff.unreadable == ("environment that the image of B sets: not recorded",)


def test_an_engine_that_infx_did_not_start_has_unknown_marks():
    attached = dataclasses.replace(reading("B", effective={**LOGGED, "max-num-seqs": 8}), asked=None)
    diff = settings_diff(reading("A", env={"X": "1"}), attached)
    assert rows(diff.settings) == [("max-num-seqs", (256,), (8,), Mark.UNKNOWN)]
    assert (diff.env, diff.asked) == ((), ())
    assert diff.unreadable == ("arguments and environment of B: infx did not start this engine",)


def test_a_digest_of_one_side_only_differs():
    diff = found(digest=None)
    assert rows(diff.what) == [("digest", ("sha256:1",), (), None)]


def test_control_characters_do_not_reach_the_terminal():
    diff = found(effective={**LOGGED, "x": "a\x1b[2J\n", "y": ["\x9b"]})
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for line in sentences(diff) for c in line)


def test_data_for_scripts():
    data = as_data(found(effective={**LOGGED, "max-num-seqs": 512}))
    assert data["verdict"] == "differ" and data["same"] == 2
    assert data["settings"] == [{"name": "max-num-seqs", "first": [256], "second": [512], "mark": "silent", "note": ""}]
    assert data["first"]["image"] == ["r/e:1"] and data["second"]["starts"] == ["B0"]
