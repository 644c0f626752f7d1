"""What one noisy update must be: per-example gradients of norm C at most, summed, and one draw of
Gaussian noise.
"""

import contextlib
import io
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn
from toys import (
    BOS,
    GPT2,
    LSTM,
    TERMS,
    clipped_sum,
    flat,
    gradient,
    loss_of,
    loss_of_row,
    model_of,
    partition_of,
    texts_of,
    view_of,
)

from confide.data.partition_files import write_partitions
from confide.dp.accounting.price import epsilon
from confide.dp.mechanism import update
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.discrete import BITS
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.update import exact_gradient, noisy_gradient, per_example
from confide.models.batches import Batch, padded, selected
from confide.runtime.memory import Budget
from confide.specs import PrivacySpec, RecipeSpec, TrainSpec
from confide.stages.train import train
from confide.text import tokenizer
from confide.types import Release, Step

EXACT = {"rtol": 1e-9, "atol": 1e-12}
MANY = 6.0  # standard errors: the checks are seeded, and a fault is far beyond


def released(
    clipper: PerExampleClipper,
    batches: list[Batch],
    sigma: float = 0.0,
    size: float = 1.0,
    seed: int = 0,
) -> Tensor:
    """The gradient that one noisy step hands to the optimizer."""
    noisy_gradient(clipper, batches, sigma, size, Stream(seed, "noise"), Budget(3))
    return flat(parameter.grad for parameter in clipper.model.parameters())


def sum_of(model: nn.Module, texts: list[list[int]], bound: float) -> Tensor:
    """The clipped sum of some texts as one batch."""
    return released(
        PerExampleClipper(model, bound),
        [padded(view_of(texts), np.arange(len(texts)), BOS)] if texts else [],
    )


def clipped_sum_is_that_of_a_loop() -> None:
    """Clipped sums of two steps in two pieces each equal one backward pass per example, unpadded
    and alone.
    """
    texts = texts_of(7)
    for spec in (LSTM, GPT2):
        model = model_of(spec)
        grads = [gradient(model, loss_of(model, text)) for text in texts]
        bound = float(torch.stack(grads).norm(dim=1).median())
        clipper, view = PerExampleClipper(model, bound), view_of(texts)
        for points in (np.arange(7), np.array([5, 1, 3])):
            found = released(
                clipper, [padded(view, piece, BOS) for piece in np.array_split(points, 2)]
            )
            expected = clipped_sum([grads[point] for point in points], bound, len(grads[0]))
            torch.testing.assert_close(found, expected, **EXACT)


def states_are_reset_as_in_a_loop() -> None:
    """The same where only private positions are scored and the recurrent state is reset
    (Selective-DPSGD).
    """
    texts, model = [text * 2 for text in texts_of(5, seed=3)], model_of(LSTM)
    view = view_of(texts)
    view.private[:] = np.random.default_rng(0).random(len(view.ids)) < 0.4
    batch = selected(view, np.arange(5), BOS, "private")
    grads = [gradient(model, loss_of_row(model, batch, row)) for row in range(5)]
    bound = float(torch.stack(grads).norm(dim=1).median())
    found = released(PerExampleClipper(model, bound), [batch])
    torch.testing.assert_close(found, clipped_sum(grads, bound, len(grads[0])), **EXACT)


def discrete_updates_are_integers_that_hide_a_unit() -> None:
    """A unit is at most C long in steps of the grid, noise has the deviation that is priced, and
    the price pays for how far it is from a Gaussian.
    """
    texts, model = texts_of(5, seed=6), model_of(LSTM)
    sigma, bound = 2.0, 0.1
    step = sigma * bound * 2.0**-BITS
    clipper = PerExampleClipper(model, bound)
    batches = [padded(view_of(texts), np.array([row]), BOS) for row in range(5)]
    own = [
        update.in_steps(clipper, one, noise_multiplier=sigma, step=step, half=False)
        for one in batches
    ]
    for steps in own:
        length = math.sqrt(sum(number**2 for number in steps.tolist())) * step
        assert 0.999 * bound < length <= bound, f"a contribution of {length} for C = {bound}"
    update.discrete_gradient(clipper, batches, sigma, 1.0, Stream(0, "noise"))
    noise = clipper.flat / step - torch.stack(own).sum(0).double()
    spread = float(noise.square().mean().sqrt()) * 2.0**-BITS
    assert abs(spread - 1) < MANY / math.sqrt(2 * len(noise)), f"noise of {spread} deviations"
    kind = Step(view="redacted", pool="private", noisy=True)
    many = Release(
        step=kind,
        sample_rate=0.01,
        noise_multiplier=sigma,
        max_grad_norm=bound,
        count=10**4,
        discrete_coordinates=10**17,
    )
    assert epsilon([many], 1e-5) == math.inf, "noise that is no Gaussian is priced as one"


def units_are_clipped_whole() -> None:
    """A unit of several examples (an author) counts as the mean of its examples, clipped once, in
    however many passes.
    """
    texts, model = texts_of(6, seed=7), model_of(LSTM)
    members, units = ([0, 1, 2], [3], [4, 5]), torch.tensor([0, 0, 0, 1, 2, 2])
    grads = [
        gradient(model, sum(loss_of(model, texts[row]) for row in unit) / len(unit))
        for unit in members
    ]
    bound = float(torch.stack(grads).norm(dim=1).min()) / 2
    batch, expected = (
        padded(view_of(texts), np.arange(6), BOS),
        clipped_sum(grads, bound, len(grads[0])),
    )
    for size in (2, 6):
        clipper = PerExampleClipper(model, bound)
        noisy_gradient(
            clipper, [replace(batch, units=units)], 0.0, 1.0, Stream(0, "noise"), Budget(size)
        )
        torch.testing.assert_close(
            flat(parameter.grad for parameter in model.parameters()), expected, **EXACT
        )


def a_batch_that_does_not_fit_counts_once() -> None:
    """Where memory runs out, a batch is divided, and its clipped sum stays what it is."""
    texts, model = texts_of(6, seed=8), model_of(LSTM)
    expected, usual = sum_of(model, texts, 0.1), model.hidden

    def small(ids: Tensor, **others: Tensor) -> Tensor:
        if len(ids) > 2:
            raise torch.OutOfMemoryError
        return usual(ids, **others)

    model.hidden = small
    with contextlib.redirect_stderr(io.StringIO()):
        torch.testing.assert_close(sum_of(model, texts, 0.1), expected, **EXACT)


def one_example_moves_the_sum_by_at_most_2c() -> None:
    """Replacing one example among copies of another moves the sum by 2 C at most, taking it out by
    C; so does a NaN.
    """
    crowd, bad = [[5, 6, 7]] * 9, 33
    for spec in (LSTM, GPT2):
        model = model_of(spec)
        with torch.no_grad():
            (model.embedding if spec is LSTM else model.network.transformer.wte).weight[bad] = (
                math.nan if spec is LSTM else 50.0
            )
        bound = float(gradient(model, loss_of(model, crowd[0])).norm())
        others = [[8], [9] * 30, [5, 6, 7] * 6, [bad, 3]]
        base, without = sum_of(model, [*crowd, [4, 3]], bound), sum_of(model, crowd, bound)
        assert (base - without).norm() <= bound * (1 + 1e-9)
        for other in others:
            moved = (sum_of(model, [*crowd, other], bound) - base).norm()
            assert moved <= 2 * bound * (1 + 1e-9), (
                f"replaced by {len(other)} tokens, the sum moves by {moved / bound:.2f} C"
            )


def noise_is_normal_and_drawn_once_per_step() -> None:
    """What a step releases beyond the clipped sum is N(0, (sigma C)^2), independent across steps
    and coordinates.
    """
    model, sigma, bound, size, steps = model_of(LSTM, vocab=300), 0.7, 0.3, 5.0, 4
    view, clipper = view_of(texts_of(7, vocab=300)), PerExampleClipper(model, bound)
    pieces = [padded(view, piece, BOS) for piece in np.array_split(np.arange(7), 3)]
    noise, exact, rows = Stream(1, "noise"), released(clipper, pieces), []
    for _ in range(steps):
        noisy_gradient(clipper, pieces, sigma, size, noise, Budget(3))
        rows.append(
            (flat(parameter.grad for parameter in model.parameters()) * size - exact)
            / (sigma * bound)
        )
    values = torch.stack(rows)
    assert_standard_normal(values)
    for part in values.split([parameter.numel() for parameter in model.parameters()], dim=1):
        spread = float(part.square().mean())
        assert abs(spread - 1) < MANY * math.sqrt(2 / part.numel()), (
            f"a parameter's noise has a variance of {spread:.3f}"
        )


def assert_standard_normal(values: Tensor) -> None:
    """Rows (steps, n) are independent draws of N(0, 1)."""
    steps, count = values.shape
    assert stats.kstest(values.flatten().numpy(), "norm").pvalue > 1e-6, (
        f"standard deviation {float(values.std()):.3f}"
    )
    between = torch.corrcoef(values)[~torch.eye(steps, dtype=torch.bool)]
    assert between.abs().max() < MANY / math.sqrt(count), "noise of different steps is correlated"
    neighbours = float((values[:, 1:] * values[:, :-1]).mean())
    assert abs(neighbours) < MANY / math.sqrt(values.numel()), (
        "noise of neighbouring coordinates is correlated"
    )


def public_losses_are_blind_to_private_tokens() -> None:
    """Selective-DPSGD: gradients of public losses are the same bits whatever, and however much, the
    private tokens say.
    """

    def public(shift: int, longer: int = 0) -> Tensor:
        more = [9] * longer
        texts = [
            [5, 6, 7 + shift, *more, 8 + shift, 9, 10, 11 + shift, 12],
            [5, 20 + shift, *more, 21 + shift, 6, 7, 7],
        ]
        view, on = view_of(texts), [1] * longer
        view.private[:] = [0, 0, 1, *on, 1, 0, 0, 1, 0, 0, 1, *on, 1, 0, 0, 0]
        model = model_of(LSTM)
        exact_gradient(model, [selected(view, np.arange(2), BOS, "public")], None, Budget(9))
        return flat(parameter.grad for parameter in model.parameters())

    assert torch.equal(public(0), public(4)) and torch.equal(public(0), public(4, longer=3))


def stored_contributions_never_exceed_c() -> None:
    """What one example alone leaves in the sum is no longer than C as it is stored, in float32 and
    bfloat16: no tolerance.
    """
    texts = texts_of(12, seed=4)
    for spec in (LSTM, GPT2):
        for half in (False, True):
            model = model_of(spec).float()
            clipper = PerExampleClipper(model, 0.013)
            for text in texts:
                clipper.reset()
                clipper.add(
                    lambda text=text, model=model, half=half: per_example(
                        model, padded(view_of([text]), np.arange(1), BOS), half
                    )
                )
                stored = float(clipper.flat.double().norm())
                assert 0.99 * 0.013 < stored <= 0.013, (
                    f"a contribution of {stored / 0.013 - 1:+.1e} C beside C"
                )


def an_example_adds_the_same_in_any_company() -> None:
    """A batch adds what its examples add alone, also where its longest one reaches weights that are
    not finite.
    """
    texts = [*texts_of(8, seed=6), list(range(3, 33))]
    wide = (
        LSTM.model_copy(update={"hidden": 48}),
        GPT2.model_copy(update={"width": 48}),
    )  # norms are found in both ways
    for spec in wide:
        for bad in (False, True):
            model = model_of(spec).float()
            if bad and spec.kind == "gpt2":
                model.network.transformer.wpe.weight.data[20:] = math.nan
            if bad and spec.kind == "lstm":
                model.embedding.weight.data[31] = math.nan
                texts = [
                    [3 if token == 31 else token for token in text] for text in texts[:-1]
                ] + texts[-1:]
            bound = 0.05
            together = sum_of(model, texts, bound).double()
            apart = torch.stack([sum_of(model, [text], bound).double() for text in texts])
            assert apart[:-1].any(1).all() and bool(apart[-1].any()) != bad
            moved = float((together - apart.sum(0)).norm()) / bound
            assert moved < 1e-5, f"company moves what examples add by {moved:.1e} C"


def noise_reaches_as_far_as_a_gaussian() -> None:
    """Of bits that belong to the outermost 4e-16 of all radii, noise is a Gaussian's beyond 8.4
    deviations.
    """
    beyond, count, source = 8.4, 4000, np.random.default_rng(0)
    low = source.integers(0, int(math.exp(-(beyond**2) / 2) * 2**63), count)
    angles = source.integers(-(2**63), 2**63 - 1, count)
    bits = torch.from_numpy(np.stack([low, angles], axis=1))
    with mock.patch.object(Stream, "pairs", lambda self, count: bits):
        values = (
            Stream(0, "noise").add(torch.zeros(2 * count, dtype=torch.float64), 2.0).view(-1, 2)
            / 2.0
        )
    excess = (values.square().sum(1) - beyond**2) / 2
    assert stats.kstest(excess.numpy(), "expon").pvalue > 1e-6, (
        f"the farthest of {float(values.abs().max()):.2f} deviations"
    )


def every_update_trains() -> None:
    """Dropout is on in each pass of each exact and noisy update, after evaluations, too, and with
    adapters (LoRA).
    """
    everywhere: list[bool] = []
    dropped: list[float] = []
    usual = update.token_losses

    def seen(model: nn.Module, batch: Batch, half: bool) -> Tensor:
        everywhere.append(all(module.training for module in model.modules()))
        layers = [module for module in model.modules() if isinstance(module, nn.Dropout)]
        hooks = [
            layer.register_forward_hook(lambda _, given, made: dropped.append(zeros(made)))
            for layer in layers
        ]
        losses = usual(model, batch, half)
        for hook in hooks:
            hook.remove()
        return losses

    data = partition_of(12)
    data.split[::4] = (
        1  # some of them validate, so that the model is evaluated after the first epoch
    )
    recipe = RecipeSpec(lr=0.01, batch_size=4, noisy_batch_size=4, epochs=2, physical_batch_size=4)
    given: dict[str, Any] = {
        "method": "crt",
        "recipe": recipe,
        "privacy": PrivacySpec(noise_multiplier=1.0),
        "device": "cpu",
    }
    model = GPT2.model_copy(update={"dropout": 0.5, "lora_rank": 2})
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.object(update, "token_losses", seen),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        folder = Path(name)
        views = {view: folder / view for view in ("original", "redacted")}
        write_partitions([data], **views)
        words = folder / "tokenizer.json"
        tokenizer.save(tokenizer.train_bpe(["thank you"], 270), words)
        made = {
            key: folder / key
            for key in ("checkpoint", "model", "config", "metrics", "ledger", "epochs")
        }
        train(
            TrainSpec(run="a/g0-s0", data=TERMS, model=model, **given),
            **views,
            tokenizer=words,
            **made,
        )
    assert len(everywhere) >= 8 and len(dropped) > len(everywhere)
    assert all(everywhere), "a part of the model was left in evaluation mode"
    assert min(dropped) > 0.2, "dropout does nothing"


def zeros(values: Tensor) -> float:
    """Share of numbers that are zero."""
    return float((values == 0).float().mean())
