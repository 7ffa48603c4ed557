"""Makes the local models of the CPU engine: real architectures and tokenizers, random weights, nothing downloaded.

Runs with the Python of the engine's environment (needs torch, transformers and tokenizers). Same seed, same files.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["TQDM_DISABLE"] = "1"

SEED = 20261
VOCABULARY = 4096
POSITIONS = 16384
# tiny: plumbing (about 2 ms a step on two cores); small: timing has a shape (about 10 ms a step).
SHAPES = {
    "tiny-bf16": {"hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4},
    "small-bf16": {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8},
}
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
RECIPE = {"seed": SEED, "vocabulary": VOCABULARY, "positions": POSITIONS, "template": CHAT_TEMPLATE, "revision": 1}


def main(target: Path) -> None:
    """Makes every model that is missing under ``target`` or was made from another description."""
    for name, shape in SHAPES.items():
        folder, described = target / name, json.dumps({**RECIPE, **shape}, sort_keys=True)
        made = folder / "made-from.json"
        if made.is_file() and made.read_text(encoding="utf-8") == described:
            continue
        scratch = target / f".{name}.part"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        parameters = make(scratch, shape)
        (scratch / made.name).write_text(described, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
        print(f"engine-cpu: made {name} ({parameters / 1e6:.1f} M parameters)", flush=True)


def make(folder: Path, shape: dict[str, int]) -> int:
    """Writes config, weights and tokenizer into ``folder``; returns the number of parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = train_tokenizer()
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        num_key_value_heads=shape["num_attention_heads"] // 2,
        head_dim=shape["hidden_size"] // shape["num_attention_heads"],
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"),
        pad_token_id=tokenizer.convert_tokens_to_ids("<|endoftext|>"),
        **shape,
    )
    torch.manual_seed(SEED)
    model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    with torch.no_grad():
        model.get_input_embeddings().weight[textless(tokenizer)] = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def train_tokenizer():
    """A byte-level BPE tokenizer of VOCABULARY entries, trained on generated text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(generated_text(), trainer)
    if core.get_vocab_size() != VOCABULARY:
        raise SystemExit(f"the tokenizer has {core.get_vocab_size()} entries, wanted {VOCABULARY}: more text is needed")
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        model_max_length=POSITIONS,
        chat_template=CHAT_TEMPLATE,
    )


def generated_text() -> list[str]:
    """Lines of made-up words: enough distinct ones for the whole vocabulary, the same on every machine."""
    source = random.Random(SEED)
    heads, vowels, tails = [*"bcdfghklmnprstvw", "st", "tr", "pl"], "aeiou", ["", "n", "r", "s", "l", "ck"]
    syllables = [head + vowel + tail for head in heads for vowel in vowels for tail in tails]
    words = ["".join(source.choices(syllables, k=source.randint(1, 3))) for _ in range(6000)]
    return [" ".join(source.choices(words, k=12)) + "." for _ in range(4000)]


def textless(tokenizer) -> list[int]:
    """Ids that would show as no text (special ones) or as half a character (lone bytes): they must not be drawn."""
    special = set(tokenizer.all_special_ids)
    ids = range(len(tokenizer))
    return [i for i in ids if i in special or not tokenizer.decode([i]).strip("�")]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
