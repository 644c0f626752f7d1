"""What a training job must be: its batches, its updates, its ledger and its checkpoints belong
together.
"""

import copy
import math
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from engine_checks import MANY, assert_standard_normal
from scipy import stats
from toys import (
    AUTHORS,
    BOUND,
    LSTM,
    NOISY,
    RATE,
    SIGMA,
    TERMS,
    clipped_sum,
    flat,
    gradient,
    job_of,
    loss_of,
    partition_of,
    view_of,
)

from confide.data.partition_files import write_partitions
from confide.dp.accounting.audit_bounds import best_lower, epsilon_lower
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.dp.mechanism.sequential import released
from confide.files.io import sha256
from confide.specs import PrivacySpec, ReadSpec, RecipeSpec, TrainSpec
from confide.stages.train import train
from confide.text import tokenizer
from confide.train import checkpoint, gradients
from confide.train.job import Job
from confide.types import StateRelease, Step

EXACT = Step(view="redacted", pool="public", noisy=False)


def drawn(job: Job, steps: int) -> list[np.ndarray]:
    """The positions that so many noisy updates of a job ask for, without running them."""
    found = []
    job.batches.pieces = lambda step, chosen: found.append(chosen.numpy()) or iter(())
    for _ in range(steps):
        job.gradients.noisy(NOISY)
    assert len(found) == steps, "a batch was skipped"
    return found


def batches_are_poisson_at_the_recorded_rate() -> None:
    """Sizes are binomial and points are in independently, at the sample rate that the ledger
    gets.
    """
    points, steps, job = 30, 600, job_of(partition_of(30, public=20), batch=3)
    rate, batches = job.history.release(NOISY).sample_rate, drawn(job, steps)
    member = np.zeros((steps, points), bool)
    for row, batch in zip(member, batches, strict=True):
        assert len(set(batch.tolist())) == len(batch), "a point twice in a batch"
        row[batch] = True
    sizes, law = member.sum(1), stats.binom(points, rate)
    assert abs(sizes.mean() - law.mean()) < MANY * law.std() / math.sqrt(steps), (
        f"mean size {sizes.mean():.2f}"
    )
    assert abs(sizes.var() / law.var() - 1) < MANY * math.sqrt(2 / steps), (
        f"variance of sizes {sizes.var():.2f}"
    )
    assert (sizes == 0).any(), "no batch is empty"
    centred = member - rate
    for lag in (1, 2):
        apart = float((centred[:, lag:] * centred[:, :-lag]).mean()) / (rate * (1 - rate))
        assert abs(apart) < MANY / math.sqrt(steps * (points - lag)), (
            "neighbouring points are drawn together"
        )
        later = float((centred[lag:] * centred[:-lag]).mean()) / (rate * (1 - rate))
        assert abs(later) < MANY / math.sqrt((steps - lag) * points), (
            "consecutive batches are drawn together"
        )


def private_randomness_is_fresh() -> None:
    """Batches and noise change with the noise seed, which may be the system's entropy, and run, and
    share no keystream.
    """
    data, seen = partition_of(40), []
    for noise_seed, run in ((0, "a"), (0, "b"), (1, "a"), (None, "a"), (None, "a")):
        job = job_of(data, batch=10, noise_seed=noise_seed, run=run)
        assert not torch.equal(job.batches.sampler.get_state(), job.gradients.noise.get_state()), (
            "batches and noise share a keystream"
        )
        noise = job.gradients.noise.add(torch.zeros(8, dtype=torch.float64), 1.0).tolist()
        seen.append((noise, [batch.tolist() for batch in drawn(job, 4)]))
    for i, (noise, batches) in enumerate(seen):
        for other_noise, other_batches in seen[:i]:
            assert noise != other_noise, "the same noise for another seed"
            assert batches != other_batches, "the same private batches for another seed"
    job, before = (
        job_of(data, batch=10, model=LSTM.model_copy(update={"dropout": 0.5})),
        torch.get_rng_state(),
    )
    job.run(NOISY)
    assert torch.equal(before, torch.get_rng_state()), (
        "how much a private batch draws moves what exact updates draw next"
    )


def updates_are_those_of_the_ledger() -> None:
    """Each noisy update is (clipped sum of the batch drawn + noise) / public size, as the ledger
    has them.
    """
    for batch, points in ((1, 12), (5, 12)):  # about every third batch of expected size 1 is empty
        data, residuals, chosen = partition_of(points, vocab=100), [], []
        job, steps = job_of(data, batch, vocab=100), 10
        usual, view, pool = job.batches.pieces, data.view(NOISY.view), data.pool(NOISY.pool)
        job.batches.pieces = lambda step, some, chosen=chosen, usual=usual: (
            chosen.append(some.numpy()) or usual(step, some)
        )
        for number in range(steps):
            before = copy.deepcopy(job.model)
            job.run(NOISY)
            assert len(chosen) == number + 1, "a batch was skipped"
            grads = [
                gradient(before, loss_of(before, view[point].tolist())).double()
                for point in pool[chosen[-1]]
            ]
            weights = flat(before.parameters()).double()
            moved = weights - flat(job.model.parameters()).double()
            residuals.append(moved / RATE * batch - clipped_sum(grads, BOUND, len(weights)))
        assert job.metrics.mean_loss(done=job.done, lr=RATE) is None, (
            "the metrics show something of private batches"
        )
        ledger = job.history.ledger.releases()
        assert [one.step for one in ledger] == [NOISY] and ledger[0].count == steps
        values = torch.stack(residuals) / (ledger[0].noise_multiplier * ledger[0].max_grad_norm)
        for value in values:
            assert abs(float(value.square().mean()) - 1) < MANY * math.sqrt(2 / len(value)), (
                "an update is not what the ledger says"
            )
        assert_standard_normal(values)


def authors_are_drawn_and_clipped_whole() -> None:
    """Where noise hides authors: each is drawn at the ledger's rate, however prolific, and adds one
    clipped mean to the sum.
    """
    points, owner = (
        30,
        np.array([9] * 8 + [0] * 15 + [1] * 6 + [2, 3, 4, 5, 6, 7, 8, 8, 8]),
    )  # of all points, public ones first
    data = replace(partition_of(points, vocab=100), owner=owner.astype(np.int32))
    privacy = PrivacySpec(noise_multiplier=SIGMA, max_grad_norm=BOUND, unit="author")
    recipe = RecipeSpec(
        optimizer="sgd",
        lr=RATE,
        schedule="constant",
        noisy_batch_size=3,
        physical_batch_size=4,
        author_points=None,
    )
    job, steps, count = job_of(data, 3, vocab=100, recipe=recipe, privacy=privacy), 300, 9
    chosen, usual, view = [], job.batches.pieces, data.view(AUTHORS.view)
    job.batches.pieces = lambda step, some: chosen.append(some.numpy()) or iter(())
    for _ in range(steps):
        job.gradients.noisy(AUTHORS)
    assert len(chosen) == steps, "a batch was skipped"
    member, rate = np.zeros((steps, count), bool), job.history.release(AUTHORS).sample_rate
    for row, batch in zip(member, chosen, strict=True):
        assert all(author < count for author in batch), "there are not so many authors"
        row[batch] = True
    law = stats.binom(steps, rate)
    assert rate == 3 / count, "the ledger has another rate than that of authors"
    assert (abs(member.sum(0) - law.mean()) < MANY * law.std()).all(), (
        "authors are drawn at other rates than the ledger's"
    )

    def seen(step: Step, some: torch.Tensor) -> Any:
        assert all(author < count for author in some.tolist()), "there are not so many authors"
        chosen.append(some.numpy())
        return usual(step, some)

    job.batches.pieces = seen
    for _ in range(8):
        before, known = copy.deepcopy(job.model), len(chosen)
        job.run(AUTHORS)
        assert len(chosen) == known + 1, "a batch was skipped"
        grads = []
        for author in chosen[-1]:
            own = [
                gradient(before, loss_of(before, view[point].tolist()))
                for point in np.flatnonzero(owner == author)
            ]
            grads.append(torch.stack(own).mean(0).double())
        weights = flat(before.parameters()).double()
        moved = (weights - flat(job.model.parameters()).double()) / RATE * 3
        residual = (moved - clipped_sum(grads, BOUND, len(weights))) / (SIGMA * BOUND)
        assert abs(float(residual.square().mean()) - 1) < MANY * math.sqrt(2 / len(residual)), (
            "not one clipped mean per author"
        )
    ran = [(release.step, release.count) for release in job.history.ledger.releases()]
    assert ran == [(AUTHORS, 8)], "the ledger does not say that noise hid authors"


def ledger_prices_what_ran() -> None:
    """A whole job of CRT: as many releases as updates, each as it ran, within the budget; reads as
    they are.
    """
    epochs, batch, private = 3, 6, 24
    recipe = RecipeSpec(
        lr=0.01, batch_size=8, noisy_batch_size=batch, epochs=epochs, physical_batch_size=2
    )
    reads = [ReadSpec(stage="tokenizer", source="own", public=False)]
    privacy = PrivacySpec(epsilon=2.0, delta=1e-3, max_grad_norm=BOUND)
    spec = TrainSpec(
        data=TERMS,
        run="a/g0-s0",
        method="crt",
        model=LSTM,
        recipe=recipe,
        privacy=privacy,
        reads=reads,
        device="cpu",
    )
    ran: list[tuple[bool, float]] = []
    exact, noisy = gradients.exact_gradient, gradients.noisy_gradient

    def seen_exact(*given: Any, **named: Any) -> Any:
        ran.append((False, 0.0))
        return exact(*given, **named)

    def seen_noisy(*given: Any) -> Any:
        ran.append((True, given[2]))
        return noisy(*given)

    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.object(gradients, "exact_gradient", seen_exact),
        mock.patch.object(gradients, "noisy_gradient", seen_noisy),
    ):
        folder = Path(name)
        views = {view: folder / view for view in ("original", "redacted")}
        write_partitions([partition_of(private, public=16)], **views)
        words = folder / "tokenizer.json"
        tokenizer.save(tokenizer.train_bpe(["thank you"], 270), words)
        made = {
            key: folder / key
            for key in ("checkpoint", "model", "config", "metrics", "ledger", "epochs")
        }
        train(spec, **views, tokenizer=words, **made)
        ledger, digest = Ledger.from_file(made["ledger"]), sha256(words)
    releases = [one for one in ledger.releases() for _ in range(one.count)]
    assert [(one.step.noisy, one.noise_multiplier) for one in releases] == ran, (
        "the ledger does not say what ran"
    )
    epoch = [EXACT] * 2 + [NOISY] * (private // batch)
    assert [one.step for one in releases] == epoch * epochs
    assert {one.sample_rate for one in releases if one.step.noisy} == {batch / private}
    assert {one.max_grad_norm for one in releases if one.step.noisy} == {BOUND}
    assert epsilon(ledger.releases(), 1e-3) <= 2.0, "the budget is exceeded"
    kept = [(line["public"], line["digest"]) for line in ledger.events("read")]
    assert kept == [(False, digest)], "a product of protected text is not in the ledger"


def states_handed_on_are_clipped_and_in_the_ledger() -> None:
    """Selective-DPSGD with noised states: each is clipped, and each pass is charged for the point
    that shows most of them.
    """
    data, layers = partition_of(6, public=3, seed=2), 2
    data.original.private[:] = np.random.default_rng(3).random(len(data.original.ids)) < 0.4
    recipe = RecipeSpec(
        batch_size=4, noisy_batch_size=2, physical_batch_size=3, private_state="noise"
    )
    job = job_of(
        data, 2, method="selective", recipe=recipe, model=LSTM.model_copy(update={"layers": layers})
    )
    public = Step(view="original", pool="all", noisy=False, tokens="public", state="noise")
    for _ in range(2 * 3):  # two passes
        job.run(public)
    most = 0
    for start, end in pairwise(data.original.starts):
        marks = data.original.private[start:end].tolist()
        touched = [
            reads or predicts
            for reads, predicts in zip([False, *marks], [*marks, False], strict=True)
        ]
        most = max(
            most, sum(before and not now for before, now in pairwise(touched))
        )  # public text after private text
    shown = [one for one in job.history.ledger.releases() if one.noisy]
    expected = StateRelease(noise_multiplier=SIGMA, max_grad_norm=BOUND, count=2 * layers * most)
    assert most > 1 and shown == [expected] * 2, "states are not charged as they are released"
    given = [(torch.full((2, 8), 5.0), torch.full((2, 8), -1e-3))]
    for before, after in zip(
        given[0], released(given, BOUND, 0.0, job.states.noise)[0], strict=True
    ):
        assert (after.norm(dim=1) <= BOUND * (1 + 1e-6)).all(), (
            "a state is larger than what the noise is for"
        )
        assert bool((after * before > 0).all())


def resumed_equals_uninterrupted() -> None:
    """A job that was saved and resumed ends with the weights and the ledger of one that was not,
    bit for bit.
    """
    data, steps = partition_of(16), [EXACT, NOISY, NOISY, EXACT, NOISY, NOISY]
    whole, killed, resumed = (job_of(data, 4) for _ in range(3))
    for step in steps:
        whole.run(step)
    for step in steps[:3]:
        killed.run(step)
    with tempfile.TemporaryDirectory() as folder:
        killed.save(Path(folder), "same")
        assert checkpoint.read(Path(folder), "other") is None, (
            "the checkpoint of another job is continued"
        )
        resumed.restore(checkpoint.read(Path(folder), "same"))
    for step in steps[3:]:
        resumed.run(step)
    assert torch.equal(flat(whole.model.parameters()), flat(resumed.model.parameters())), (
        "other weights"
    )
    assert whole.history.ledger.dump() == resumed.history.ledger.dump(), "another ledger"
    states = resumed.history.ledger.states()
    assert len(set(states)) == len(states) > 1, "noise that was drawn before"


def one_run_audit_stays_below_the_certificate() -> None:
    """Coins decide which of 80 texts one update reads; guessing them from it must not refute the
    certificate.
    """
    coins, delta, sigma = 80, 1e-3, 8.0
    flips, vocab = np.random.default_rng(5).random(coins) < 0.5, 3 * coins + 10
    secrets = [[10 + 3 * i, 11 + 3 * i, 12 + 3 * i] for i in range(coins)]
    data = partition_of(coins, public=0)
    view = view_of(
        [text if flip else [4] for text, flip in zip(secrets, flips, strict=True)], [True] * coins
    )
    data = type(data)(
        view,
        view,
        view.private,
        **{name: getattr(data, name) for name in ("private", "copy", "split", "domain", "owner")},
    )
    privacy = PrivacySpec(noise_multiplier=sigma, max_grad_norm=0.02, delta=delta)
    job = job_of(data, batch=coins, vocab=vocab, privacy=privacy)
    with torch.no_grad():
        for parameter in job.model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    own = torch.stack([gradient(job.model, loss_of(job.model, text)) for text in [*secrets, [4]]])
    job.run(NOISY)
    released = flat(parameter.grad for parameter in job.model.parameters())
    assert own.isfinite().all() and released.isfinite().all(), "gradients or weights are not finite"
    scores = torch.linalg.lstsq(own.t(), released.unsqueeze(1)).solution[
        :coins, 0
    ]  # how much of each text is in it
    lower, _, _ = best_lower(epsilon_lower, scores.numpy(), flips, (0.5, 1.0), delta)
    certified = epsilon(job.history.ledger.releases(), delta)
    assert lower <= certified, f"an audit refutes the certificate: {lower:.2f} > {certified:.2f}"
