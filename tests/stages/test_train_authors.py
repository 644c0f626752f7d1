"""Author-level DP: one clipped mean per author, Poisson batches of authors, noise for them; and
noise in name only.
"""

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from scipy import stats
from torch import Tensor, nn

from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.dp.mechanism.authors import authors_of
from confide.dp.mechanism.randomness import Stream
from confide.errors import InputError
from confide.models import build
from confide.runtime.memory import Budget
from confide.specs import PrivacySpec, TrainSpec
from confide.train import batches as reading
from confide.train.job import Job
from confide.types import Partition, Step, View
from tests.stages.killing import killed
from tests.stages.test_train import RECIPE, partition, run, spec, vocabulary

__all__ = ["vocabulary"]

BOUND = 0.05
AUTHORS = 12
PRIVACY = PrivacySpec(noise_multiplier=0.8, max_grad_norm=BOUND, unit="author")
STEP = Step(view="original", pool="all", noisy=True, unit="author")


def written(data: Partition | None = None) -> Partition:
    """48 training points of 12 authors: 20 by the first, 2 or 3 by each of the others."""
    data = data or partition()
    return replace(
        data,
        owner=np.where(np.arange(60) < 20, 0, 1 + np.arange(60) % (AUTHORS - 1)).astype(np.int32),
    )


def asked(
    method: str = "dpsgd", expected: int = 4, most: int | None = 32, **changes: Any
) -> TrainSpec:
    recipe = RECIPE.model_copy(update={"noisy_batch_size": expected, "author_points": most})
    return spec(method, privacy=PRIVACY).model_copy(update={"recipe": recipe} | changes)


def job_of(data: Partition, noise: float = 0.0, **changes: Any) -> Job:
    """A job in float64 whose gradients differ between points and are mostly clipped."""
    torch.manual_seed(0)
    wanted = asked(**changes)
    wanted = wanted.model_copy(
        update={"model": wanted.model.model_copy(update={"dropout": 0.0}), "device": "cpu"}
    )
    model = build(wanted.model, 270, 1).double().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return Job(
        wanted,
        data,
        model,
        noise_multiplier=noise,
        updates={True: 50, False: 0},
        device="cpu",
    )


def flat(tensors: Any) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def own_gradient(model: nn.Module, text: np.ndarray) -> Tensor:
    """Of the mean loss of one text by F.cross_entropy, alone and unpadded."""
    model = copy.deepcopy(model)
    inputs = torch.tensor([[1, *text.tolist()]])
    targets = torch.tensor([*text.tolist(), 1])
    loss = F.cross_entropy(
        F.linear(model.hidden(inputs), model.head.weight, model.head.bias)[0], targets
    )
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def of_author(model: nn.Module, view: View, points: np.ndarray) -> Tensor:
    """The mean over an author's points, clipped."""
    mean = torch.stack([own_gradient(model, view[point]) for point in points]).mean(0)
    return mean * min(1.0, BOUND / float(mean.norm()))


def released(
    job: Job, monkeypatch: pytest.MonkeyPatch, chosen: list[int], step: Step = STEP
) -> Tensor:
    """The gradient of one noisy update for which these authors (or points) are drawn, times the
    expected number.
    """
    monkeypatch.setattr(reading, "poisson", lambda *_: torch.tensor(chosen, dtype=torch.int64))
    job.gradients.noisy(step)
    return (
        flat(parameter.grad for parameter in job.model.parameters()).clone()
        * job.spec.recipe.noisy_batch_size
    )


@pytest.mark.parametrize(
    "size", [3, 6, 100]
)  # the first author's 20 points take several passes, or one
@pytest.mark.parametrize("most", [None, 2])
def test_an_update_is_that_of_a_loop_over_authors(
    size: int, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written()
    given = []
    job = job_of(data, most=most)
    monkeypatch.setattr(job.batches, "budget", lambda step: Budget(size))
    usual = reading.drawn
    monkeypatch.setattr(reading, "drawn", lambda *a: given.append(usual(*a)) or given[-1])
    chosen = [0, 3, 4, 11]
    found = released(job, monkeypatch, chosen)
    (points,) = given
    for author, own in zip(chosen, points, strict=True):
        everything = np.flatnonzero((data.owner == author) & (data.split == 0))
        assert set(own.tolist()) <= set(everything.tolist()) and len(own) == min(
            len(everything), most or 99
        )
    expected = [of_author(job.model, data.original, own) for own in points]
    assert sum(float(one.norm()) > 0.99 * BOUND for one in expected) >= 3  # clipping matters
    torch.testing.assert_close(found, sum(expected), rtol=1e-9, atol=1e-12)
    by_points = released(
        job,
        monkeypatch,
        [int(point) for point in np.concatenate(points)],
        replace(STEP, unit="point"),
    )
    assert (
        by_points - found
    ).norm() > BOUND  # negative control: clipped point by point it is something else


def test_an_author_moves_the_sum_by_at_most_the_bound_and_another_in_his_place_by_twice_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = written()
    everybody = list(range(AUTHORS))
    whole = released(job_of(data, most=None), monkeypatch, everybody)
    moved = []
    for author in (0, 5):
        rest = released(
            job_of(data, most=None), monkeypatch, [other for other in everybody if other != author]
        )
        assert (whole - rest).norm() <= BOUND * (1 + 1e-9)
        for shift in (1, 40, 97):
            ids = data.original.ids.copy()
            own = np.repeat(data.owner == author, np.diff(data.original.starts))
            ids[own] = 3 + (ids[own] - 3 + shift) % 257
            view = View(ids, data.original.starts, data.original.private)
            other = released(
                job_of(replace(data, original=view), most=None), monkeypatch, everybody
            )
            moved.append(float((whole - other).norm()))
    assert (
        all(0 < one <= 2 * BOUND * (1 + 1e-9) for one in moved) and max(moved) > BOUND
    )  # more than adding him would


def test_batches_are_poisson_samples_of_authors_at_the_rate_of_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prolific authors are drawn no more often than others, and independently of them."""
    job = job_of(written())
    rounds = 2000
    given = []
    monkeypatch.setattr(
        reading, "drawn", lambda authors, chosen, *_: given.append(chosen.numpy()) or []
    )
    for _ in range(rounds):
        job.batches.pieces(STEP, job.batches.poisson(STEP))
    rate = job.history.release(STEP).sample_rate
    assert rate == 4 / AUTHORS == job.batches.sample_rate(STEP)
    member = np.zeros((rounds, AUTHORS), bool)
    for row, chosen in zip(member, given, strict=True):
        row[chosen] = True
    law = stats.binom(rounds, rate)
    assert (np.abs(member.sum(0) - law.mean()) < 4 * law.std()).all()
    observed = np.bincount(member.sum(1), minlength=AUTHORS + 1)[: AUTHORS - 3]
    expected = stats.binom(AUTHORS, rate).pmf(np.arange(AUTHORS - 3))
    assert stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue > 1e-4
    assert (member.sum(1) == 0).any()


def test_a_step_without_authors_is_noise_and_counts() -> None:
    data = written()
    job = job_of(data, noise=2.0, expected=1)
    before = None
    job.spec = job.spec.model_copy(
        update={"recipe": job.spec.recipe.model_copy(update={"noisy_batch_size": 1})}
    )
    sizes = []
    for _ in range(12):
        usual = job.batches.pieces
        job.batches.pieces = lambda step, chosen, usual=usual: (
            sizes.append(len(chosen)) or usual(step, chosen)
        )
        before = flat(job.model.parameters())
        job.run(STEP)
        job.batches.pieces = usual
        assert not torch.equal(before, flat(job.model.parameters()))
        grad = flat(parameter.grad for parameter in job.model.parameters())
        if not sizes[-1]:
            assert abs(float(grad.std()) / (2.0 * BOUND) - 1) < 4 / math.sqrt(2 * len(grad))
    assert 0 in sizes and max(sizes) > 0
    (release,) = job.history.ledger.releases()
    assert (
        release.count == 12 and release.step.unit == "author" and release.sample_rate == 1 / AUTHORS
    )


def test_calibrated_noise_keeps_the_target_at_the_rate_of_authors(
    tmp_path: Path, vocabulary: Path
) -> None:
    target = PrivacySpec(epsilon=2.0, delta=1e-3, max_grad_norm=BOUND, unit="author")
    made = run(tmp_path, vocabulary, asked(privacy=target), written())
    (release,) = Ledger.from_file(made["ledger"]).releases()[:1]
    noisy = [one for one in Ledger.from_file(made["ledger"]).releases() if one.step.noisy]
    assert release.sample_rate == 4 / AUTHORS and {one.step.unit for one in noisy} == {"author"}
    assert sum(one.count for one in noisy) == round(
        RECIPE.epochs * AUTHORS / 4
    )  # passes over authors, not over points
    assert 1.9 < epsilon(noisy, 1e-3, "replace_one") <= 2.0


@pytest.mark.parametrize("method", ["dpsgd", "crt"])
def test_how_many_points_authors_wrote_stands_nowhere(
    method: str, tmp_path: Path, vocabulary: Path
) -> None:
    """One with more of them, or fewer, is a neighbour."""
    made = run(tmp_path, vocabulary, asked(method, expected=3), written())
    (data,) = Ledger.from_file(made["ledger"]).events("data")
    noised = "all" if method == "dpsgd" else "private"
    assert data["authors"] == {noised: len(authors_of(written())[noised])}
    exact_pools = {} if method == "dpsgd" else {"public": len(written().pool("public"))}
    assert data["pools"] == exact_pools


def test_lines_of_points_are_as_they_were_and_those_of_authors_say_so(
    tmp_path: Path, vocabulary: Path
) -> None:
    points = run(tmp_path / "points", vocabulary, spec("dpsgd"), written())["ledger"].read_text()
    authors = run(tmp_path / "authors", vocabulary, asked(), written())["ledger"].read_text()
    assert '"unit"' not in points and '"unit":"author"' in authors
    assert Ledger.load(authors).dump() == authors


@pytest.mark.parametrize("killed_after", [1, 5])
def test_killed_job_resumes_to_the_same_bytes(
    killed_after: int, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = asked(most=2, checkpoint_every=2)
    whole = run(tmp_path / "whole", vocabulary, wanted, written())
    killed(killed_after, lambda: run(tmp_path / "killed", vocabulary, wanted, written()))
    resumed = run(tmp_path / "killed", vocabulary, wanted, written())
    for name in ("model", "ledger"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()


@pytest.mark.parametrize("method", ["crt", "schedule", "jft"])
def test_other_methods_make_noise_for_authors_too(
    method: str, tmp_path: Path, vocabulary: Path
) -> None:
    made = run(tmp_path, vocabulary, asked(method, expected=3), written())
    noisy = [one for one in Ledger.from_file(made["ledger"]).releases() if one.step.noisy]
    count = len(authors_of(written())[noisy[0].step.pool])
    assert {(one.step.unit, one.sample_rate) for one in noisy} == {("author", 3 / count)}


@pytest.mark.parametrize(
    ("wanted", "data", "message"),
    [
        (
            asked(expected=13),
            written(),
            r"noisy_batch_size = 13: exceeds the 12 authors of the pool 'all'",
        ),
        (
            asked(),
            replace(written(), owner=np.full(60, -1, np.int32)),
            r"privacy\.unit = 'author': needs an author of every training point, and 48 have none",
        ),
        (
            asked("selective"),
            written(),
            r"privacy\.unit = 'author': selective tells the tokens of a point apart",
        ),
    ],
)
def test_what_cannot_be_is_one_clear_error(
    wanted: TrainSpec, data: Partition, message: str, tmp_path: Path, vocabulary: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, wanted, data)


def test_noise_in_name_only_trains_as_clipping_alone_does(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    privacy = PrivacySpec(noise_multiplier=1, max_grad_norm=0.5)
    less = {"noise_multiplier": 1e-20}  # less than a specification may ask for
    wanted = spec("dpsgd", privacy=privacy.model_copy(update=less))
    made = []
    for name in ("tiny", "none"):
        made.append(run(tmp_path / name, vocabulary, wanted))
        monkeypatch.setattr(Stream, "add", lambda self, values, deviation: values)
    tiny, none = (load_file(paths["model"]) for paths in made)
    assert all(torch.allclose(tiny[name], none[name], rtol=1e-5, atol=1e-7) for name in none)
    (release, *_) = Ledger.from_file(made[0]["ledger"]).releases()
    assert release.noise_multiplier == 1e-20 and release.step.noisy
