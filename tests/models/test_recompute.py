"""Blocks that are recomputed in the backward pass: gradients, clipped sums and dropout are those of
blocks that are kept, and less is kept.
"""

import pytest
import torch
from torch import Tensor, nn

from confide import models
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import dropout_from
from confide.dp.mechanism.update import exact_gradient, per_example
from confide.errors import InputError
from confide.models.batches import Batch
from confide.models.recompute import recompute
from confide.runtime.memory import Budget
from confide.specs import AdapterSpec, CausalLMSpec, GPT2Spec, LSTMSpec
from confide.text.tokenizer import from_folder
from tests.families import FAMILIES
from tests.models.test_causal_lm import batch_of, folders, in_float64
from tests.nightly import nightly

__all__ = ["folders"]
WAYS = ("full", "adapter", nightly("frozen embedding"))
DROPOUT = 0.2


def pair(folder, family: str, way: str, dropout: float) -> tuple[nn.Module, nn.Module, Batch]:
    """One model twice, the second one with blocks that are recomputed; in float64."""
    words = from_folder(folder, source=family, control=["USR:"])
    options = {"dropout": dropout}
    if way != "full":
        options["adapter"] = AdapterSpec(rank=3, dropout=dropout)
    size = words.vocab_size
    batch = batch_of(words)
    if way == "frozen embedding":  # no new tokens: nothing before the first block is trained
        size = words.mask_id
        batch = Batch(batch.inputs % size, batch.targets.clamp(max=size - 1))
    made = []
    for _ in range(2):
        spec = CausalLMSpec(kind="causal_lm", pretrained=str(folder), **options)
        torch.manual_seed(3)
        model = models.build(spec, size, 0).double().train()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter) / 8)
        made.append(model)
    recompute(made[1])
    return *made, batch


def clipped(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Norms of a batch in two pieces, then the next number of dropout's generator; clipped sum."""
    clipper = PerExampleClipper(model, 0.4)
    clipper.reset()
    source = torch.Generator().manual_seed(11)
    with dropout_from(source):
        norms = [clipper.add(lambda rows=rows: per_example(model, rows)) for rows in batch.split(2)]
        after = torch.rand(1)
    return torch.cat([*norms, after]), clipper.flat


@pytest.mark.parametrize("dropout", [DROPOUT, nightly(0.0)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_clipped_sums_are_those_without_it(family, way, dropout, folders, monkeypatch) -> None:
    in_float64(monkeypatch)
    kept, recomputed, batch = pair(folders[family], family, way, dropout)
    assert len(recomputed.blocks_recomputed) == 2
    norms, expected = clipped(kept, batch)
    same, found = clipped(recomputed, batch)
    assert expected.norm() > 0
    torch.testing.assert_close(same, norms, rtol=1e-10, atol=0)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    if dropout:  # it is on
        assert not torch.allclose(clipped(kept.eval(), batch)[1], expected, rtol=1e-3)


@pytest.mark.parametrize("dropout", [DROPOUT, nightly(0.0)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", ["llama", nightly("opt")])
def test_exact_gradients_and_large_units_are_as_without_it(family, way, dropout, folders) -> None:
    kept, recomputed, batch = pair(folders[family], family, way, dropout)
    found = []
    for model in (kept, recomputed):
        torch.manual_seed(5)
        loss = exact_gradient(model, [batch], 1.0, Budget(2))
        grads = [value.grad.flatten() for value in model.parameters() if value.requires_grad]
        clipper = PerExampleClipper(model, 0.4)
        clipper.add_unit([lambda model=model: per_example(model, batch)])
        found.append(torch.cat([loss.view(1), *grads, clipper.flat]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-11)


def test_bfloat16_is_as_without_it() -> None:
    spec = GPT2Spec(kind="gpt2", layers=2, width=16, heads=2, positions=32, dropout=DROPOUT)
    found = []
    for again in (False, True):
        torch.manual_seed(0)
        model = models.build(spec, 40, 1).train()
        if again:
            recompute(model)
        clipper = PerExampleClipper(model, 0.4)
        ids = torch.randint(0, 40, (3, 9), generator=torch.Generator().manual_seed(1))
        rows = Batch(ids, ids.roll(-1, 1))
        with dropout_from(torch.Generator().manual_seed(2)):
            clipper.add(lambda model=model, rows=rows: per_example(model, rows, half=True))
        found.append(clipper.flat)
    assert found[0].any() and torch.equal(*found)


def test_an_example_that_is_not_finite_adds_nothing(folders) -> None:
    kept, recomputed, batch = pair(folders["llama"], "llama", "full", 0.0)
    places = torch.arange(len(batch), dtype=torch.float64)
    spoiled = torch.where(places == 1, torch.nan, 1.0)
    found = []
    for model in (kept, recomputed):
        clipper = PerExampleClipper(model, 0.4)
        clipper.add(lambda model=model: per_example(model, batch) * spoiled)
        assert clipper.nonfinite == 1
        found.append(clipper.flat)
    torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-12)


def test_less_is_kept() -> None:
    """Of a block nothing but what it has read: numbers that autograd saves in a pass."""
    spec = GPT2Spec(kind="gpt2", layers=6, width=16, heads=2, positions=64)
    found = []
    for again in (False, True):
        model = models.build(spec, 40, 1).train()
        if again:
            recompute(model)
        kept: dict[int, int] = {}

        def keep(tensor: Tensor, kept: dict[int, int] = kept) -> Tensor:
            kept[tensor.data_ptr()] = tensor.numel()
            return tensor

        weights = {weight.data_ptr() for weight in model.parameters()}
        ids = torch.zeros(4, 64, dtype=torch.int64)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = per_example(model, Batch(ids, ids))
        found.append(sum(size for place, size in kept.items() if place not in weights))
        assert loss.requires_grad
    assert found[1] < found[0] / 5


def test_a_recurrent_model_is_refused() -> None:
    model = models.build(LSTMSpec(kind="lstm", embedding=4, hidden=4), 20, 1)
    with pytest.raises(InputError, match=r"recipe\.gradient_checkpointing = True: needs a model"):
        recompute(model)
