"""A trained model as a folder that transformers opens without this project.

Adapters are added to the weights, or stay apart, in a folder that PEFT opens beside the pretrained
model. The tokenizer puts the begin token before every text, as this project does.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from confide import models
from confide.models.causal_lm import CausalLM, inputs_of, output_of
from confide.models.gpt2 import GPT2Model
from confide.models.language_model import LanguageModel
from confide.specs import CausalLMSpec, GPT2Spec, ModelSpec
from confide.specs.training import pretrained_name
from confide.text.tokenizer import Tokenizer, beginning_with

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KEPT = ("chat_template.jinja",)  # of the pretrained model's folder, as it is
ADAPTER = "default"  # what PEFT calls an adapter while it is trained; not in its files
ROWS = "token_adapter.trainable_tokens_delta"  # what PEFT calls rows of new tokens


def exportable(spec: ModelSpec) -> bool:
    """Whether transformers has such a model."""
    return isinstance(spec, CausalLMSpec) or (isinstance(spec, GPT2Spec) and not spec.lora_rank)


def export(folder: Path, tokenizer: Tokenizer, output: Path) -> list[Path]:
    """Write the trained model of a folder into another one, its adapters merged; the files."""
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
    _save_text(model, tokenizer, output)
    return sorted(output.iterdir())


def export_adapter(folder: Path, tokenizer: Tokenizer, output: Path) -> list[Path]:
    """Write the adapters of a trained model, and the rows of its new tokens, as PEFT has them.

    They belong to the pretrained model, whose vocabulary grows to the tokenizer's before they are
    read: `AutoPeftModelForCausalLM.from_pretrained` does that. ValueError for a model without
    adapters.
    """
    import peft

    model = models.outlined(folder)
    if not isinstance(model, CausalLM) or model.spec.adapter is None:
        raise ValueError("this model has no adapters")
    network = model.network
    names = {layer: name for name, layer in network.named_modules()}
    tables: list[nn.Module] = [inputs_of(network)]
    tensors = {}
    for name, tensor in load_file(folder / models.WEIGHTS).items():
        layer, _, suffix = name.removeprefix("network.").partition(".lora_")
        if suffix:
            suffix = f"lora_{suffix}".replace(f".{ADAPTER}.", ".")
        elif name.startswith("head."):
            tables.append(output_of(network))
            layer = names[tables[-1]]
            suffix = ROWS
        else:
            layer = names[tables[0]]
            suffix = ROWS
        tensors[f"base_model.model.{layer}.{suffix}"] = tensor
    new = list(range(model.source.tokens, model.vocab_size))
    adapter = model.spec.adapter
    config = peft.LoraConfig(
        r=adapter.rank,
        lora_alpha=cast(int, adapter.alpha or 2 * adapter.rank),
        lora_dropout=adapter.dropout,
        target_modules=model.targets,
        fan_in_fan_out=network.config.model_type == "gpt2",
        trainable_token_indices={names[table].rpartition(".")[2]: new for table in tables}
        if new
        else None,
        task_type="CAUSAL_LM",
        inference_mode=True,
        base_model_name_or_path=base_name(model.spec.pretrained),
    )
    output.mkdir(parents=True)
    config.save_pretrained(str(output))
    save_file(tensors, output / "adapter_model.safetensors", metadata={"format": "pt"})
    _save_text(model, tokenizer, output)
    return sorted(output.iterdir())


def base_name(pretrained: str) -> str:
    """What others call a pretrained model: the name of its folder, if it is one here."""
    is_folder = Path(pretrained).exists()
    return Path(pretrained).name if is_folder else pretrained_name(pretrained)


def _network(model: LanguageModel) -> "PreTrainedModel":
    """The model as transformers has it; ValueError for one that it does not have."""
    if not isinstance(model, CausalLM | GPT2Model) or not exportable(model.spec):
        raise ValueError(f"transformers has no {type(model).__name__} of this kind")
    return cast("PreTrainedModel", model.network)


def _save_text(model: LanguageModel, tokenizer: Tokenizer, output: Path) -> None:
    """Write the tokenizer, and the chat template of the pretrained model."""
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
    if isinstance(model, CausalLM):
        for name in KEPT:
            if (model.source.folder / name).is_file():
                shutil.copyfile(model.source.folder / name, output / name)
