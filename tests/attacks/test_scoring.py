"""Chosen log-probabilities against the full log-softmax."""

import pytest
import torch
from torch import nn

from confide.attacks.statistics import scoring
from confide.attacks.statistics.scoring import log_sum_exp, token_log_probs
from confide.models.head import Head


class Output(nn.Module):
    """Nothing but an output layer."""

    def __init__(self, width: int, vocabulary: int, bias: bool, dtype: torch.dtype = torch.float64):
        super().__init__()
        weight = nn.Parameter(torch.randn(vocabulary, width, dtype=dtype))
        self.head = Head(
            weight, nn.Parameter(torch.randn(vocabulary, dtype=dtype)) if bias else None
        )


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(512, 4096), (3, 7), (1, 1), (9, 50)])
def test_equals_log_softmax_whatever_the_tiles(monkeypatch, bias, rows, columns):
    monkeypatch.setattr(scoring, "ROWS", rows)
    monkeypatch.setattr(scoring, "COLUMNS", columns)
    model = Output(5, 50, bias)
    hidden = torch.randn(11, 5, dtype=torch.float64)
    row = torch.randint(0, 11, (40,)).sort().values
    token = torch.randint(0, 50, (40,))
    expected = model.head(hidden).log_softmax(-1)[row, token]
    torch.testing.assert_close(
        token_log_probs(model, hidden, row, token), expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_in_single_precision_or_better(dtype):
    """Against float64 on the same logits: a sum over 50,000 terms in bfloat16 would be wrong in the
    second digit.
    """
    model = Output(8, 50_000, True, dtype)
    hidden = torch.randn(20, 8, dtype=dtype)
    found = log_sum_exp(model.head, hidden)
    expected = model.head(hidden).double().logsumexp(1)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)


def test_huge_logits_stay_finite_and_broken_ones_do_not():
    model = Output(4, 30, False, torch.float32)
    rows = torch.arange(2)
    hidden = torch.tensor([[1e4, 0, 0, 0], [-1e4, 0, 0, 0]])
    found = token_log_probs(model, hidden, rows, torch.tensor([3, 3]))
    torch.testing.assert_close(
        found, model.head(hidden).double().log_softmax(-1)[rows, 3], rtol=1e-6, atol=0
    )
    assert (
        not token_log_probs(model, hidden * torch.inf, rows, torch.tensor([3, 3])).isfinite().any()
    )
