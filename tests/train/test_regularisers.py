"""Regularised updates: their gradient is that of the formulas, and they do to the states what they
are for.
"""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.models import build
from confide.models.batches import Batch
from confide.runtime.memory import Budget
from confide.specs import GPT2Spec, LSTMSpec, RecipeSpec, TrainSpec
from confide.train.job import Job
from confide.train.regularisers import Adversarial, Triplet, regulariser_of
from confide.train.regularisers.update import Rows, Training
from confide.types import Partition, Step, View
from tests.processors import needs_bfloat16
from tests.terms import TERMS

VOCAB = 60
BOS = 1
MODELS = {
    "lstm": LSTMSpec(kind="lstm", embedding=6, hidden=6, layers=2),
    "wide": LSTMSpec(kind="lstm", embedding=16, hidden=16),
    "gpt2": GPT2Spec(kind="gpt2", layers=1, width=8, heads=2, positions=32),
}


def corpus(
    points: int = 24, authors: int = 3, nobody: int = 0, own: int = 0, seed: int = 0
) -> Partition:
    """Texts by authors in turn, the first of them by `nobody`; `own`: each author has so many
    words, and no others.
    """
    rng = np.random.default_rng(seed)
    owner = np.where(np.arange(points) < nobody, -1, np.arange(points) % authors).astype(np.int32)
    lengths = rng.integers(3, 9, points)
    texts = [
        3 + author * own + rng.integers(0, own or VOCAB - 3, n)
        for author, n in zip(owner, lengths, strict=True)
    ]
    starts = np.concatenate([[0], lengths.cumsum()])
    view = View(np.concatenate(texts).astype(np.int32), starts, np.zeros(starts[-1], bool))
    flags = np.zeros(points, bool)
    domain = np.full(points, -1, np.int32)
    return Partition(view, view, view.private, flags, flags, flags.astype(np.uint8), domain, owner)


def job_of(data: Partition, kind: str, model: str = "lstm", **recipe: Any) -> Job:
    """A job whose regulariser has the default settings but for `recipe`."""
    settings = {
        "lr": 0.01,
        "schedule": "constant",
        "batch_size": 8,
        "regulariser_weight": 0.5,
        "discriminator_hidden": 32,
    }
    spec = TrainSpec(
        data=TERMS,
        run="a/g0-s0",
        method=kind,
        model=MODELS[model],
        recipe=RecipeSpec(**settings | recipe),
        device="cpu",
    )
    torch.manual_seed(0)
    network = build(spec.model, VOCAB, BOS).train()
    regulariser = regulariser_of({kind}, spec, data, network.head.weight.shape[1], "cpu")
    return Job(
        spec,
        data,
        network,
        noise_multiplier=0.0,
        updates={True: 0, False: 100},
        device="cpu",
        regulariser=regulariser,
    )


def one_by_one(model: nn.Module, view: View, points: np.ndarray) -> tuple[Tensor, Tensor]:
    """Mean token loss () and last states (B, d), each text alone and unpadded."""
    losses = []
    states = []
    for point in points:
        text = torch.from_numpy(view[point].astype(np.int64))
        hidden = model.hidden(torch.cat([torch.tensor([BOS]), text])[None])[0]
        logits = F.linear(hidden, model.head.weight, model.head.bias)
        losses.append(
            F.cross_entropy(logits, torch.cat([text, torch.tensor([BOS])]), reduction="none")
        )
        states.append(hidden[-1])
    return torch.cat(losses).mean(), torch.stack(states)


def assert_gradient(model: nn.Module, loss: Tensor) -> None:
    expected = torch.autograd.grad(loss, list(model.parameters()))
    for parameter, grad in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, grad, rtol=1e-9, atol=1e-12)
    assert any(grad.abs().max() > 1e-3 for grad in expected)


@pytest.mark.parametrize("physical", [3, 8])
@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
def test_adversarial_gradient_is_that_of_the_formula(kind: str, physical: int) -> None:
    """The discriminator moves first, by its own loss on the same states; the model then sees it as
    a constant.
    """
    data = corpus(nobody=2)
    points = np.arange(8)
    weight = 3.0
    job = job_of(data, "adversarial", kind)
    model = job.model.double()
    regulariser = job.regulariser
    regulariser.discriminator.double()
    before = copy.deepcopy(regulariser.discriminator)
    pieces = [
        regulariser.rows(data.original, piece, BOS)
        for piece in np.split(points, range(physical, 8, physical))
    ]
    found = regulariser.gradient(Training(model, weight, None, Budget(physical), False), pieces)

    loss, states = one_by_one(model, data.original, points)
    states = states[2:]
    owner = torch.from_numpy(data.owner[2:8].astype(np.int64))
    optimizer = torch.optim.Adam(before.parameters(), lr=1e-3)
    (-before(states.detach()).log_softmax(1)[torch.arange(6), owner]).mean().backward()
    optimizer.step()
    for own, other in zip(regulariser.discriminator.parameters(), before.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-12)
    first = regulariser.discriminator[0]
    second = regulariser.discriminator[2]
    privacy = torch.zeros((), dtype=torch.float64)
    for state in states:
        scores = second.weight @ (first.weight @ state + first.bias).clamp(min=0) + second.bias
        privacy = privacy - sum(
            torch.log(torch.exp(scores[c]) / torch.exp(scores).sum()) for c in range(3)
        ) / 3 / len(states)
    torch.testing.assert_close(found, loss.detach())
    assert_gradient(model, loss + weight * privacy)
    row = regulariser.metrics()
    assert row["regulariser"] == pytest.approx(float(privacy.detach())) and float(
        privacy.detach()
    ) > math.log(3)


@pytest.mark.parametrize("physical", [3, 8])
@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
def test_triplet_gradient_is_that_of_equation_3(kind: str, physical: int) -> None:
    """Plus mean squared difference for other authors, minus for the same; states of GPT-2 at root
    mean square 1.
    """
    data = corpus(nobody=2)
    points = np.arange(8)
    weight = 3.0
    job = job_of(data, "triplet", kind)
    model = job.model.double()
    regulariser = job.regulariser
    source = job.regulariser.pairs.source
    start = source.get_state()
    pieces = np.split(points, range(physical, 8, physical))
    rows = [regulariser.rows(data.original, piece, BOS) for piece in pieces]
    found = regulariser.gradient(Training(model, weight, None, Budget(physical), False), rows)

    source.set_state(start)
    partners = np.concatenate([regulariser.pairs.partners(piece) for piece in pieces])
    loss, states = one_by_one(model, data.original, points)
    others = one_by_one(model, data.original, partners)[1]
    privacy = torch.zeros((), dtype=torch.float64)
    if kind == "gpt2":
        states, others = (
            part / part.square().mean(1, keepdim=True).sqrt() for part in (states, others)
        )
    kinds = set()
    for row in range(2, 8):
        same = data.owner[points[row]] == data.owner[partners[row]]
        distance = (states[row] - others[row]).square().sum() / states.shape[1]
        privacy = privacy + (-distance if same else distance) / 6
        kinds.add(bool(same))
    assert kinds == {True, False}
    torch.testing.assert_close(found, loss.detach())
    assert_gradient(model, loss + weight * privacy)
    assert regulariser.metrics()["regulariser"] == pytest.approx(float(privacy.detach()))


def test_the_privacy_loss_is_at_least_log_m_which_a_uniform_answer_reaches() -> None:
    regulariser = job_of(corpus(authors=5), "adversarial").regulariser
    states = torch.randn(200, 6)
    with torch.no_grad():
        assert (regulariser.uniformity(20 * states) > math.log(5) + 1e-4).all()
        regulariser.discriminator[2].weight.zero_()
        regulariser.discriminator[2].bias.fill_(0.7)
        torch.testing.assert_close(regulariser.uniformity(states), torch.full((200,), math.log(5)))


def rows_of(authors: list[int], others: list[int]) -> Rows:
    batch = Batch(
        torch.zeros(len(authors), 1, dtype=torch.int64),
        torch.zeros(len(authors), 1, dtype=torch.int64),
    )
    return Rows(batch, torch.tensor(authors), batch, torch.tensor(others))


def test_other_authors_are_pulled_together_and_the_same_pushed_apart() -> None:
    triplet = job_of(corpus(), "triplet").regulariser
    states = torch.tensor([[0.5, 0.0], [0.0, 0.0]])
    assert float(triplet.distance(states, rows_of([0], [1]))) == pytest.approx(0.125)
    assert float(triplet.distance(states, rows_of([0], [0]))) == pytest.approx(-0.125)
    assert float(triplet.distance(states, rows_of([-1], [-1]))) == 0
    triplet.bounded = False  # opposite states of any length
    assert float(
        triplet.distance(torch.tensor([[30.0, 40.0], [-3.0, -4.0]]), rows_of([0], [1]))
    ) == pytest.approx(4)


def test_the_discriminator_learns_authors_that_can_be_told_and_no_others() -> None:
    source = torch.Generator().manual_seed(0)
    centres = 3 * torch.eye(4, 6)
    for told, low, high in ((True, 0.95, 1.0), (False, 0.15, 0.35)):
        regulariser = Adversarial(np.arange(4), 6, 32, 1e-2, source, "cpu")
        hits = []
        for _ in range(150):
            authors = torch.randint(4, (64,), generator=source)
            noise = torch.randn(64, 6, generator=source)
            hits.append(float(regulariser.learn(noise + 2 * centres[authors] * told, authors)[0]))
        assert low < sum(hits[-50:]) / (64 * 50) <= high


def trained(
    kind: str, weight: float, epochs: int = 12
) -> tuple[Job, list[dict[str, float | None]]]:
    data = corpus(points=160, authors=4, own=6)
    job = job_of(
        data, kind, "wide", lr=0.03, batch_size=16, regulariser_weight=weight, discriminator_lr=1e-2
    )
    rows = []
    for _ in range(epochs):
        for _ in range(10):
            job.run(Step(view="original", pool="all", noisy=False, regulariser=kind))
        rows.append(job.regulariser.metrics())
    return job, rows


def test_adversarial_training_makes_the_discriminator_guess() -> None:
    """Every author has words of his own: without the regulariser the discriminator knows them
    all.
    """
    free = trained("adversarial", 0.0)[1]
    held = trained("adversarial", 5.0)[1]
    assert free[-1]["discriminator_accuracy"] > 0.95
    assert held[-1]["discriminator_accuracy"] < 0.6
    assert math.log(4) < held[-1]["regulariser"] < math.log(4) + 0.2 < free[-1]["regulariser"]


def test_triplet_training_makes_authors_overlap() -> None:
    """Distances between authors, relative to those within, fall."""
    ratios = []
    for weight in (0.0, 5.0):
        job, rows = trained("triplet", weight)
        assert (rows[-1]["regulariser"] is None) == (weight == 0)
        with torch.no_grad():
            states = one_by_one(job.model.eval(), job.batches.partition.original, np.arange(160))[1]
        distances = torch.cdist(states, states)
        same = torch.arange(160)[:, None] % 4 == torch.arange(160) % 4
        apart = ~torch.eye(160, dtype=torch.bool)
        ratios.append(float(distances[~same].mean() / distances[same & apart].mean()))
    assert ratios[0] > 3 and ratios[1] < 1.6


def test_texts_without_an_author_are_read_and_not_regularised() -> None:
    data = corpus(nobody=8)
    for kind in ("adversarial", "triplet"):
        job = job_of(data, kind, regulariser_weight=100.0)
        plain = job_of(data, kind, regulariser_weight=0.0)
        for one in (job, plain):
            rows = one.regulariser.rows(data.original, np.arange(8), BOS)
            one.regulariser.gradient(
                Training(one.model, one.spec.recipe.regulariser_weight, None, Budget(32), False),
                [rows],
            )
        for own, other in zip(job.model.parameters(), plain.model.parameters(), strict=True):
            torch.testing.assert_close(own.grad, other.grad)
        assert job.regulariser.metrics()["regulariser"] is None


def test_a_pass_holds_no_more_points_than_the_bound() -> None:
    rows = rows_of([0] * 9, [1] * 9)
    assert [len(piece) for piece in rows.split(6)] == [3, 3, 3] and len(rows.split(1)) == 9
    alone = Rows(rows.batch, rows.authors)
    assert [len(piece) for piece in alone.split(6)] == [6, 3]


@needs_bfloat16
def test_bfloat16_gives_the_same_gradient_roughly() -> None:
    data = corpus()
    for kind in ("adversarial", "triplet"):
        found = []
        for half in (False, True):
            job = job_of(data, kind)
            rows = [job.regulariser.rows(data.original, np.arange(8), BOS)]
            job.regulariser.gradient(Training(job.model, 1.0, None, Budget(32), half), rows)
            found.append(
                torch.cat([parameter.grad.flatten() for parameter in job.model.parameters()])
            )
        assert float((found[0] - found[1]).norm() / found[0].norm()) < 0.05


def test_nothing_is_built_where_no_step_asks() -> None:
    spec = job_of(corpus(), "triplet").spec
    assert regulariser_of({"none"}, spec, corpus(), 6, "cpu") is None
    assert isinstance(regulariser_of({"none", "triplet"}, spec, corpus(), 6, "cpu"), Triplet)
