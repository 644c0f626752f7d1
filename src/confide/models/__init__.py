"""Language models behind one interface, and their files: config.json plus model.safetensors (nothing is unpickled).

A model is an nn.Module with hidden(ids), head (models.head.Head), and for attacks start(n), advance(state, tokens)
and take(state, index).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from confide.errors import InputError
from confide.io import atomic, read_json, write_json
from confide.models.gpt2 import GPT2Model
from confide.models.kernels import settle
from confide.models.lstm import LSTMModel
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec, parse

settle()

MODELS: dict[str, Callable[..., nn.Module]] = {"lstm": LSTMModel, "gpt2": GPT2Model}
SPECS: dict[str, type[LSTMSpec] | type[GPT2Spec]] = {"lstm": LSTMSpec, "gpt2": GPT2Spec}


def build(spec: ModelSpec, vocab_size: int, bos: int) -> nn.Module:
    """A fresh model (weights from torch's global generator: seed it first)."""
    return MODELS[spec.kind](spec, vocab_size, bos)


def save(model: nn.Module, weights: Path, config: Path) -> None:
    """Write both files atomically. Tied tensors are stored once."""
    with atomic(weights) as temporary:
        save_file(weights_of(model), temporary)
    write_json(config, {"spec": model.spec.model_dump(), "vocab_size": model.vocab_size, "bos": model.bos})


def weights_of(model: nn.Module) -> dict[str, Any]:
    """Named parameters, each once, on the CPU."""
    return {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, weights: Path) -> None:
    """Copy stored weights into a model; InputError where names or shapes differ or the file is damaged."""
    try:
        stored = load_file(weights)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot be read as safetensors: {error}", file=weights) from None
    own = dict(model.named_parameters())
    if stored.keys() != own.keys() or any(stored[name].shape != own[name].shape for name in own):
        raise InputError("holds other tensors than this model", file=weights)
    for name, parameter in own.items():
        parameter.data.copy_(stored[name])


def load(folder: Path) -> nn.Module:
    """A trained model in evaluation mode."""
    config = read_json(Path(folder) / "config.json")
    try:
        spec = parse(SPECS[config["spec"]["kind"]], config["spec"])
        model = build(spec, config["vocab_size"], config["bos"])
    except (KeyError, TypeError):
        raise InputError("is not a model configuration", file=Path(folder) / "config.json") from None
    load_weights(model, Path(folder) / "model.safetensors")
    return model.eval()
