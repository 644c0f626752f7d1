"""Training where numbers go wrong or are fewer: divergence, examples that are not finite, bfloat16,
adapters, little memory.
"""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from confide.dp.ledger import Ledger
from confide.dp.mechanism import update
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.specs import GPT2Spec
from confide.train import gradients
from tests.processors import needs_bfloat16
from tests.stages.test_train import RECIPE, history, outputs, run, spec, vocabulary

__all__ = ["vocabulary"]


def test_divergence_is_one_clear_error_and_writes_no_model(
    tmp_path: Path, vocabulary: Path
) -> None:
    recipe = RECIPE.model_copy(
        update={"lr": 1e38, "optimizer": "sgd", "exact_clip": None, "schedule": "constant"}
    )
    wild = spec("nonprivate").model_copy(update={"recipe": recipe})
    with pytest.raises(InputError, match=r"recipe\.lr = 1e\+38: diverged before update \d+"):
        run(tmp_path / "a", vocabulary, wild)
    assert not outputs(tmp_path / "a")["model"].exists()


def test_examples_that_are_not_finite_are_left_out_counted_and_reported(
    tmp_path: Path,
    vocabulary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    honest = update.token_losses

    def poisoned(model, batch, half):
        losses = honest(model, batch, half)
        return torch.cat([losses[:1] * torch.nan, losses[1:]])

    monkeypatch.setattr(update, "token_losses", poisoned)
    made = run(tmp_path / "a", vocabulary, spec("dpsgd"))
    counts = [row["nonfinite_gradients"] for row in read_jsonl(made["metrics"])]
    assert 0 < counts[0] < counts[1] < counts[2]
    assert f"{counts[2]} gradients were not finite and left out" in capsys.readouterr().err
    assert all(value.isfinite().all() for value in load_file(made["model"]).values())


@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
def test_without_products_of_bfloat16_all_is_float32(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An LSTM's library has none for them at all."""
    monkeypatch.setattr(gradients, "has_bfloat16", lambda device: False)
    plain = spec("crt")
    if kind == "gpt2":
        model = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=16)
        plain = plain.model_copy(update={"model": model})
    recipe = RECIPE.model_copy(update={"precision": "bfloat16"})
    half = run(tmp_path / "a", vocabulary, plain.model_copy(update={"recipe": recipe}))
    weights = load_file(run(tmp_path / "b", vocabulary, plain)["model"])
    assert all(
        torch.equal(value, weights[name]) for name, value in load_file(half["model"]).items()
    )
    assert '"arithmetic":"bfloat16"' in half["ledger"].read_text()  # as asked, of any machine


@needs_bfloat16
@pytest.mark.parametrize("method", ["nonprivate", "crt"])
def test_bfloat16_trains_float32_weights(method: str, tmp_path: Path, vocabulary: Path) -> None:
    plain = run(tmp_path / "a", vocabulary, spec(method))
    half = spec(method).model_copy(
        update={"recipe": RECIPE.model_copy(update={"precision": "bfloat16"})}
    )
    made = run(tmp_path / "b", vocabulary, half)
    weights = load_file(made["model"])
    reference = load_file(plain["model"])
    assert all(value.dtype == torch.float32 for value in weights.values())
    assert any(not torch.equal(value, reference[name]) for name, value in weights.items())
    assert (
        Ledger.from_file(made["ledger"]).releases() == Ledger.from_file(plain["ledger"]).releases()
    )


def test_adapters_are_trained_and_the_rest_stays(tmp_path: Path, vocabulary: Path) -> None:
    model = GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=16, lora_rank=2)
    made = run(tmp_path / "a", vocabulary, spec("crt").model_copy(update={"model": model}))
    other = run(tmp_path / "b", vocabulary, spec("dpsgd").model_copy(update={"model": model}))
    first = load_file(made["model"])
    second = load_file(other["model"])
    changed = {name for name, value in first.items() if not torch.equal(value, second[name])}
    assert changed and all("lora_" in name for name in changed)


def test_halved_physical_batches_leave_the_ledger_as_it_is(
    tmp_path: Path,
    vocabulary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    roomy = run(tmp_path / "a", vocabulary, spec("crt"))
    honest = update.token_losses

    def scarce(model, batch, half):
        if len(batch) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return honest(model, batch, half)

    monkeypatch.setattr(update, "token_losses", scarce)
    made = run(tmp_path / "b", vocabulary, spec("crt"))
    assert history(made["ledger"]) == history(roomy["ledger"])
    assert "physical batches of at most 2 examples" in capsys.readouterr().err
