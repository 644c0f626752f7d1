"""Noise that goes by the text, of ATDP and SA-ADP: the updates against naive loops in float64, and
what a ledger with them is worth.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from confide.certify.claims import all_claims
from confide.certify.facts import Facts
from confide.certify.token_claims import token_claims
from confide.dp.accounting.price import epsilon, price
from confide.dp.ledger import Ledger, as_line, check_release, parse_release
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.weighted import by_scores, by_tokens
from confide.models import build
from confide.models.batches import Batch, predicting, unmasked
from confide.models.language_model import LanguageModel
from confide.runtime.memory import Budget
from confide.specs import LSTMSpec
from confide.train.scores import scores
from confide.types import Release, Step, View

DELTA = 8e-5
BOUND = 0.3
SIZE = 8.0
STARTS = np.array([0, 4, 9, 11, 17])
IDS = np.array([5, 6, 7, 8, 9, 5, 5, 10, 11, 4, 4, 6, 12, 13, 5, 14, 15], dtype=np.int32)
PRIVATE = np.array([0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0], dtype=bool)
VIEW = View(IDS, STARTS, PRIVATE)
POINTS = np.arange(4)


@pytest.fixture
def model() -> LanguageModel:
    torch.manual_seed(0)
    return build(LSTMSpec(kind="lstm", embedding=6, hidden=6), 20, bos=1).double()


def naive(model: LanguageModel, keep: np.ndarray | None, end: bool) -> Tensor:
    """The sum of clipped gradients over points, one loss after the other.

    keep (T,): tokens whose losses count, None for all; `end`: whether that of the end token does.
    """
    total = torch.zeros(sum(weight.numel() for weight in model.parameters()), dtype=torch.float64)
    for point in range(4):
        ids = IDS[STARTS[point] : STARTS[point + 1]].tolist()
        kept = [True] * len(ids)
        if keep is not None:
            kept = keep[STARTS[point] : STARTS[point + 1]].tolist()
        logs = model(torch.tensor([[1, *ids]]))[0].log_softmax(1)
        losses = [
            -logs[place, token]
            for place, (token, counts) in enumerate(zip([*ids, 1], [*kept, end], strict=True))
            if counts
        ]
        if not losses:
            continue
        model.zero_grad()
        torch.stack(losses).mean().backward()
        grad = torch.cat([weight.grad.flatten() for weight in model.parameters()])
        total += grad * min(1.0, BOUND / float(grad.norm()))
    return total


def left(model: LanguageModel) -> Tensor:
    return torch.cat([weight.grad.flatten() for weight in model.parameters()]).double()


def weighed(model: LanguageModel, weight: float, noise: float, seed: int = 0) -> Tensor:
    by_tokens(
        PerExampleClipper(model, BOUND),
        private=[predicting(VIEW, POINTS[:3], 1), predicting(VIEW, POINTS[3:], 1)],
        other=[unmasked(VIEW, POINTS, 1)],
        weight=weight,
        noise_multiplier=noise,
        expected_batch_size=SIZE,
        noise=Stream(seed, "noise"),
        budget=Budget(3),
    )
    return left(model)


def scored(model: LanguageModel, of_points: Tensor, noise: float, seed: int = 0) -> Tensor:
    ids = [[1, *IDS[a:b], *[1] * (6 - (b - a))] for a, b in pairwise(STARTS)]
    targets = torch.full((4, 7), -100)
    for point in POINTS:
        text = IDS[STARTS[point] : STARTS[point + 1]]
        targets[point, : len(text) + 1] = torch.tensor([*text, 1])
    by_scores(
        PerExampleClipper(model, BOUND),
        [Batch(torch.tensor(ids), targets)],
        scores=of_points,
        noise_multiplier=noise,
        expected_batch_size=SIZE,
        noise=Stream(seed, "noise"),
        budget=Budget(3),
    )
    return left(model)


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_tokens_are_weighed_and_clipped_apart(model: LanguageModel, weight: float) -> None:
    wanted = weight * naive(model, PRIVATE, end=False)
    wanted += (1 - weight) * naive(model, ~PRIVATE, end=True)
    found = weighed(model, weight, noise=0.0)
    assert float(wanted.norm()) > 0.1
    torch.testing.assert_close(found, wanted / SIZE, rtol=1e-6, atol=1e-9)


def test_noise_is_on_the_private_part_alone(model: LanguageModel) -> None:
    noise = weighed(model, 0.25, noise=2.0) - weighed(model, 0.25, noise=0.0)
    standard = noise / (0.25 * 2.0 * BOUND / SIZE)
    assert stats.kstest(standard.numpy(), "norm").pvalue > 1e-3


def test_noise_of_points_is_scaled_by_their_scores(model: LanguageModel) -> None:
    of_points = torch.tensor([0.5, 1.0, 0.0, 0.25])
    clean = scored(model, of_points, noise=0.0)
    torch.testing.assert_close(clean, naive(model, None, end=True) / SIZE, rtol=1e-6, atol=1e-9)
    noise = scored(model, of_points, noise=2.0) - clean
    deviation = 2.0 * BOUND * math.sqrt(0.5**2 + 1 + 0.25**2) / SIZE
    assert stats.kstest((noise / deviation).numpy(), "norm").pvalue > 1e-3
    assert torch.equal(scored(model, torch.zeros(4), noise=2.0), clean)


def test_noise_that_counts_nothing_moves_its_stream(model: LanguageModel) -> None:
    stream = Stream(0, "noise")
    before = stream.get_state()
    by_scores(
        PerExampleClipper(model, BOUND),
        [],
        scores=torch.zeros(0),
        noise_multiplier=1.0,
        expected_batch_size=SIZE,
        noise=stream,
        budget=Budget(3),
    )
    assert not torch.equal(stream.get_state(), before)
    assert not left(model).any()


def test_scores_are_the_rarity_of_what_was_found_in_trained_points() -> None:
    trained = np.array([0, 1, 3])
    found = [
        (point, int(IDS[place]))
        for point in trained.tolist()
        for place in range(STARTS[point], STARTS[point + 1])
        if PRIVATE[place]
    ]
    kinds = [kind for _, kind in found]
    wanted = np.zeros(4)
    for point in trained.tolist():
        own = [kind for owner, kind in found if owner == point]
        wanted[point] = np.mean([(1 - kinds.count(kind) / len(kinds) + 1 + 1) / 3 for kind in own])
    assert 0 < wanted[0] < 1
    np.testing.assert_allclose(scores(VIEW, trained), wanted)


def release(weighing: str, scale: float = 1.0, count: int = 40) -> Release:
    step = Step(view="original", pool="all", noisy=True, weighing=weighing, noise_scale=scale)
    return Release(
        step=step, sample_rate=0.05, noise_multiplier=2.0 * scale, max_grad_norm=1.0, count=count
    )


REDACTED = Release(step=Step(view="redacted", pool="all", noisy=False, tokens="unmasked"), count=5)
RUNS = {
    "atdp": [REDACTED, release("tokens", 2.0), release("tokens")],
    "sa_adp": [release("scores")],
}


@pytest.mark.parametrize("method", RUNS)
def test_the_papers_number_stands_beside_infinity(method: str) -> None:
    """The printed one is that of plain DP-SGD with the same noise."""
    plain = [
        replace(one, step=Step(view="original", pool="all", noisy=True))
        for one in RUNS[method]
        if one.noisy
    ]
    facts = Facts(releases=RUNS[method], delta=DELTA, gamma=0.0, gamma_upper=0.01)
    found = {claim["name"]: claim for claim in [*all_claims(facts), *token_claims(facts)]}
    printed = found.pop("as_published")
    wanted = epsilon(plain, DELTA, "add_or_remove", "rdp", "classic")
    assert 0 < wanted < 20 and printed["epsilon"] == wanted
    assert "not a valid bound" in printed["condition"]
    assert "which does not hold" in printed["sentence"]
    assert len(found) > 4 and {claim["epsilon"] for claim in found.values()} == {math.inf}
    paid = price(RUNS[method])
    assert paid.record is None and paid.caught is None and paid.reason is not None


def test_a_ledger_keeps_them_apart_and_refuses_what_no_method_does() -> None:
    for one in RUNS["atdp"]:
        assert parse_release(as_line(one)) == one
    assert "weighing" not in as_line(REDACTED)["step"]
    assert "noise_scale" not in as_line(release("scores"))["step"]
    ledger = Ledger()
    for number, one in enumerate([release("scores"), release("scores", 2.0)]):
        ledger.append(one, f"{number:064x}")
    assert len(ledger.lines()) == 2
    wrong = [
        release("words"),
        release("none", 2.0),
        release("tokens", 2),
        release("tokens", math.inf),
        replace(release("tokens"), discrete_coordinates=4),
        replace(REDACTED, step=replace(REDACTED.step, weighing="tokens")),
        replace(release("tokens"), step=replace(release("tokens").step, unit="author")),
    ]
    for one in wrong:
        with pytest.raises(ValueError):
            check_release(one)
