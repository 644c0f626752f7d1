"""Training jobs of Selective-DPSGD: blind where they must be, resumable, and with every release in
the ledger.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from confide.dp.accounting.price import epsilon, price
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.specs import GPT2Spec, LSTMSpec, PrivacySpec, RecipeSpec, TrainSpec
from confide.types import Partition, StateRelease, Step, View
from tests.stages.killing import killed
from tests.stages.test_train import run as trained
from tests.stages.test_train import vocabulary
from tests.terms import TERMS

__all__ = ["vocabulary"]

RECIPE = RecipeSpec(lr=0.01, batch_size=8, noisy_batch_size=6, epochs=2, physical_batch_size=5)
PRIVACY = PrivacySpec(noise_multiplier=0.8, max_grad_norm=0.5)
QUIET = 1e-30  # learning rate of noisy updates that change nothing


def partition(shift: int = 0, longer: int = 0) -> Partition:
    """40 points of public tokens, in most of them one or two private runs; `shift` moves their
    tokens, `longer` adds some.
    """
    source = np.random.default_rng(0)
    texts = []
    marks = []
    for point in range(40):
        text = []
        mark = []
        for place in range(point % 3):
            size = source.integers(1, 4)
            more = longer * (place + point % 5)
            text += [
                *source.integers(3, 200, 2),
                *(3 + (source.integers(0, 200, size) + shift) % 200),
                *[9] * more,
            ]
            mark += [False] * 2 + [True] * (size + more)
        text += source.integers(3, 200, source.integers(1, 4)).tolist()
        texts.append(text)
        marks.append(mark + [False] * (len(text) - len(mark)))
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    seen = View(np.concatenate(texts).astype(np.int32), starts, np.concatenate(marks))
    split = np.where(np.arange(40) < 34, 0, np.where(np.arange(40) < 37, 1, 2)).astype(np.uint8)
    none = np.full(40, -1, np.int32)
    private = seen.marked()
    return Partition(seen, seen, seen.private, private, np.zeros(40, bool), split, none, none)


def spec(state: str = "reset", **changes: Any) -> TrainSpec:
    recipe = RECIPE.model_copy(update={"private_state": state} | changes.pop("recipe", {}))
    settings = {
        "model": LSTMSpec(kind="lstm", embedding=6, hidden=6),
        "privacy": PRIVACY,
        "checkpoint_every": 3,
    } | changes
    return TrainSpec(data=TERMS, run="a/g0-s0", method="selective", recipe=recipe, **settings)


def run(
    folder: Path, vocabulary: Path, wanted: TrainSpec, data: Partition | None = None
) -> dict[str, Path]:
    return trained(folder, vocabulary, wanted, data or partition())


@pytest.mark.parametrize("other", [{"shift": 50}, {"shift": 50, "longer": 3}])
def test_exact_updates_give_the_same_bits_whatever_the_private_tokens(
    other: dict[str, int], tmp_path: Path, vocabulary: Path
) -> None:
    """Not even their number is read. With the noisy updates silenced, a whole job is one of exact
    updates; it has dropout, of which noisy updates draw as much as there is private text."""
    given = {
        "recipe": {"noisy_lr": QUIET},
        "model": LSTMSpec(kind="lstm", embedding=6, hidden=6, dropout=0.1),
    }
    first = run(tmp_path / "0", vocabulary, spec(**given), partition())
    second = run(tmp_path / "1", vocabulary, spec(**given), partition(**other))
    assert first["model"].read_bytes() == second["model"].read_bytes()
    assert [row["loss"] for row in read_jsonl(first["metrics"])] == [
        row["loss"] for row in read_jsonl(second["metrics"])
    ]
    loud = [
        run(tmp_path / f"loud{i}", vocabulary, spec(), partition(**given))
        for i, given in enumerate(({}, other))
    ]
    assert loud[0]["model"].read_bytes() != loud[1]["model"].read_bytes()


def test_a_carried_state_is_not_blind(tmp_path: Path, vocabulary: Path) -> None:
    """What the test above can see: the same jobs, but the state goes on after private text."""
    quiet = {"noisy_lr": QUIET}
    made = [
        run(tmp_path / str(i), vocabulary, spec("carry", recipe=quiet), partition(shift=i))
        for i in (0, 50)
    ]
    assert made[0]["model"].read_bytes() != made[1]["model"].read_bytes()


@pytest.mark.parametrize("state", ["reset", "noise", "carry", "published"])
@pytest.mark.parametrize("killed_after", [2, 7, 8])
def test_killed_job_resumes_to_the_same_bytes(
    state: str, killed_after: int, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = spec(state, checkpoint_every=1)
    whole = run(tmp_path / "whole", vocabulary, wanted)
    killed(killed_after, lambda: run(tmp_path / "killed", vocabulary, wanted))
    resumed = run(tmp_path / "killed", vocabulary, wanted)
    for name in ("model", "ledger"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()


def test_the_ledger_counts_both_kinds_and_draws_from_the_points_that_hold_private_tokens(
    tmp_path: Path, vocabulary: Path
) -> None:
    ledger = Ledger.from_file(run(tmp_path, vocabulary, spec())["ledger"])
    pool = sum(point % 3 > 0 for point in range(34))
    counts = {}
    for release in ledger.releases():
        counts[release.step] = counts.get(release.step, 0) + release.count
    exact = Step(view="original", pool="all", noisy=False, tokens="public")
    noisy = Step(view="original", pool="marked", noisy=True, tokens="private")
    assert counts == {exact: 2 * 5, noisy: round(2 * pool / 6)}
    assert {release.sample_rate for release in ledger.releases() if release.noisy} == {6 / pool}
    assert ledger.ended() and len(set(ledger.states())) == len(ledger.states())


def test_states_that_are_handed_on_are_charged_once_a_pass_for_the_point_with_most_runs(
    tmp_path: Path, vocabulary: Path
) -> None:
    wanted = spec("noise", model=LSTMSpec(kind="lstm", embedding=6, hidden=6, layers=2))
    ledger = Ledger.from_file(run(tmp_path, vocabulary, wanted)["ledger"])
    shown = [release for release in ledger.releases() if isinstance(release, StateRelease)]
    assert [release.count for release in shown] == [
        2 * 2 * 2
    ] * 2  # h and c, two layers, two runs; two epochs
    assert {release.sample_rate for release in shown} == {1.0}
    assert price(ledger.releases()).caught == [
        release for release in ledger.releases() if release.noisy
    ]
    gradients = [
        release
        for release in ledger.releases()
        if release.noisy and not isinstance(release, StateRelease)
    ]
    assert epsilon(ledger.releases(), 1e-3) > 2 * epsilon(gradients, 1e-3)
    assert len(set(ledger.states())) == len(ledger.states())


def test_published_training_makes_as_many_updates_as_its_batches_have_runs(
    tmp_path: Path, vocabulary: Path
) -> None:
    ledger = Ledger.from_file(run(tmp_path, vocabulary, spec("published"))["ledger"])
    counts = {
        noisy: sum(r.count for r in ledger.releases() if r.step.noisy is noisy)
        for noisy in (True, False)
    }
    assert (
        counts[False] == counts[True] + 2 * 6
    )  # each of the batches begins and ends with a public run
    assert 2 * 6 < counts[True] <= 2 * 2 * 6
    assert {release.sample_rate for release in ledger.releases() if release.noisy} == {6 / 34}
    assert price(ledger.releases()).caught is None


@pytest.mark.parametrize("state", ["reset", "noise"])
def test_calibrated_noise_keeps_the_target_with_all_that_is_released(
    state: str, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = spec(state, privacy=PrivacySpec(epsilon=3.0, delta=1e-3, max_grad_norm=0.5))
    ledger = Ledger.from_file(run(tmp_path, vocabulary, wanted)["ledger"])
    assert 2.9 < epsilon(price(ledger.releases()).caught, 1e-3) <= 3.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": GPT2Spec(kind="gpt2", layers=1, width=8, heads=2)},
            "model.kind = 'gpt2': is no recurrent model",
        ),
        (
            {"state": "published", "privacy": PrivacySpec(epsilon=3.0)},
            "privacy.epsilon: has no meaning for published",
        ),
    ],
)
def test_what_cannot_be_is_one_clear_error(
    changes: dict[str, Any], message: str, tmp_path: Path, vocabulary: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, spec(**changes))
