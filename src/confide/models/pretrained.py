"""GPT-2 weights that others have trained, in a folder or on the hub.

The folder holds config.json and safetensors files. Everything is checked before anything is
allocated: what kind of model the folder says it is, its sizes against the headers of its files,
every tensor's name, shape and type. A model of another kind, or one that lacks a tensor, would else
begin as noise.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from torch import nn

from confide.errors import InputError
from confide.files.io import read_file, read_object
from confide.specs.files import File

KEY = "model.pretrained"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
VOCABULARY = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
Size = Annotated[int, Field(ge=1, lt=1 << 31)]
FIXED = {  # what this project's GPT-2 computes, and so what a folder may not have otherwise
    "activation_function": ("gelu_pytorch_tanh", "gelu_new"),  # the same function
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "tie_word_embeddings": (True,),
    "add_cross_attention": (False,),
}
# The causal mask, which some files hold and no model needs.
BUFFER = re.compile(r"h\.\d+\.attn\.(?:masked_)?bias")
FLOATS = ("F16", "BF16", "F32", "F64")
HEAD = "lm_head.weight"
TOKENS = "wte.weight"


class GPT2File(File):
    """Of config.json, what makes up a GPT-2."""

    model_type: str
    n_layer: Size
    n_embd: Size
    n_head: Size
    n_positions: Size
    vocab_size: Size


class Stored(NamedTuple):
    """A tensor of a file, as its header has it."""

    file: Path
    name: str
    shape: tuple[int, ...]
    type: str


def located(name: str, *, local: bool = False) -> Path:
    """The folder of that name, or of a model of the hub.

    The hub's files are brought here if they are not yet, unless `local`.
    """
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    patterns = [CONFIG, "model*.safetensors", INDEX, *VOCABULARY]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=local))
    # A name that is none, a network that is not there: there are errors of many kinds.
    except Exception as error:
        reason = str(error).partition("\n")[0][:200]
        raise InputError(
            f"is no folder, and cannot be had from the hub: {reason}", key=KEY, value=name
        ) from None


def configured(folder: Path) -> dict[str, Any]:
    """config.json of a GPT-2 of the kind that this project builds.

    InputError names what is otherwise.
    """
    place = folder / CONFIG
    kind = read_object(place, "model_type")["model_type"]
    if kind != "gpt2":
        raise InputError(
            "is of another kind than the model that is asked for, gpt2",
            file=place,
            key="model_type",
            value=kind,
        )
    config = read_file(place, GPT2File)
    if config["n_embd"] % config["n_head"]:
        raise InputError(
            "is not a multiple of n_head", file=place, key="n_embd", value=config["n_embd"]
        )
    for key, known in (FIXED | {"n_inner": (None, 4 * config["n_embd"])}).items():
        if key in config and config[key] not in known:
            raise InputError(
                f"is not {known[-1]}, as in every GPT-2 of this project",
                file=place,
                key=key,
                value=config[key],
            )
    return config


def wanted(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the tensors of a GPT-2 of these sizes; nothing is allocated."""
    width = config["n_embd"]
    yield TOKENS, (config["vocab_size"], width)
    yield "wpe.weight", (config["n_positions"], width)
    layers = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
    layers |= {"mlp.c_fc": (width, 4 * width), "mlp.c_proj": (4 * width, width)}
    for block in (f"h.{number}" for number in range(config["n_layer"])):
        for name, shape in layers.items():
            yield f"{block}.{name}.weight", shape
            yield f"{block}.{name}.bias", shape[1:]
        for name in ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"):
            yield f"{block}.{name}", (width,)
    yield "ln_f.weight", (width,)
    yield "ln_f.bias", (width,)


def files_of(folder: Path) -> list[Path]:
    """The safetensors files of a folder: one, or those that its index names."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise InputError(
            f"holds no {WEIGHTS}; weights in other formats are not read", key=KEY, value=str(folder)
        )
    named = read_object(folder / INDEX, "weight_map")["weight_map"]
    files = sorted(set(map(str, named.values()))) if isinstance(named, dict) else []
    if not files or not all(re.fullmatch(r"[\w-][\w.-]*\.safetensors", name) for name in files):
        raise InputError(
            "names no safetensors files of this folder", file=folder / INDEX, key="weight_map"
        )
    return [folder / name for name in files]


def headers(folder: Path, prefix: str = "transformer.") -> dict[str, Stored]:
    """Tensors by their names without a prefix, from the headers alone."""
    tensors: dict[str, Stored] = {}
    for file in files_of(folder):
        try:
            with safe_open(file, "pt") as opened:
                for name in opened.keys():  # noqa: SIM118 (not a mapping)
                    slice_ = opened.get_slice(name)
                    short = name.removeprefix(prefix)
                    if short in tensors:
                        raise InputError("stands there twice", file=file, key=name)
                    shape = tuple(slice_.get_shape())
                    tensors[short] = Stored(file, name, shape, slice_.get_dtype())
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"cannot be read as safetensors: {str(error)[:200]}", file=file
            ) from None
    return tensors


def checked(folder: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """Configuration and tensors that fit together, name by name.

    InputError names the first tensor that does not.
    """
    config = configured(folder)
    stored = headers(folder)
    place = folder / CONFIG
    if config["n_layer"] > len(stored):
        raise InputError(
            f"is more than the {len(stored)} tensors beside it",
            file=place,
            key="n_layer",
            value=config["n_layer"],
        )
    shapes = dict(wanted(config))
    for name, shape in shapes.items():
        if name not in stored:
            others = (tensor.name for key, tensor in stored.items() if key not in shapes)
            other = next(others, "nothing else")
            raise InputError(
                f"is missing, as no GPT-2 lacks it; there is {other}",
                file=files_of(folder)[0],
                key=name,
            )
        tensor = stored[name]
        problem = None
        if tensor.shape != shape:
            problem = f"has the shape {tensor.shape}, by {CONFIG} {shape}"
        elif tensor.type not in FLOATS:
            problem = f"is of type {tensor.type}, not one of {', '.join(FLOATS)}"
        if problem:
            raise InputError(problem, file=tensor.file, key=tensor.name)
    for name, tensor in stored.items():
        if name not in shapes and name != HEAD and not BUFFER.fullmatch(name):
            raise InputError("is no tensor of a GPT-2", file=tensor.file, key=tensor.name)
    if HEAD in stored and stored[HEAD].shape != shapes[TOKENS]:
        raise InputError(
            "is no copy of the embedding, which a GPT-2 shares", file=stored[HEAD].file, key=HEAD
        )
    return config, stored


def fill(parameters: dict[str, nn.Parameter], stored: dict[str, Stored]) -> None:
    """Copy a tensor of the files into each parameter that has one, by name."""
    for file in dict.fromkeys(tensor.file for tensor in stored.values()):
        with safe_open(file, "pt") as opened, torch.no_grad():
            for name, tensor in stored.items():
                if tensor.file == file:
                    parameters[name].copy_(opened.get_tensor(tensor.name))


def check_finite(network: nn.Module, source: str) -> None:
    """InputError names the first parameter with a number that is not finite."""
    for name, parameter in network.named_parameters():
        if not parameter.isfinite().all():
            message = f"cannot be loaded: tensor {name} holds a number that is not finite"
            raise InputError(message, key=KEY, value=source)


def copy_into(network: nn.Module, stored: dict[str, Stored]) -> None:
    """Copy the checked tensors into a network of the same sizes.

    InputError for an output layer that is not the embedding's.
    """
    parameters = {
        name.removeprefix("transformer."): parameter
        for name, parameter in network.named_parameters()
    }
    fill(parameters, {name: tensor for name, tensor in stored.items() if name in parameters})
    if (head := stored.get(HEAD)) is not None:
        embedding = parameters[TOKENS].detach()
        with safe_open(head.file, "pt") as opened:
            if not torch.equal(opened.get_tensor(head.name).to(embedding.dtype), embedding):
                raise InputError(
                    "is no copy of the embedding, which a GPT-2 shares", file=head.file, key=HEAD
                )
