"""The open recurrence against torch's own LSTM, against finite differences, and against sequences
that really begin anew.
"""

import pytest
import torch
from torch import Tensor, nn

from confide.models import build
from confide.models.recurrence import LSTMLayer, Recurrence
from confide.specs import LSTMSpec

F64 = torch.float64


def layer_of(inputs: int = 5, width: int = 7) -> LSTMLayer:
    torch.manual_seed(1)
    return LSTMLayer(inputs, width).double()


def opened(layer: LSTMLayer, x: Tensor, keep: Tensor | None = None) -> Tensor:
    layer.open = True
    out = layer(x, keep)
    layer.open = False
    return out


def test_both_kernels_give_the_same_states_and_gradients() -> None:
    layer = layer_of()
    x = torch.randn(3, 11, 5, dtype=F64)
    weights = torch.randn(3, 11, 7, dtype=F64)
    kernel = layer(x)
    own = opened(layer, x)
    torch.testing.assert_close(own, kernel, rtol=1e-12, atol=1e-12)
    parameters = list(layer.parameters())
    expected = torch.autograd.grad((kernel * weights).sum(), parameters)
    found = torch.autograd.grad((own * weights).sum(), parameters)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reset", [False, True])
def test_gradient_by_finite_differences(reset: bool) -> None:
    torch.manual_seed(2)
    pre = torch.randn(2, 4, 12, dtype=F64, requires_grad=True)
    weight = torch.randn(12, 3, dtype=F64, requires_grad=True)
    keep = torch.tensor([[True, True, False, True], [True, False, True, True]]) if reset else None
    assert torch.autograd.gradcheck(
        lambda pre, weight: Recurrence.apply(pre, weight, keep), (pre, weight)
    )


def test_reset_is_a_sequence_that_begins_anew() -> None:
    layer = layer_of()
    x = torch.randn(2, 9, 5, dtype=F64)
    keep = torch.ones(2, 9, dtype=torch.bool)
    keep[:, 4] = False
    torch.testing.assert_close(
        layer(x, keep), torch.cat([layer(x[:, :4]), layer(x[:, 4:])], 1), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("layers", [1, 2])
def test_the_weights_of_torchs_lstm_give_its_states(layers: int) -> None:
    torch.manual_seed(3)
    spec = LSTMSpec(kind="lstm", embedding=12, hidden=16, layers=layers)
    other = build(spec, 50, bos=1).double()
    theirs = nn.LSTM(12, 16, num_layers=layers, batch_first=True).double()
    ids = torch.randint(0, 50, (3, 11))
    with torch.no_grad():
        for number, layer in enumerate(other.layers):
            layer.inputs.weight.copy_(getattr(theirs, f"weight_ih_l{number}"))
            layer.recurrent.weight.copy_(getattr(theirs, f"weight_hh_l{number}"))
            biases = [getattr(theirs, f"bias_{part}_l{number}") for part in ("ih", "hh")]
            layer.inputs.bias.copy_(sum(biases))
    torch.testing.assert_close(
        other.hidden(ids), theirs(other.embedding(ids))[0], rtol=1e-10, atol=1e-12
    )


def test_dropout_and_resets_reach_every_layer() -> None:
    torch.manual_seed(4)
    model = build(LSTMSpec(kind="lstm", embedding=6, hidden=6, layers=2), 20, bos=1).double().eval()
    ids = torch.randint(0, 20, (2, 8))
    keep = torch.ones(2, 8, dtype=torch.bool)
    keep[0, 3] = False
    found = model.hidden(ids, keep)
    torch.testing.assert_close(found[0, 3:], model.hidden(ids[:1, 3:])[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[1], model.hidden(ids[1:])[0], rtol=1e-12, atol=1e-12)
