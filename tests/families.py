"""Tiny models of every family with random weights, in folders as transformers saves them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedTokenizerFast

END = "<|end|>"
TEXT = ["my code is 4711 and I wait for the order", "please tell me what the price is"] * 3
USUAL: dict[str, Any] = {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
    "attention_dropout": 0.0,
    "pad_token_id": None,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {
        "n_embd": 24,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 48,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
    },
    "gpt_neox": {**USUAL, "hidden_dropout": 0.0},
    "opt": {**USUAL, "ffn_dim": 40, "word_embed_proj_dim": 16, "dropout": 0.0},
    "llama": {**USUAL, "tie_word_embeddings": True},
    "mistral": {**USUAL, "sliding_window": 5, "head_dim": 6},
    "qwen2": {**USUAL, "tie_word_embeddings": True},
    "qwen3": {**USUAL, "head_dim": 6},
    "gemma3_text": {**USUAL, "head_dim": 6, "sliding_window": 5},
    "phi3": USUAL,
    "smollm3": USUAL,
}


def vocabulary(
    folder: Path, texts: Sequence[str] = TEXT, special: Sequence[str] = (), **options: Any
) -> int:
    """Write tokenizer.json of a byte-level BPE with single digits; how many tokens it has.

    It is made of `texts`. `options`: of the tokenizer in transformers, such as chat_template.
    """
    backend = Tokenizer(models.BPE())
    digits = pre_tokenizers.Split(Regex(r"\p{N}"), "isolated")
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[END, *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    options = {"eos_token": END} | options
    PreTrainedTokenizerFast(tokenizer_object=backend, **options).save_pretrained(folder)
    return backend.get_vocab_size()


def folder_of(
    family: str,
    folder: Path,
    texts: Sequence[str] = TEXT,
    words: dict[str, Any] | None = None,
    **changes: Any,
) -> Path:
    """A folder with a tiny model of a family; its weights are larger than a fresh model's.

    Its vocabulary is made of `texts`. `words`: further options of `vocabulary`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokens = vocabulary(folder, texts, **(words or {}))
    sizes = {**FAMILIES[family], "vocab_size": tokens, "bos_token_id": 0, "eos_token_id": 0}
    config = CONFIG_MAPPING[family](**(sizes | changes))
    torch.manual_seed(7)
    network = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) / 6)
    network.save_pretrained(folder)
    return folder
