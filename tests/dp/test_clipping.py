"""Clipping against a loop over examples in float64, layer by layer and model by model, and against
Opacus.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.update import per_example
from confide.errors import InputError
from confide.models import build
from confide.models.batches import Batch
from confide.models.head import IGNORE, Head
from confide.models.recurrence import LSTMLayer
from confide.specs import GPT2Spec, LSTMSpec

VOCAB = 40
BOUND = 0.4
EXACT = {"rtol": 1e-9, "atol": 1e-11}
SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=9, hidden=11),
    "lstm two layers": LSTMSpec(kind="lstm", embedding=9, hidden=7, layers=2),
    "gpt2 tied": GPT2Spec(kind="gpt2", layers=2, width=12, heads=3, positions=48),
}


class Layers(nn.Module):
    """Embedding, one layer of interest, head."""

    def __init__(self, layer: nn.Module, width: int = 6, tied: bool = False, **options: object):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, width, **options)
        self.layer = layer
        self.head = Head(
            self.embedding.weight if tied else nn.Parameter(torch.randn(VOCAB, width) / 3)
        )

    def hidden(self, ids: Tensor, keep: Tensor | None = None, ends: Tensor | None = None) -> Tensor:
        x = self.embedding(ids)
        return self.layer(x) if keep is None else self.layer(x, keep)


def untied() -> nn.Module:
    model = build(SPECS["gpt2 tied"], VOCAB, bos=1)
    model.head.weight = nn.Parameter(torch.randn_like(model.head.weight) / 3)
    model.network.lm_head.weight = model.head.weight
    return model


def frozen() -> nn.Module:
    model = build(SPECS["gpt2 tied"], VOCAB, bos=1)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("h.1." in name or "ln_f" in name)
    return model


def with_adapters() -> nn.Module:
    peft = pytest.importorskip("peft")
    model = build(SPECS["gpt2 tied"], VOCAB, bos=1)
    config = peft.LoraConfig(
        r=3,
        lora_alpha=6,
        target_modules=["c_attn", "c_fc"],
        fan_in_fan_out=True,
        init_lora_weights=False,
    )
    model.network = peft.get_peft_model(model.network, config)
    model.head.weight.requires_grad_(False)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    **{name: lambda spec=spec: build(spec, VOCAB, bos=1) for name, spec in SPECS.items()},
    "gpt2 untied": untied,
    "gpt2 partly frozen": frozen,
    "gpt2 with adapters": with_adapters,
    "linear": lambda: Layers(
        nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6, bias=False))
    ),
    "conv1d": lambda: Layers(nn.Sequential(Conv1D(5, 6), nn.Tanh(), Conv1D(6, 5))),
    "layer norm": lambda: Layers(
        nn.Sequential(nn.LayerNorm(6), nn.Tanh(), nn.LayerNorm(6, bias=False))
    ),
    "recurrent": lambda: Layers(LSTMLayer(6, 6)),
    "embedding with padding": lambda: Layers(nn.Tanh(), padding_idx=2),
    "tied embedding": lambda: Layers(nn.Tanh(), tied=True),
    "one layer twice": lambda: Layers(nn.Sequential(*[nn.Linear(6, 6)] * 2)),
}


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[name]().double().train()


def batch(examples: int = 5, length: int = 13) -> Batch:
    """Ids with repeated tokens; targets with padding of different lengths and holes."""
    source = torch.Generator().manual_seed(1)
    ids = torch.randint(2, VOCAB, (examples, length), generator=source)
    ids[:, ::3] = ids[:, :1]
    targets = torch.randint(2, VOCAB, (examples, length), generator=source)
    for row in range(examples):
        targets[row, max(1, length - row) :] = IGNORE
    targets[1:, 1:2] = IGNORE
    return Batch(ids, targets)


def private_batch(length: int = 13) -> Batch:
    """Some positions scored, some states reset, as Selective-DPSGD has it; the last example has
    nothing to score.
    """
    whole = batch(length=length)
    source = torch.Generator().manual_seed(2)
    places = torch.rand(5, length, generator=source).argsort(1)[:, : length // 2].sort(1).values
    targets = whole.targets.gather(1, places)
    targets[4] = IGNORE
    return Batch(whole.inputs, targets, places, torch.rand(5, length, generator=source) > 0.3)


def rows(batch: Batch, chosen: list[int]) -> Batch:
    return batch._each(lambda part: part[chosen])


def reference(model: nn.Module, batch: Batch) -> Tensor:
    """The same losses by other means: logits, F.cross_entropy, one sequence after each reset."""
    hidden = model.hidden(batch.inputs) if batch.keep is None else restarted(model, batch)
    if batch.places is not None:
        hidden = torch.stack(
            [row[places] for row, places in zip(hidden, batch.places, strict=True)]
        )
    logits = F.linear(hidden, model.head.weight, model.head.bias)
    losses = F.cross_entropy(
        logits.transpose(1, 2), batch.targets, ignore_index=IGNORE, reduction="none"
    )
    return losses.sum(1) / (batch.targets != IGNORE).sum(1).clamp(min=1)


def restarted(model: nn.Module, batch: Batch) -> Tensor:
    found = []
    for ids, keep in zip(batch.inputs, batch.keep, strict=True):
        starts = [0, *(position for position in range(1, len(ids)) if not keep[position]), len(ids)]
        found.append(torch.cat([model.hidden(ids[None, a:b])[0] for a, b in pairwise(starts)]))
    return torch.stack(found)


def naive(model: nn.Module, batch: Batch, units: list[list[int]]) -> list[list[Tensor]]:
    """Gradients of each unit, by one backward pass each."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    losses = (reference(model, rows(batch, members)).sum() for members in units)
    return [
        list(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))
        for loss in losses
    ]


def check(model: nn.Module, batch: Batch, units: list[list[int]] | None = None) -> None:
    """Norms and clipped sum, with the median norm for a bound, so that some are clipped and some
    are not.
    """
    grads = naive(model, batch, units or [[row] for row in range(len(batch))])
    expected = torch.stack(
        [torch.sqrt(sum(grad.square().sum() for grad in found)) for found in grads]
    )
    bound = expected.median().item()
    assert (expected > bound).any()
    numbers = (
        None
        if units is None
        else torch.tensor([number for number, members in enumerate(units) for _ in members])
    )
    clipper = PerExampleClipper(model, bound)
    torch.testing.assert_close(
        clipper.add(lambda: per_example(model, batch), numbers), expected, **EXACT
    )
    scales = (bound / expected.clamp(min=1e-12)).clamp(max=1.0)
    total = [
        sum(scale * grad for scale, grad in zip(scales, each, strict=True))
        for each in zip(*grads, strict=True)
    ]
    torch.testing.assert_close(clipper.total, total, **EXACT)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("length", [3, 13, 40])  # short: Gram norms; long: direct norms
def test_equals_a_loop_over_examples(name: str, length: int) -> None:
    check(model_of(name), batch(length=length))


@pytest.mark.parametrize("name", ["lstm", "lstm two layers", "recurrent"])
@pytest.mark.parametrize("length", [5, 30])
def test_masked_losses_and_reset_states_equal_a_loop_over_examples(name: str, length: int) -> None:
    check(model_of(name), private_batch(length))


@pytest.mark.parametrize("name", MODELS)
def test_units_of_several_examples_equal_a_loop_over_units(name: str) -> None:
    check(model_of(name), batch(), [[0, 1], [2], [3, 4]])


@pytest.mark.parametrize("name", MODELS)
def test_a_large_unit_in_several_passes_equals_one(name: str) -> None:
    model = model_of(name)
    whole = batch()
    one = PerExampleClipper(model, BOUND)
    other = PerExampleClipper(model, BOUND)
    norm = one.add(lambda: per_example(model, whole), torch.zeros(5, dtype=torch.int64))
    pieces = [
        lambda members=members: per_example(model, rows(whole, members))
        for members in ([0, 1], [2, 3], [4])
    ]
    torch.testing.assert_close(other.add_unit(pieces), norm[0], **EXACT)
    torch.testing.assert_close(other.flat, one.flat, **EXACT)


@pytest.mark.parametrize("name", SPECS)
def test_physical_batches_add_up(name: str) -> None:
    model = model_of(name)
    examples = batch()
    whole = PerExampleClipper(model, BOUND)
    parts = PerExampleClipper(model, BOUND)
    whole.add(lambda: per_example(model, examples))
    for members in ([0, 1], [2, 3, 4]):
        parts.add(lambda members=members: per_example(model, rows(examples, members)))
    torch.testing.assert_close(parts.flat, whole.flat, **EXACT)
    parts.reset()
    assert not parts.flat.any()


@pytest.mark.parametrize("name", MODELS)
def test_no_clipping_is_the_plain_gradient(name: str) -> None:
    model = model_of(name)
    examples = batch()
    clipper = PerExampleClipper(model, max_grad_norm=torch.inf)
    clipper.add(lambda: per_example(model, examples))
    reference(model, examples).sum().backward()
    for parameter, value in zip(clipper.parameters, clipper.total, strict=True):
        torch.testing.assert_close(
            torch.zeros_like(value) if parameter.grad is None else parameter.grad, value, **EXACT
        )


@pytest.mark.parametrize("name", ["linear", *SPECS])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_an_example_that_is_not_finite_counts_and_contributes_nothing(
    name: str, value: float
) -> None:
    model = model_of(name)
    examples = batch()
    clean = PerExampleClipper(model, BOUND)
    dirty = PerExampleClipper(model, BOUND)
    clean.add(lambda: per_example(model, rows(examples, [1, 2, 3, 4])))
    factor = torch.tensor([value, 1, 1, 1, 1], dtype=torch.float64)
    dirty.add(lambda: per_example(model, examples) * factor)
    assert dirty.nonfinite == 1
    torch.testing.assert_close(dirty.flat, clean.flat, **EXACT)


def test_a_gradient_beyond_what_a_scale_can_express_contributes_nothing() -> None:
    """A scale below the normal numbers has few digits, and would be rounded up as well as down."""
    model = model_of("lstm").float()
    clipper = PerExampleClipper(model, 1e-20)
    factor = torch.tensor([1e25, 1, 1, 1, 1])
    clipper.add(lambda: per_example(model, batch()) * factor)
    assert clipper.nonfinite == 1 and 0 < clipper.flat.norm() <= 4e-20


def test_activations_that_are_not_finite_stay_in_their_example() -> None:
    model = model_of("lstm")
    examples = batch()
    clean = PerExampleClipper(model, BOUND)
    dirty = PerExampleClipper(model, BOUND)
    with torch.no_grad():
        model.embedding.weight[3] = torch.nan
    examples.inputs[examples.inputs == 3] = 4
    clean.add(lambda: per_example(model, rows(examples, [1, 2, 3, 4])))
    examples.inputs[0, 0] = 3
    dirty.add(lambda: per_example(model, examples))
    assert dirty.nonfinite == 1 and clean.flat.isfinite().all()
    torch.testing.assert_close(dirty.flat, clean.flat, **EXACT)


def test_a_failed_pass_adds_nothing() -> None:
    model = model_of("lstm")
    examples = batch()
    clipper = PerExampleClipper(model, BOUND)
    clipper.add(lambda: per_example(model, examples))
    before = clipper.flat.clone()

    def fails() -> Tensor:
        per_example(model, examples)
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        clipper.add(fails)
    assert torch.equal(clipper.flat, before) and all(
        parameter.requires_grad for parameter in clipper.parameters
    )


def test_unsupported_layers_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"layer 1 of type Conv1d is trainable"):
        PerExampleClipper(nn.Sequential(nn.Linear(3, 3), nn.Conv1d(3, 3, 1)), 1.0)
    with pytest.raises(InputError, match=r"layer 0 of type Embedding is trainable"):
        PerExampleClipper(nn.Sequential(nn.Embedding(3, 3, max_norm=1.0)), 1.0)
    with pytest.raises(InputError, match=r"float32 or float64"):
        PerExampleClipper(nn.Linear(3, 3).bfloat16(), 1.0)
    mixed = nn.Sequential(nn.Conv1d(3, 3, 1).requires_grad_(False), nn.Linear(3, 3))
    assert len(PerExampleClipper(mixed, 1.0).parameters) == 2


def test_a_batch_whose_first_dimension_is_not_the_example_is_refused_by_name() -> None:
    class Positions(Layers):
        def hidden(self, ids: Tensor, keep: None = None, ends: Tensor | None = None) -> Tensor:
            return self.embedding(ids) + self.layer(torch.arange(ids.shape[1])[None])

    model = Positions(nn.Embedding(13, 6)).double()
    with pytest.raises(
        InputError, match=r"layer layer of type Embedding read 1 rows for 5 examples"
    ):
        PerExampleClipper(model, 1.0).add(lambda: per_example(model, batch()))


def test_norms_agree_with_opacus() -> None:
    from opacus import GradSampleModule

    torch.manual_seed(0)
    plain = nn.Sequential(
        nn.Embedding(VOCAB, 6), nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, VOCAB)
    )
    examples = batch()

    def losses(model: nn.Module) -> Tensor:
        return F.cross_entropy(
            model(examples.inputs).transpose(1, 2), examples.targets, reduction="none"
        ).sum(1)

    ours = PerExampleClipper(plain, 1.0).add(lambda: losses(plain))
    for module in plain.modules():
        module._forward_hooks.clear()
    wrapped = GradSampleModule(plain, loss_reduction="sum")
    losses(wrapped).sum().backward()
    squared = sum(
        parameter.grad_sample.flatten(1).square().sum(1) for parameter in wrapped.parameters()
    )
    torch.testing.assert_close(ours, squared.sqrt(), rtol=1e-5, atol=1e-6)
