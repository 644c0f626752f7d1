"""Small vocabularies of SentencePiece, in the shapes in which families publish them."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = [
    "my code is 4711 and I wait for the order",
    "please tell me what the price is, café",
    "a  b   c\n\nand more of it 12 345 06 89",
] * 4
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BLANKS = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
LEAD = {"type": "Prepend", "prepend": "▁"}


def metaspace(scheme: str) -> dict[str, Any]:
    return {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": scheme,
        "split": False,
    }


SHAPES: dict[str, dict[str, Any]] = {
    "llama": {"normalizer": {"type": "Sequence", "normalizers": [LEAD, BLANKS]}},
    "mistral": {"pre_tokenizer": metaspace("first")},
    "always": {"pre_tokenizer": metaspace("always")},
    "gemma": {
        "normalizer": BLANKS,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
    },
}


def described(shape: str, words: list[str], special: list[str]) -> dict[str, Any]:
    """tokenizer.json of a shape; `words` and `special` are added tokens."""
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    trainer = trainers.BpeTrainer(vocab_size=150, special_tokens=["<unk>"], show_progress=False)
    backend.train_from_iterator(TEXTS, trainer)
    made = json.loads(backend.to_str())
    usual = [token for token in made["model"]["vocab"] if token != "<unk>"]
    vocab = {token: index for index, token in enumerate([*SPECIAL, *BYTES, *usual])}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{"id": vocab[token], "content": token, "special": True} | flags for token in SPECIAL]
    for token in [*words, *special]:
        index = vocab.get(token, len(vocab) + sum(one["id"] >= len(vocab) for one in added))
        added.append({"id": index, "content": token, "special": token in special} | flags)
    made["added_tokens"] = added
    made["model"] |= {"vocab": vocab, "byte_fallback": True, "fuse_unk": True}
    decoders: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if shape != "gemma":
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    made["decoder"] = {"type": "Sequence", "decoders": decoders}
    made["post_processor"] = None
    made["pre_tokenizer"] = None
    return made | SHAPES[shape]


def sentencepiece_folder(
    shape: str,
    folder: Path,
    *,
    words: tuple[str, ...] = (),
    special: tuple[str, ...] = (),
    chat_template: str | None = None,
    **changes: Any,
) -> Path:
    """A folder with such a vocabulary; `changes` replace parts of its tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    made = described(shape, list(words), list(special))
    for key, value in changes.items():
        made[key] = made[key] | value if key == "model" else value
    (folder / "tokenizer.json").write_text(json.dumps(made))
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    config |= {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    config["clean_up_tokenization_spaces"] = False
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if chat_template is not None:
        (folder / "chat_template.jinja").write_text(chat_template)
    return folder
