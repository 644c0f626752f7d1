"""The mean of the last weights, against weights that are kept update by update."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.models import trainable
from confide.specs import TrainSpec
from confide.train.averages import Averages
from confide.train.job import Job
from confide.types import Step
from tests.stages.killing import killed
from tests.stages.test_train import partition, run, spec, vocabulary

__all__ = ["vocabulary"]


def averaged(method: str, share: float | None) -> TrainSpec:
    wanted = spec(method)
    recipe = wanted.recipe.model_copy(update={"average": share})
    return wanted.model_copy(update={"recipe": recipe})


def weights_of(job: Job) -> list[torch.Tensor]:
    return [weight.detach().double().clone() for weight in trainable(job.model)]


@pytest.mark.parametrize("method", ["dpsgd", "crt", "jft", "redacted"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_it_is_the_mean_of_what_the_last_updates_left(
    method: str,
    share: float,
    tmp_path: Path,
    vocabulary: Path,
    monkeypatch,
) -> None:
    kept: list[list[torch.Tensor]] = []
    noisy: list[bool] = []
    run_step = Job.run

    def remember(self: Job, step: Step) -> None:
        run_step(self, step)
        kept.append(weights_of(self))
        noisy.append(step.noisy)

    plain = run(tmp_path / "plain", vocabulary, averaged(method, None))
    monkeypatch.setattr(Job, "run", remember)
    without = run(tmp_path / "again", vocabulary, averaged(method, None))
    raw = list(kept)
    noised = [place for place, is_noisy in enumerate(noisy) if is_noisy]
    reckoned = noised or list(range(len(raw)))
    first = reckoned[-max(1, round(share * len(reckoned)))]
    kept.clear()
    made = run(tmp_path / "mean", vocabulary, averaged(method, share))
    assert without["model"].read_bytes() == plain["model"].read_bytes()
    wanted = [torch.stack(tensors).mean(0) for tensors in zip(*raw[first:], strict=True)]
    assert all(
        torch.allclose(one, other, rtol=1e-6) for one, other in zip(kept[-1], wanted, strict=False)
    )
    stored = load_file(made["model"])
    assert sum(weight.numel() for weight in stored.values()) > 0
    before = Ledger.from_file(plain["ledger"])
    after = Ledger.from_file(made["ledger"])
    assert before.releases() == after.releases()
    assert before.states(updates_only=True) == after.states(updates_only=True)


def test_settings_tell_the_mean_of_one_update_from_none() -> None:
    shares = [averaged("jft", share).recipe.model_dump().get("average") for share in (None, 0.0)]
    assert shares == [None, 0.0]


@pytest.mark.parametrize("killed_after", [3, 11])
def test_a_killed_job_goes_on_to_the_same_mean(
    killed_after: int,
    tmp_path: Path,
    vocabulary: Path,
) -> None:
    wanted = averaged("crt", 0.8)
    whole = run(tmp_path / "whole", vocabulary, wanted)
    killed(killed_after, lambda: run(tmp_path / "killed", vocabulary, wanted))
    resumed = run(tmp_path / "killed", vocabulary, wanted)
    assert resumed["model"].read_bytes() == whole["model"].read_bytes()
    assert resumed["ledger"].read_bytes() == whole["ledger"].read_bytes()


def test_without_it_nothing_is_added_up():
    model = torch.nn.Linear(3, 2)
    averages = Averages(model, updates={True: 5, False: 5}, share=None)
    before = [weight.clone() for weight in model.parameters()]
    for done in range(1, 11):
        averages.add(done, noisy=done > 5)
    assert averages.state() == {}
    assert all(
        torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=False)
    )


def test_training_as_published_has_none(tmp_path: Path, vocabulary: Path) -> None:
    wanted = averaged("selective", 0.5)
    recipe = wanted.recipe.model_copy(update={"private_state": "published"})
    with pytest.raises(InputError, match="is not there for training as published"):
        run(tmp_path, vocabulary, wanted.model_copy(update={"recipe": recipe}), partition())


def test_settings_without_it_have_the_digest_that_they_had():
    assert "average" not in averaged("crt", None).model_dump_json()
    assert '"average":0.5' in averaged("crt", 0.5).model_dump_json()
