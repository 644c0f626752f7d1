"""Noised updates that go by what exact ones showed: ledgers stay as they are, and jobs resume."""

from pathlib import Path
from typing import Any

import pytest

from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.specs import TrainSpec
from tests.stages.killing import killed
from tests.stages.test_train import partition, run, spec, vocabulary

__all__ = ["vocabulary"]

WAYS: dict[str, dict[str, Any]] = {
    "preconditioned": {"precondition": True},
    "spectral": {"noisy_filter": "spectral"},
    "subspace": {"noisy_filter": "subspace", "noisy_rank": 3},
    "both": {"precondition": True, "noisy_filter": "spectral"},
}


def refined(method: str, **options: Any) -> TrainSpec:
    wanted = spec(method)
    recipe = wanted.recipe.model_copy(update=options)
    return wanted.model_copy(update={"recipe": recipe})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["crt", "jft"])
def test_weights_change_and_what_is_claimed_does_not(
    way: str, method: str, tmp_path: Path, vocabulary: Path
) -> None:
    plain = run(tmp_path / "plain", vocabulary, refined(method))
    made = run(tmp_path / "refined", vocabulary, refined(method, **WAYS[way]))
    assert made["model"].read_bytes() != plain["model"].read_bytes()
    first = Ledger.from_file(plain["ledger"])
    second = Ledger.from_file(made["ledger"])
    assert first.releases() == second.releases()
    assert first.states(updates_only=True) == second.states(updates_only=True)


@pytest.mark.parametrize("way", ["preconditioned", "subspace"])
def test_updates_without_an_exact_one_before_stay_as_they_are(
    way: str, tmp_path: Path, vocabulary: Path
) -> None:
    plain = run(tmp_path / "plain", vocabulary, refined("dpsgd"))
    made = run(tmp_path / "refined", vocabulary, refined("dpsgd", **WAYS[way]))
    assert made["model"].read_bytes() == plain["model"].read_bytes()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("killed_after", [3, 11])
def test_a_killed_job_goes_on_to_the_same_weights(
    way: str, killed_after: int, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = refined("crt", **WAYS[way])
    whole = run(tmp_path / "whole", vocabulary, wanted)
    killed(killed_after, lambda: run(tmp_path / "killed", vocabulary, wanted))
    resumed = run(tmp_path / "killed", vocabulary, wanted)
    assert resumed["model"].read_bytes() == whole["model"].read_bytes()
    assert resumed["ledger"].read_bytes() == whole["ledger"].read_bytes()


@pytest.mark.parametrize("way", WAYS)
def test_training_as_published_has_none(way: str, tmp_path: Path, vocabulary: Path) -> None:
    wanted = refined("selective", private_state="published", **WAYS[way])
    with pytest.raises(InputError, match="is not there for training as published"):
        run(tmp_path, vocabulary, wanted, partition())


def test_a_span_of_gradients_as_they_are_is_none_of_scaled_ones(
    tmp_path: Path, vocabulary: Path
) -> None:
    wanted = refined("crt", precondition=True, noisy_filter="subspace")
    with pytest.raises(InputError, match=r"leave out recipe\.precondition"):
        run(tmp_path, vocabulary, wanted, partition())


def test_settings_without_them_have_the_digest_that_they_had() -> None:
    written = refined("crt").model_dump_json()
    assert not any(key in written for key in ("precondition", "noisy_filter", "noisy_rank"))
    assert '"noisy_rank":16' in refined("crt", noisy_filter="subspace").model_dump_json()
