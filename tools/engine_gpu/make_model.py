"""Makes a Qwen3-8B without weights: its configuration and a tokenizer of its own, nothing downloaded.

    .venv-engine-cpu/bin/python tools/engine_gpu/make_model.py .engines/models

For engines on a GPU that make weights up themselves (``load-format: dummy``): the shapes, and so the speed, are those
of the real model; the text is not. The tokenizer is the small one of the CPU engine's models, so prompts use its ids
and most of what such an engine generates has no text: counts come from its usage. Runs with the Python of the CPU
engine's environment (needs transformers and tokenizers).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engine_cpu"))

from make_model import train_tokenizer  # noqa: E402

NAME = "qwen3-8b-bf16"
# As in the configuration that Qwen publishes with the model.
SHAPE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "max_window_layers": 36,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}


def main(target: Path) -> None:
    """Writes the folder of the model under ``target``."""
    folder = target / NAME
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer()
    ids = {f"{name}_token_id": tokenizer.convert_tokens_to_ids(token)
           for name, token in (("eos", "<|im_end|>"), ("pad", "<|endoftext|>"))}  # fmt: skip
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({**SHAPE, **ids}, indent=2) + "\n", encoding="utf-8")
    print(f"made {folder} (configuration and tokenizer, no weights)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
