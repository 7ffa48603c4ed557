"""One golden length in the words of four engines; TensorRT-LLM's is one less (P32)."""

from __future__ import annotations

import pytest

from infx.engines import ENGINES
from infx.engines.acceptance import SPELLINGS, spelled, tensorrt_llm


def test_the_headline_length_in_each_engine_s_words():
    assert spelled(3.51) == {
        "vllm": "rejection_sample_method=synthetic synthetic_acceptance_length=3.51",
        "sglang": "SGLANG_SIMULATE_ACC_LEN=3.51 SGLANG_SIMULATE_ACC_METHOD=match-expected "
                  "SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token",
        "tensorrt-llm": "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=2.51",
        "atom": "--spec-decode-acceptance-length=3.51",
    }


@pytest.mark.parametrize(("length", "drafts"), [(1.0, "0"), (2.78, "1.78"), (1.1, "0.1"), (4.0, "3")])
def test_tensorrt_llm_counts_accepted_drafts_alone(length, drafts):
    assert tensorrt_llm(length) == {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": drafts}


def test_less_than_the_verified_token_is_refused():
    with pytest.raises(ValueError, match="below 1"):
        tensorrt_llm(0.9)


def test_every_engine_that_starts_has_a_spelling():
    assert set(ENGINES) <= set(SPELLINGS)
