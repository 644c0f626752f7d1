"""Prices before training: whom each method protects. That training does just this shows
tests/workflow/test_recommend.py.
"""

import math

import numpy as np
import pytest

from confide.advisor.advice import Wish
from confide.advisor.prices import PRICED, priced, with_wish
from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.price import group
from confide.specs import CertifySpec, GPT2Spec, LSTMSpec, ReadSpec, RecipeSpec, TrainSpec
from confide.types import Partition, Release, Step, View
from tests.terms import TERMS

INF = math.inf
WISH = Wish("secret", 2.0, 1e-4, "replace_one")
POINTS = 400
PRIVATE = 300
BATCH = 40
EPOCHS = 3
MEASURED = {"multiplicity": 3, "multiplicity_distinct": 2}
RATES = {"gamma": 0.05, "gamma_upper": 0.1, "delta2_upper": 0.01, "misaligned": 0}
JOB = CertifySpec(
    train=TrainSpec(
        data=TERMS,
        run="mine/g0-s0",
        method="crt",
        model=LSTMSpec(kind="lstm", embedding=4, hidden=4),
        recipe=RecipeSpec(
            batch_size=8, noisy_batch_size=BATCH, epochs=EPOCHS, private_state="carry"
        ),
        init="start/g0-s0",
        init_public=True,
    )
)


def partition(private: int = POINTS, authors: bool = False) -> Partition:
    """400 training points of two tokens; the first ones are private, and in each of these the first
    token is marked.
    """
    starts = np.arange(0, 2 * POINTS + 1, 2)
    one = np.arange(POINTS)
    marked = (np.arange(2 * POINTS) % 2 == 0) & (np.arange(2 * POINTS) < 2 * private)
    view = View(np.full(2 * POINTS, 5, np.int32), starts, marked)
    return Partition(
        original=view,
        redacted=view,
        secret=marked,
        private=one < private,
        copy=np.zeros(POINTS, bool),
        split=np.zeros(POINTS, np.uint8),
        domain=np.full(POINTS, -1, np.int32),
        owner=(one // 4 if authors else np.full(POINTS, -1)).astype(np.int32),
    )


def price(
    method: str,
    wish: Wish = WISH,
    job: CertifySpec = JOB,
    rates=RATES,
    measured=MEASURED,
    **options,
):
    data = job.train.data.model_copy(
        update={"everything_private": options.get("private", POINTS) == POINTS}
    )
    job = job.model_copy(update={"train": job.train.model_copy(update={"data": data})})
    spec = with_wish(job, method, True, wish)
    return priced(spec, "mine", partition(**options), measured, rates, wish)


@pytest.mark.parametrize(
    ("method", "caught", "missed", "record"),
    [
        ("crt", 0, 2, 2),
        ("dpsgd", 2, 2, 2),
        ("redacted", 0, INF, INF),
        ("selective", 2, INF, INF),
        ("jft", 2, INF, INF),
        ("schedule", 2, INF, INF),
        ("nonprivate", INF, INF, INF),
    ],
)
def test_whom_a_method_protects(method, caught, missed, record):
    found = price(method)
    assert (found.caught, found.missed, found.record) == pytest.approx(
        (caught, missed, record), rel=2e-3
    )
    assert found.caught <= WISH.epsilon or found.caught == INF  # calibration never exceeds the wish
    assert (
        (found.noise is None) == (method in ("redacted", "nonprivate"))
        and not found.conditional
        and found.problem is None
    )


def test_the_noise_is_made_for_the_steps_of_the_method():
    steps = EPOCHS * POINTS // BATCH
    assert price("crt").noise == price("dpsgd").noise == calibrate(2.0, 1e-4, BATCH / POINTS, steps)
    assert price("selective", private=PRIVATE).noise == calibrate(
        2.0, 1e-4, BATCH / PRIVATE, round(EPOCHS * PRIVATE / BATCH)
    )
    loose = price("dpsgd", Wish("record", 2.0, 1e-4, "add_or_remove"))
    assert (
        loose.noise
        == calibrate(2.0, 1e-4, BATCH / POINTS, steps, "add_or_remove")
        < price("dpsgd").noise
    )
    assert (
        loose.record == pytest.approx(2, rel=2e-3) and loose.missed > 3
    )  # replacing costs about twice as much


def test_a_random_secret_costs_less_where_redaction_comes_first():
    assert 0 < price("crt").random < price("crt", rates=RATES | {"gamma_upper": 0.2}).random < 2
    assert price("dpsgd").random == pytest.approx(2, rel=2e-3)
    assert price("redacted").random == price("jft").random == INF
    unknown = dict.fromkeys(RATES, None) | {"misaligned": 0}
    assert price("crt", rates=unknown).random is None and price("crt", rates=unknown).missed <= 2


def test_a_missed_secret_in_several_texts_is_a_group():
    """Of known secrets the most frequent one counts, else two and ten texts are examples."""
    found = price("crt")
    update = Release(
        step=Step(view="redacted", pool="private", noisy=True),
        count=EPOCHS * POINTS // BATCH,
        sample_rate=BATCH / POINTS,
        noise_multiplier=found.noise,
        max_grad_norm=1.0,
    )
    most = MEASURED["multiplicity_distinct"]
    assert found.several == {most: group([update], WISH.delta, most)[0]}
    unknown = price("crt", measured=dict.fromkeys(MEASURED))
    assert list(unknown.several) == [2, 10]
    assert found.missed < unknown.several[2] == found.several[2] < unknown.several[10]
    assert price("crt", measured=MEASURED | {"multiplicity_distinct": 1}).several == {}
    assert price("redacted").several == price("nonprivate").several == {}
    assert price("crt", Wish("record", 2.0, 1e-4, "replace_one")).several == {}


def test_a_conservative_policy_that_spares_points_is_a_condition():
    found = price("crt", private=PRIVATE)
    assert found.conditional and found.noise == calibrate(
        2.0, 1e-4, BATCH / PRIVATE, round(EPOCHS * PRIVATE / BATCH)
    )
    assert not price("dpsgd", private=PRIVATE).conditional


def test_copies_that_no_policy_finds_anything_in_are_a_condition_of_training_on_all():
    assert price("dpsgd", private=PRIVATE).copies
    assert not price("crt", private=PRIVATE).copies  # which wants more already
    assert not price("dpsgd").copies


def test_authors():
    wish = Wish("author", 2.0, 1e-4, "replace_one")
    found = price("dpsgd", wish, authors=True)
    assert found.record <= 2 and found.noise == calibrate(
        2.0, 1e-4, BATCH / 100, round(EPOCHS * 100 / BATCH)
    )
    assert "needs an author of every training point" in price("dpsgd", wish).problem
    assert "noise protects points" in price("selective", wish, authors=True).problem


@pytest.mark.parametrize(
    "change",
    [
        {"reads": [ReadSpec(stage="tokenizer", source="words", public=False)]},
        {"init_public": False},
        {},
    ],
)
def test_what_else_has_seen_the_text_leaves_nothing_certified(change):
    job = JOB.model_copy(update={"train": JOB.train.model_copy(update=change)})
    rates = RATES if change else RATES | {"misaligned": 1}
    for method in PRICED:
        found = price(method, job=job, rates=rates)
        assert found.caught == found.missed == found.record == found.random == INF


def test_what_cannot_run_says_why():
    def job(**change) -> CertifySpec:
        return JOB.model_copy(update={"train": JOB.train.model_copy(update=change)})

    assert "chunks" in price("crt", job=job(pack=64)).problem
    assert (
        "is no recurrent model" in price("selective", job=job(model=GPT2Spec(kind="gpt2"))).problem
    )
    large = job(recipe=RecipeSpec(noisy_batch_size=500))
    assert (
        "exceeds the 400 points" in price("dpsgd", job=large).problem
        and price("redacted", job=large).problem is None
    )
