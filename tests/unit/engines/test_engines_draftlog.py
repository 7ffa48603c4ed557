"""What a log shows of a drafter's precision, each fact with its line; silence is not taken for a fact."""

from __future__ import annotations

from infx.engines.draftlog import shown

LOG = """\
(EngineCore pid=9) INFO 05-29 13:24:41 [core.py:109] Initializing a V1 LLM engine (v0.21.0) with config: \
model='o/target', speculative_config=SpeculativeConfig(method='eagle3', model='o/draft', num_spec_tokens=3), \
dtype=torch.bfloat16, max_seq_len=4096, quantization=fp8, kv_cache_dtype=fp8
(Worker_TP0 pid=1) INFO 05-29 13:25:15 [__init__.py:393] Selected BlockKernel for Fp8LinearMethod
(Worker_TP0 pid=1) INFO 05-29 13:25:16 [fp8.py:279] Using AITER Fp8 MoE backend out of potential backends: ['AITER']
(Worker_TP0 pid=1) INFO 05-29 13:28:04 [gpu_model_runner.py:4881] Loading drafter model...
(Worker_TP0 pid=1) INFO 05-29 13:28:10 [weight_utils.py:619] Time spent downloading weights for o/draft: 8.8 seconds
(Worker_TP0 pid=1) INFO 05-29 13:28:11 [quark_moe.py:1049] Using AITER_MXFP4 backend for OCP_MX_Scheme.w_mxfp4_a_mxfp4
(Worker_TP1 pid=2) INFO 05-29 13:28:11 [p.py:1] Keeping separate lm_head weights from the target model.
(Worker_TP0 pid=1) INFO 05-29 13:28:11 [p.py:1] Keeping separate lm_head weights from the target model.
"""


def test_facts_are_told_apart_by_where_they_stand():
    found = shown(LOG)
    assert [(one.of, one.name, one.value) for one in found] == [
        ("process", "speculation", "SpeculativeConfig(method='eagle3', model='o/draft', num_spec_tokens=3)"),
        ("process", "compute dtype", "bfloat16"),
        ("process", "quantization", "fp8"),
        ("process", "KV cache dtype", "fp8"),
        ("target", "linear kernel", "BlockKernel"),
        ("target", "MoE backend", "AITER"),
        ("draft", "loaded", "yes"),
        ("draft", "checkpoint", "o/draft"),
        ("draft", "weights and activations", "OCP_MX_Scheme.w_mxfp4_a_mxfp4"),
        ("draft", "output head", "Keeping separate lm_head weights from the target model"),
    ]
    assert found[4].evidence.endswith("Selected BlockKernel for Fp8LinearMethod")


def test_the_target_s_weights_are_not_taken_for_the_drafts():
    log = LOG.replace("Loading drafter model...", "Loading model...")
    assert not [one for one in shown(log) if one.of == "draft"]


def test_a_silent_log_shows_nothing():
    assert shown("") == shown("INFO hello\n\x1b[31mred\x1b[0m\n") == []
