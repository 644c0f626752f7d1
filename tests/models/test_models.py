"""Models against reading token by token; files come back bit for bit."""

from pathlib import Path

import pytest
import torch
from torch import nn

from confide.errors import InputError
from confide.models import build, load, load_weights, save
from confide.specs import GPT2Spec, LSTMSpec

SPECS = {
    "lstm": LSTMSpec(kind="lstm", embedding=12, hidden=16, layers=2),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=16, heads=2, positions=32),
}


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build(SPECS[name], 50, bos=1).eval()


@pytest.mark.parametrize("name", SPECS)
def test_token_by_token_equals_the_whole_sequence(name: str) -> None:
    model = model_of(name)
    ids = torch.randint(0, 50, (3, 9))
    state = model.start(3)
    hidden = []
    for position in range(9):
        step, state = model.advance(state, ids[:, position])
        hidden.append(step)
    torch.testing.assert_close(torch.stack(hidden, 1), model.hidden(ids), rtol=1e-4, atol=1e-6)


def test_gpt2_is_that_of_transformers() -> None:
    """Padded or not: what is behind an example's end changes nothing before it."""
    model = model_of("gpt2")
    ids = torch.randint(0, 50, (3, 9))
    theirs = model.network.transformer(input_ids=ids).last_hidden_state
    torch.testing.assert_close(model.hidden(ids), theirs, rtol=1e-4, atol=1e-6)
    ends = torch.tensor([8, 4, 2])
    padded = model.hidden(ids, ends=ends)
    for row, end in enumerate(ends.tolist()):
        expected = theirs[row, : end + 1]
        torch.testing.assert_close(padded[row, : end + 1], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SPECS)
def test_rows_of_a_state(name: str) -> None:
    model = model_of(name)
    ids = torch.randint(0, 50, (4, 3))
    state = model.start(4)
    for position in range(2):
        _, state = model.advance(state, ids[:, position])
    order = torch.tensor([2, 0, 2])
    expected, _ = model.advance(state, ids[:, 2])
    picked, _ = model.advance(model.take(state, order), ids[order, 2])
    torch.testing.assert_close(picked, expected[order], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SPECS)
def test_future_tokens_do_not_matter(name: str) -> None:
    model = model_of(name)
    ids = torch.randint(0, 50, (2, 8))
    other = ids.clone()
    other[:, 5:] = (other[:, 5:] + 7) % 50
    assert torch.equal(model.hidden(ids)[:, :5], model.hidden(other)[:, :5])


@pytest.mark.parametrize("name", SPECS)
def test_saved_model_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    ids = torch.randint(0, 50, (2, 8))
    save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    assert torch.equal(load(tmp_path)(ids), model(ids))


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    save(model_of("lstm"), tmp_path / "model.safetensors", tmp_path / "config.json")
    save(build(SPECS["lstm"], 60, 1), tmp_path / "model.safetensors", tmp_path / "other.json")
    with pytest.raises(InputError, match="other tensors"):
        load(tmp_path)


def test_truncated_weights_are_one_clear_error(tmp_path: Path) -> None:
    save(model_of("lstm"), tmp_path / "model.safetensors", tmp_path / "config.json")
    data = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="safetensors"):
        load(tmp_path)


def test_pretrained_folder_keeps_weights_and_gets_mean_rows_for_new_tokens(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    original = GPT2LMHeadModel(
        GPT2Config(vocab_size=40, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    )
    original.save_pretrained(tmp_path / "hub", safe_serialization=True)
    model = build(GPT2Spec(kind="gpt2", pretrained=str(tmp_path / "hub")), vocab_size=43, bos=1)
    weight = model.head.weight
    assert torch.equal(weight[:40], original.lm_head.weight)
    torch.testing.assert_close(weight[40:], original.lm_head.weight.mean(0).expand(3, -1))
    assert weight is model.network.transformer.wte.weight
    save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    ids = torch.randint(0, 43, (2, 5))
    assert torch.equal(load(tmp_path)(ids), model.eval()(ids))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", SPECS)
def test_weights_that_are_not_finite_are_refused_by_name(
    name: str, bad: float, tmp_path: Path
) -> None:
    model = model_of(name)
    save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    load(tmp_path)
    last, parameter = list(model.named_parameters())[-1]
    with torch.no_grad():
        parameter.view(-1)[-1] = bad
    save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    with pytest.raises(
        InputError, match=rf"model\.safetensors: tensor {last} holds a number that is not finite"
    ):
        load(tmp_path)
    with pytest.raises(InputError, match="not finite"):
        load_weights(model_of(name), tmp_path / "model.safetensors")


def test_a_pretrained_model_with_numbers_that_are_not_finite_is_refused_by_name(
    tmp_path: Path,
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    network = GPT2LMHeadModel(
        GPT2Config(vocab_size=40, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    )
    network.transformer.wpe.weight.data[12] = torch.nan
    network.save_pretrained(tmp_path / "hub", safe_serialization=True)
    with pytest.raises(
        InputError,
        match=(
            r"model\.pretrained.*tensor transformer\.wpe\.weight holds a number that is not "
            r"finite"
        ),
    ):
        build(GPT2Spec(kind="gpt2", pretrained=str(tmp_path / "hub")), 40, 1)


def test_missing_pretrained_model_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pretrained"):
        build(GPT2Spec(kind="gpt2", pretrained=str(tmp_path / "nowhere")), 40, 1)


def test_a_point_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(InputError, match="32 positions"):
        model_of("gpt2").hidden(torch.zeros(1, 33, dtype=torch.int64))


def test_adapters_alone_are_trained_and_come_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = build(SPECS["gpt2"].model_copy(update={"lora_rank": 2}), 50, bos=1)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert (
        trained and all("lora_" in name for name in trained) and not model.head.weight.requires_grad
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in trained:
                parameter.normal_()
    save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    again = load(tmp_path)
    ids = torch.randint(0, 50, (2, 8))
    assert torch.equal(again(ids), model.eval()(ids))
    state = again.start(2)
    hidden = None
    for position in range(8):
        hidden, state = again.advance(state, ids[:, position])
    torch.testing.assert_close(hidden, again.hidden(ids)[:, -1], rtol=1e-4, atol=1e-5)
