"""Command lines as vLLM reads and refuses them."""

from __future__ import annotations

import pytest

from infx.simulator.argv import count, normalise, parse


def test_spellings_of_one_setting_are_one():
    expected = parse(["serve", "m", "--tensor-parallel-size", "2", "--max-num-batched-tokens", "16384"]).values
    for words in (
        ["--tensor_parallel_size=2", "--max_num_batched_tokens", "16K"],
        ["-tp", "2", "--max-num-batched-tokens=16384"],
    ):
        assert parse(["serve", "m", *words]).values == expected


def test_json_may_be_given_key_by_key():
    whole = parse(["serve", "m", "--speculative-config", '{"method":"dspark","num_speculative_tokens":5,"a":{"b":1}}'])
    parts = parse(
        ["serve", "m", "--speculative-config.method", "dspark", "--speculative_config.num_speculative_tokens=5",
         "--speculative-config.a.b", "1"]
    )  # fmt: skip
    assert parts["speculative_config"] == whole["speculative_config"]


def test_switches_have_a_no():
    assert parse(["serve", "m"])["swa_bounded_replay"] is True
    assert parse(["serve", "m", "--no-swa-bounded-replay"])["swa_bounded_replay"] is False


def test_only_what_differs_is_logged():
    words = ["--port", "8000", "--max-num-seqs", "16", "--served-model-name", "a", "b"]
    shown = parse(["serve", "m", *words]).non_default()
    assert shown == {"model_tag": "m", "model": "m", "max_num_seqs": 16, "served_model_name": ["a", "b"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "m", "--max-num-batched-tokns", "16"], "unrecognized arguments: --max-num-batched-tokns 16"),
        (["serve", "m", "--max-num-batched-tokns", "16"], "perhaps you meant 'max-num-batched-tokens'"),
        (["serve", "m", "--port", "x"], "argument --port: invalid int value: 'x'"),
        (["serve", "m", "--engram-config", "{x"], "--engram-config: Value {x cannot be converted"),
        (["serve", "m", "--dtype", "int3"], "argument --dtype: invalid choice: 'int3'"),
        (["serve", "m", "--max-model", "5"], "unrecognized arguments: --max-model 5"),
        (["serve"], "a model is needed"),
        (["bench"], "invalid choice: 'bench'"),
        ([], "the only command is serve"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(words)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_the_version_is_asked_for_alone():
    assert parse(["--version"]) is None


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), ("16k", 16000), ("16K", 16384), ("1.5m", 1500000), ("2M", 2097152)]
)
def test_counts_may_carry_a_suffix(text, value):
    assert count(text) == value


def test_other_words_are_left_alone():
    assert normalise(["model_a", "--hf_overrides", '{"a_b": 1}']) == ["model_a", "--hf-overrides", '{"a_b": 1}']
