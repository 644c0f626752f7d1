"""The weights after every epoch in one safetensors file: a tensor's name is the number of its
epoch, a slash, its own name.

While a model trains, each epoch lies in a file of its own beside the checkpoint, so that a killed
job loses none.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from confide.errors import InputError
from confide.files.io import atomic
from confide.models import weights_of
from confide.models.language_model import LanguageModel
from confide.train import sealed


def write(
    folder: Path, epoch: int, model: LanguageModel, stored: dict[str, Tensor] | None = None
) -> None:
    """Keep the weights after this epoch (from 1); `stored` if they were put together before."""
    weights = weights_of(model) if stored is None else stored
    named = {f"{epoch}/{name}": value for name, value in weights.items()}
    sealed.write(_place(folder, epoch), named)


def join(folder: Path, epochs: int, output: Path) -> None:
    """Write the weights after epochs 1 to `epochs` into one file.

    InputError where those of an epoch are missing or damaged.
    """
    weights: dict[str, Tensor] = {}
    for epoch in range(1, epochs + 1):
        weights |= _weights(folder, epoch)
    with atomic(output) as temporary:
        save_file(weights, temporary)


def check(folder: Path, epochs: int) -> None:
    """InputError where the weights after one of epochs 1 to `epochs` are missing or damaged."""
    for epoch in range(1, epochs + 1):
        _weights(folder, epoch)


def clear(folder: Path) -> None:
    """Remove what lies beside the checkpoint of a finished job."""
    for place in folder.glob("epoch-*.safetensors"):
        place.unlink()


def each(path: Path, model: LanguageModel) -> Iterator[tuple[int, LanguageModel]]:
    """Give a model as it is trained the weights after each epoch in turn.

    Yields the epoch's number, and the model as it is used. InputError where they do not fit.
    """
    parameters = model.stored()
    try:
        with safe_open(path, "pt") as file:
            stored = set(file.keys())
            epochs = sorted({int(name.partition("/")[0]) for name in stored})
            expected = {f"{epoch}/{name}" for epoch in epochs for name in parameters}
            if not epochs or stored != expected:
                raise InputError(
                    "does not hold the weights of this model after every epoch", file=path
                )
            for epoch in epochs:
                for name, parameter in parameters.items():
                    _copy(file.get_tensor(f"{epoch}/{name}"), parameter, path, name)
                yield epoch, model.as_used()
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"cannot be read as weights of epochs: {error}", file=path) from None


def _copy(stored: torch.Tensor, parameter: torch.Tensor, path: Path, name: str) -> None:
    if stored.shape != parameter.shape:
        raise InputError("is of another shape than the model's", file=path, key=name)
    parameter.data.copy_(stored)


def _weights(folder: Path, epoch: int) -> dict[str, Tensor]:
    """What was written after an epoch; InputError where it is missing or damaged."""
    place = _place(folder, epoch)
    try:
        return sealed.read(place)[0]
    except sealed.DAMAGED:
        message = f"{place.name} is missing or damaged; delete this folder to start over"
        raise InputError(message, file=folder) from None


def _place(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch}.safetensors"
