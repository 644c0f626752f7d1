"""Reading token by token from shared states, against forward passes of transformers and torch over
whole sequences.
"""

import pytest
import torch

from confide.models import build
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec

SPECS = {
    "gpt2": GPT2Spec(kind="gpt2", layers=3, width=24, heads=4, positions=16),
    "lstm": LSTMSpec(kind="lstm", embedding=6, hidden=10, layers=3),
}


@torch.no_grad()
def model_of(spec: ModelSpec) -> torch.nn.Module:
    torch.manual_seed(0)
    model = build(spec, 40, 1).double().eval()
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.3)  # biases of GPT-2 begin at zero
    return model


@torch.no_grad()
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("start", [1, 4])
def test_branching_contexts_equal_whole_sequences(kind, start):
    """One context grows, splits into many, shrinks to one and splits again; every step is the whole
    forward pass.
    """
    model = model_of(SPECS[kind])
    source = torch.Generator().manual_seed(1)
    state = model.start(start)
    ids = torch.zeros(start, 0, dtype=torch.int64)
    sizes = [start, start, 3, 7, 20, 5, 1, 1, 6, 2, 9]
    for size in sizes:
        pick = (
            torch.randint(0, len(ids), (size,), generator=source)
            if ids.shape[1]
            else torch.arange(start)
        )
        tokens = torch.randint(0, 40, (len(pick),), generator=source)
        hidden, state = model.advance(model.take(state, pick), tokens)
        ids = torch.cat([ids[pick], tokens[:, None]], 1)
        torch.testing.assert_close(hidden, model.hidden(ids)[:, -1], rtol=0, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("kind", SPECS)
def test_a_state_outlives_what_grew_out_of_it(kind):
    model = model_of(SPECS[kind])
    tokens = torch.tensor([5, 6, 7])
    _, state = model.advance(model.start(1), torch.tensor([1]))
    first, below = model.advance(model.take(state, torch.zeros(3, dtype=torch.int64)), tokens)
    model.advance(below, tokens)
    again, _ = model.advance(model.take(state, torch.zeros(3, dtype=torch.int64)), tokens)
    assert torch.equal(first, again)


@torch.no_grad()
def test_many_contexts_store_what_they_share_once():
    """Keys and values of GPT-2: one per token read and context that read it, however many contexts
    follow.
    """
    model = model_of(SPECS["gpt2"])
    _, state = model.advance(model.start(1), torch.tensor([1]))
    _, state = model.advance(
        model.take(state, torch.zeros(10, dtype=torch.int64)), torch.arange(10)
    )
    _, state = model.advance(
        model.take(state, torch.arange(10).repeat_interleave(10)), torch.arange(100) % 10
    )
    assert [len(keys) for layers, _ in state for keys, _ in layers[:1]] == [1, 10, 100]
