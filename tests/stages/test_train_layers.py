"""Noised updates of some layers alone: chosen by the exact phase, the others left as they are."""

from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from confide.dp.ledger import Ledger
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.update import per_example
from confide.errors import InputError
from confide.models import build
from confide.models.batches import Batch
from confide.specs import GPT2Spec, LSTMSpec, TrainSpec
from confide.train.layers import NoisyLayers, layers_of
from tests.stages.killing import killed
from tests.stages.test_train import partition, run, spec, vocabulary

__all__ = ["vocabulary"]
MODELS = {
    "lstm": LSTMSpec(kind="lstm", embedding=6, hidden=6),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=8, heads=2),
}


def asked(method: str = "jft", model: str = "lstm", **options: Any) -> TrainSpec:
    wanted = spec(method, checkpoint_every=1)
    recipe = wanted.recipe.model_copy(update={"noisy_layers": 1} | options)
    return wanted.model_copy(update={"recipe": recipe, "model": MODELS[model]})


def moved(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
def test_noised_updates_move_what_the_exact_phase_moved_most(
    model: str, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = asked(model=model)
    start = load_file(
        run(tmp_path / "0", vocabulary, asked("untouched", model=model, noisy_layers=None))["model"]
    )
    still = wanted.recipe.model_copy(update={"noisy_lr": 1e-30})
    exact = load_file(
        run(tmp_path / "1", vocabulary, wanted.model_copy(update={"recipe": still}))["model"]
    )
    made = run(tmp_path / "2", vocabulary, wanted)
    layers: dict[str, list[str]] = {}
    for name in start:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    changes = {}
    for layer, names in layers.items():
        old = np.concatenate([start[name].double().numpy().ravel() for name in names])
        new = np.concatenate([exact[name].double().numpy().ravel() for name in names])
        changes[layer] = np.linalg.norm(new - old) / np.linalg.norm(old)
    assert len(layers) > 2 and moved(start, exact) == set(start)
    assert moved(exact, load_file(made["model"])) == set(layers[max(changes, key=changes.get)])
    plain = run(tmp_path / "3", vocabulary, asked(model=model, noisy_layers=None))
    released = [Ledger.from_file(one["ledger"]).releases() for one in (made, plain)]
    assert released[0] == released[1]


def every_choice(model: str) -> Iterator[tuple[str, ...]]:
    """All ways to choose one or two layers."""
    names = list(layers_of(build(MODELS[model], 20, bos=1)))
    return chain.from_iterable(combinations(names, count) for count in (1, 2))


@pytest.mark.parametrize(
    ("model", "inner"), [(model, inner) for model in MODELS for inner in every_choice(model)]
)
def test_the_clip_norm_is_of_chosen_layers_alone(model: str, inner: tuple[str, ...]) -> None:
    """Against a loop over examples in float64, whichever layers these are."""
    torch.manual_seed(0)
    network = build(MODELS[model], 20, bos=1).double()
    layers = layers_of(network)
    choice = NoisyLayers(network, len(inner))
    with torch.no_grad():
        for name in inner:
            for weight in layers[name]:
                weight.add_(torch.randn_like(weight))
    choice.choose()
    assert set(choice.chosen) == set(inner)
    weights = [weight for name in layers if name in inner for weight in layers[name]]
    batch = Batch(*torch.randint(0, 20, (2, 5, 7)))
    of_each = []
    for row in range(5):
        loss = per_example(network, batch[row : row + 1]).sum()
        grads = torch.autograd.grad(loss, weights)
        of_each.append(torch.cat([grad.flatten() for grad in grads]))
    norms = torch.stack([grad.norm() for grad in of_each])
    bound = float(norms.median())
    clipper = PerExampleClipper(network, bound)
    found = clipper.add(lambda: per_example(network, batch))
    torch.testing.assert_close(found, norms)
    naive = sum(grad * min(1.0, bound / float(grad.norm())) for grad in of_each)
    torch.testing.assert_close(clipper.flat, naive, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("killed_after", [9, 14])
def test_a_killed_job_goes_on_to_the_same_weights(
    killed_after: int, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = asked(noisy_layers=2)
    whole = run(tmp_path / "whole", vocabulary, wanted)
    killed(killed_after, lambda: run(tmp_path / "killed", vocabulary, wanted))
    resumed = run(tmp_path / "killed", vocabulary, wanted)
    for name in ("model", "ledger"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("crt", {}, "needs exact updates before all noised ones, which crt does not make"),
        ("dpsgd", {}, "needs exact updates before"),
        ("redacted", {}, "needs exact updates before"),
        ("atdp", {}, "as published"),
        ("jft", {"precondition": True}, r"does not go with recipe\.precondition"),
        ("jft", {"noisy_filter": "spectral"}, r"does not go with recipe\.noisy_filter"),
        ("jft", {"noisy_layers": 99}, "is more than the . layers that are trained"),
    ],
)
def test_what_cannot_be_is_one_clear_error(
    method: str, options: dict[str, Any], message: str, tmp_path: Path, vocabulary: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, asked(method, **options), partition())


def test_a_layer_that_begins_at_zero_comes_first() -> None:
    torch.manual_seed(0)
    network = build(MODELS["lstm"], 20, bos=1)
    name, layer = list(layers_of(network).items())[-1]
    with torch.no_grad():
        for weight in layer:
            weight.zero_()
    choice = NoisyLayers(network, 1)
    with torch.no_grad():
        layer[0].add_(1e-3)
    choice.choose()
    assert choice.chosen == [name]
    assert [weight for weight in network.parameters() if weight.requires_grad] == layer
