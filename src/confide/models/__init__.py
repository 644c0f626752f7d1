"""Language models behind one base class, and their files: config.json plus model.safetensors.

Nothing is unpickled.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from confide.errors import InputError
from confide.files.io import atomic, read_file, write_json
from confide.models.causal_lm import CausalLM
from confide.models.gpt2 import GPT2Model
from confide.models.kernels import settle
from confide.models.language_model import LanguageModel
from confide.models.lstm import LSTMModel
from confide.models.pretrained import headers, located
from confide.specs import CausalLMSpec, GPT2Spec, LSTMSpec, ModelSpec, parse
from confide.specs.files import ConfigFile

settle()

CONFIG = "config.json"
WEIGHTS = "model.safetensors"

INITIALISERS = {nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_}

MODELS: dict[str, Callable[..., LanguageModel]] = {
    "lstm": LSTMModel,
    "gpt2": GPT2Model,
    "causal_lm": CausalLM,
}
SPECS: dict[str, type[LSTMSpec] | type[GPT2Spec] | type[CausalLMSpec]] = {
    "lstm": LSTMSpec,
    "gpt2": GPT2Spec,
    "causal_lm": CausalLMSpec,
}


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that training moves."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def weight_bytes(spec: ModelSpec, vocab_size: int, bos: int) -> int:
    """Bytes of a model's weights while it is built, in float32; nothing of them is allocated."""
    folder = getattr(spec, "pretrained", None)
    if folder is not None:
        stored = headers(located(folder)).values()
        return 4 * sum(math.prod(tensor.shape) for tensor in stored)
    with torch.device("meta"), Undrawn():
        model = build(spec, vocab_size, bos)
    return sum(parameter.nbytes for parameter in model.parameters())


def build(spec: ModelSpec, vocab_size: int, bos: int) -> LanguageModel:
    """A fresh model (weights from torch's global generator: seed it first)."""
    return MODELS[spec.kind](spec, vocab_size, bos)


def save(
    model: LanguageModel, weights: Path, config: Path, stored: dict[str, Tensor] | None = None
) -> None:
    """Write both files atomically. Tied tensors are stored once.

    `stored` are the weights, where they have been put together before.
    """
    with atomic(weights) as temporary:
        save_file(weights_of(model) if stored is None else stored, temporary)
    write_json(
        config, {"spec": model.spec.model_dump(), "vocab_size": model.vocab_size, "bos": model.bos}
    )


def weights_of(model: LanguageModel) -> dict[str, Tensor]:
    """Parameters that are stored, each once, on the CPU.

    Where processes keep a part each, all of them must ask.
    """
    stored = model.stored()
    shards = model.shards
    if shards is not None:
        stored = {
            name: shards.whole(shards.part_of(weight), weight)
            for name, weight in cast(dict[str, nn.Parameter], stored).items()
        }
    return {name: parameter.detach().cpu().contiguous() for name, parameter in stored.items()}


def load_weights(model: LanguageModel, weights: Path) -> None:
    """Copy stored weights into a model.

    InputError where names or shapes differ, a number is not finite, or the file is damaged.
    """
    try:
        stored = load_file(weights)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot be read as safetensors: {error}", file=weights) from None
    if {name: tuple(tensor.shape) for name, tensor in stored.items()} != shapes_of(model):
        raise InputError("holds other tensors than this model", file=weights)
    for name, tensor in stored.items():
        if not tensor.isfinite().all():
            raise InputError(f"tensor {name} holds a number that is not finite", file=weights)
    for name, parameter in model.stored().items():
        parameter.data.copy_(stored[name])


def load(folder: Path) -> LanguageModel:
    """A trained model as it is used, in evaluation mode."""
    return load_as_trained(folder).merged().eval()


def load_as_trained(folder: Path) -> LanguageModel:
    """A trained model, its adapters beside its weights, in evaluation mode."""
    spec, sizes = _described(folder)
    _outline(folder, spec, sizes)
    model = build(spec, **sizes)
    load_weights(model, Path(folder) / WEIGHTS)
    return model.eval()


def outlined(folder: Path) -> LanguageModel:
    """The same model without its weights, which are on the meta device; nothing is merged."""
    return _outline(folder, *_described(folder))


def _described(folder: Path) -> tuple[ModelSpec, dict[str, int]]:
    """What config.json of a trained model says: its specification, vocab_size and bos."""
    place = Path(folder) / CONFIG
    config = read_file(place, ConfigFile)
    if config["spec"].get("kind") not in list(SPECS):  # it may be of any type
        raise InputError(f"not one of {', '.join(SPECS)}", file=place, key="spec.kind")
    spec = parse(SPECS[config["spec"]["kind"]], config["spec"], file=str(place))
    if isinstance(spec, GPT2Spec) and spec.pretrained is not None:
        raise InputError(
            "a trained model has weights of its own",
            file=place,
            key="spec.pretrained",
            value=spec.pretrained,
        )
    if not 0 <= config["bos"] < config["vocab_size"]:
        raise InputError(
            "is no token of the vocabulary", file=place, key="bos", value=config["bos"]
        )
    return spec, {"vocab_size": config["vocab_size"], "bos": config["bos"]}


class Undrawn(TorchFunctionMode):
    """Leaves out the functions that give new parameters their first values.

    On the meta device they change nothing, and would load torch's compiler, which takes a second.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What a function returns; an initialiser returns None."""
        if function in INITIALISERS:
            return None
        return function(*args, **(kwargs or {}))


def _outline(folder: Path, spec: ModelSpec, sizes: dict[str, int]) -> LanguageModel:
    """A model of these sizes on the meta device: nothing is allocated.

    InputError unless the weights that are there are such a model's.
    """
    place = Path(folder) / CONFIG
    weights = Path(folder) / WEIGHTS
    stored = stored_shapes(weights)
    if not isinstance(spec, CausalLMSpec) and spec.layers > len(stored):
        raise InputError(
            f"the weights beside it hold {len(stored)} tensors",
            file=place,
            key="spec.layers",
            value=spec.layers,
        )
    try:
        with torch.device("meta"), Undrawn():
            model = build(spec, **sizes)
    except InputError:
        raise
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        reason = type(error).__name__
        raise InputError(f"is no model that can be built ({reason})", file=place) from None
    if stored != shapes_of(model):
        raise InputError("holds other tensors than this model", file=weights)
    return model


def shapes_of(model: LanguageModel) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a model's tensors that are stored, each once."""
    return {name: tuple(parameter.shape) for name, parameter in model.stored().items()}


def stored_shapes(weights: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of stored tensors, from the header alone."""
    try:
        with safe_open(weights, "pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot be read as safetensors: {error}", file=weights) from None
