"""A trained model as a folder that transformers opens without this project.

Adapters are added to the weights. The tokenizer puts the begin token before every text, as this
project does.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson
import torch

from confide import models
from confide.models.causal_lm import CausalLM
from confide.models.gpt2 import GPT2Model
from confide.models.language_model import LanguageModel
from confide.specs import CausalLMSpec, GPT2Spec, ModelSpec
from confide.text.tokenizer import Tokenizer, beginning_with

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KEPT = ("chat_template.jinja",)  # of the pretrained model's folder, as it is


def exportable(spec: ModelSpec) -> bool:
    """Whether transformers has such a model."""
    return isinstance(spec, CausalLMSpec) or (isinstance(spec, GPT2Spec) and not spec.lora_rank)


def export(folder: Path, tokenizer: Tokenizer, output: Path, card: str) -> list[Path]:
    """Write the trained model of a folder into another one, with README.md; the files written.

    `card` is the text of README.md.
    """
    from transformers import GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = models.load(folder)
    network = _network(model)
    config = network.config
    config.bos_token_id = tokenizer.bos_id
    config.eos_token_id = tokenizer.bos_id
    config.pad_token_id = tokenizer.pad_id
    config.dtype = torch.float32
    ends = {"bos_token_id": tokenizer.bos_id, "eos_token_id": tokenizer.bos_id}
    network.generation_config = GenerationConfig(**ends, pad_token_id=tokenizer.pad_id)
    network.save_pretrained(output)
    _save_tokenizer(tokenizer, output)
    if isinstance(model, CausalLM):
        for name in KEPT:
            if (model.source.folder / name).is_file():
                shutil.copyfile(model.source.folder / name, output / name)
    page = output / "README.md"
    page.write_text(card)
    for path in output.iterdir():
        path.chmod(page.stat().st_mode)  # safetensors closes what it writes to others
    return sorted(output.iterdir())


def card_of(title: str, says: str, base: str | None, names: Sequence[str]) -> str:
    """README.md of an exported model: what it claims, and which files beside it bear that out."""
    metadata = ["---", "library_name: transformers", "pipeline_tag: text-generation"]
    metadata += [] if base is None else [f"base_model: {base}"]
    metadata += ["tags: [confide]", "---"]
    files = [f"- `../{name}`" for name in names]
    return "\n".join(
        [
            *metadata,
            "",
            f"# {title}",
            "",
            "A language model trained on confidential text. What its certificate claims:",
            "",
            *(f"> {line}" for line in says.splitlines()),
            "",
            "These files bear it out; `confide verify ../certificate.json` computes it again:",
            "",
            *files,
            "",
        ]
    )


def _network(model: LanguageModel) -> "PreTrainedModel":
    """The model as transformers has it; ValueError for one that it does not have."""
    if not isinstance(model, CausalLM | GPT2Model) or not exportable(model.spec):
        raise ValueError(f"transformers has no {type(model).__name__} of this kind")
    return cast("PreTrainedModel", model.network)


def _save_tokenizer(tokenizer: Tokenizer, output: Path) -> None:
    backend = beginning_with(tokenizer)
    (output / "tokenizer.json").write_text(backend.to_str(), encoding="utf-8")
    end = tokenizer.token(tokenizer.bos_id)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": end,
        "eos_token": end,
        "pad_token": tokenizer.token(tokenizer.pad_id),
        "clean_up_tokenization_spaces": False,
    }
    (output / "tokenizer_config.json").write_bytes(orjson.dumps(config))
