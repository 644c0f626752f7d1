"""Folders of transformers with a causal language model in them, and models of the hub.

Nothing of a folder is trusted: no code of it runs and nothing is unpickled. What kind of model it
says it is must be one of FAMILIES; its sizes are compared with the headers of its files, tensor by
tensor, before any memory is taken for them.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from confide.errors import InputError
from confide.files.io import read_object
from confide.models.pretrained import (
    CONFIG,
    FLOATS,
    Stored,
    check_finite,
    files_of,
    fill,
    headers,
    located,
)
from confide.provenance.artefacts import digest_of
from confide.specs import CausalLMSpec
from confide.text.tokenizer import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FAMILIES = (
    "gpt2",
    "gpt_neox",
    "opt",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma3_text",
    "phi3",
    "smollm3",
)
LEARNED_POSITIONS = ("gpt2", "opt")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size")
# Constants that older files hold, and no model needs.
BUFFER = re.compile(r".*(?:attn|attention)\.(?:masked_)?bias|.*rotary_emb\.inv_freq")
DROPOUT = re.compile(r"(?:.*_)?(?:dropout|pdrop)")
# Rotary positions that are the same in every batch.
ROTATIONS = ("default", "linear", "llama3", "yarn")
# What else a configuration may not ask for: pieces of training that clipping does not see.
OFF = {"layerdrop": 0.0}


@dataclass(frozen=True, slots=True)
class Source:
    """A folder whose configuration and tensors fit together."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, Stored]  # by their names in the file
    tokens: int  # of its own vocabulary
    sha256: str  # of all its files

    @property
    def learned_positions(self) -> bool:
        return self.config["model_type"] in LEARNED_POSITIONS

    def network(self, spec: CausalLMSpec) -> "PreTrainedModel":
        """The network with the folder's weights, in float32.

        On the meta device it has none.
        """
        network = _built(self.config, spec.dropout)
        parameters = dict(network.named_parameters())
        if next(iter(parameters.values())).is_meta:
            return network
        names = _names(network, self.tensors)
        fill(parameters, {name: self.tensors[stored] for name, stored in names.items()})
        check_finite(network, spec.pretrained)
        return network


def opened(spec: CausalLMSpec) -> Source:
    """The folder that a specification names; InputError where anything in it does not fit."""
    folder = located(spec.pretrained)
    digest = digest_of(str(folder)) or ""
    if spec.sha256 not in (None, digest):
        raise InputError(
            "has other files than the ones that were named by their digest",
            file=folder,
            key="model.sha256",
            value=spec.sha256,
        )
    config = configured(folder)
    tensors = headers(folder, prefix="")
    _check(config, tensors, folder)
    return Source(folder, config, tensors, tokens=len(vocabulary_of(folder)), sha256=digest)


def configured(folder: Path) -> dict[str, Any]:
    """config.json of a family that is known here; InputError says what is not."""
    place = folder / CONFIG
    config = read_object(place, "model_type")
    kind = config["model_type"]
    expert = next((key for key in EXPERTS if config.get(key)), None)
    if expert is not None:
        raise InputError(
            "is of a mixture of experts: which of them a token reaches is not a function of its "
            "own example alone once capacities or balance count, and their gradients per example "
            "are not known here",
            file=place,
            key=expert,
            value=config[expert],
        )
    if kind not in FAMILIES:
        raise InputError(
            f"is not one of {', '.join(FAMILIES)}", file=place, key="model_type", value=kind
        )
    if "auto_map" in config:
        raise InputError("names code of the folder, which is never run", file=place, key="auto_map")
    if config.get("quantization_config"):
        raise InputError(
            "is of quantised weights; save them dequantised", file=place, key="quantization_config"
        )
    return config


def _built(config: dict[str, Any], dropout: float | None) -> "PreTrainedModel":
    """A network of these sizes in float32; its dropout is the configuration's unless given."""
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    settings = {key: value for key, value in config.items() if key not in ("dtype", "torch_dtype")}
    if dropout is not None:
        settings |= {key: dropout for key in settings if DROPOUT.fullmatch(key)}
    settings |= {key: value for key, value in OFF.items() if key in settings}
    described = CONFIG_MAPPING[config["model_type"]].from_dict(settings)
    if dropout is not None:
        for key in vars(described):
            if DROPOUT.fullmatch(key):
                setattr(described, key, dropout)
    return AutoModelForCausalLM.from_config(
        described, dtype=torch.float32, attn_implementation="sdpa"
    )


def _check(config: dict[str, Any], tensors: dict[str, Stored], folder: Path) -> None:
    """InputError names the first tensor that does not fit the configuration."""
    place = folder / CONFIG
    for key in ("num_hidden_layers", "n_layer"):
        layers = config.get(key)
        if layers is not None and not (isinstance(layers, int) and 0 < layers <= len(tensors)):
            raise InputError(
                f"is not a number of layers of the {len(tensors)} tensors beside it",
                file=place,
                key=key,
                value=layers,
            )
    try:
        with torch.device("meta"):
            network = _built(config, None)
    except Exception as error:  # of a file that others made: transformers has errors of many kinds
        reason = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        raise InputError(f"is no model that can be built: {reason}", file=place) from None
    _check_rotations(network, place)
    names = _names(network, tensors)
    for name, parameter in network.named_parameters():
        if name not in names:
            raise InputError(
                "is missing, which a model of this configuration has",
                file=files_of(folder)[0],
                key=name,
            )
        stored = tensors[names[name]]
        if stored.shape != tuple(parameter.shape):
            wanted = tuple(parameter.shape)
            message = f"has the shape {stored.shape}, by {CONFIG} {wanted}"
            raise InputError(message, file=stored.file, key=stored.name)
        if stored.type not in FLOATS:
            message = f"is of type {stored.type}, not one of {', '.join(FLOATS)}"
            raise InputError(message, file=stored.file, key=stored.name)
    tied = {name for name, _ in network.named_parameters(remove_duplicate=False)}
    used = {*names.values()}
    for name, stored in tensors.items():
        short = _full(network, name)
        if name not in used and short not in tied and not BUFFER.fullmatch(name):
            raise InputError(
                "is no tensor of a model of this configuration", file=stored.file, key=stored.name
            )


def _check_rotations(network: "PreTrainedModel", place: Path) -> None:
    """InputError where an example's positions depend on the longest text of its batch.

    What an example adds to a sum of clipped gradients would then depend on its company.
    """
    for module in network.modules():
        kind = getattr(module, "rope_type", "default")
        for name in kind.values() if isinstance(kind, dict) else [kind]:
            if name not in ROTATIONS:
                message = f"depends on the other texts of a batch; known are {', '.join(ROTATIONS)}"
                raise InputError(message, file=place, key="rope_type", value=name)


def _names(network: "PreTrainedModel", tensors: dict[str, Stored]) -> dict[str, str]:
    """Of each parameter the name of its tensor in the file."""
    stored_names = {_full(network, name): name for name in tensors}
    return {
        name: stored_names[name] for name, _ in network.named_parameters() if name in stored_names
    }


def _full(network: "PreTrainedModel", name: str) -> str:
    """A tensor's name with that of the network's body, which some files leave out."""
    body = network.base_model_prefix
    name = name.replace("embed_out.", "lm_head.")  # what GPT-NeoX's files call the output layer
    return name if name.startswith((f"{body}.", "lm_head.")) else f"{body}.{name}"
