"""Rehearsals of training jobs, and the text without meaning that they read."""

import math
from collections import Counter

import numpy as np
import pytest

from confide import models
from confide.advisor import rehearsal as module
from confide.advisor.rehearsal import MOST_POINTS, Clock, Text, meaningless, played, rehearsed
from confide.methods import METHODS
from confide.runtime import memory
from confide.specs import CausalLMSpec, LSTMSpec, PrivacySpec, RecipeSpec, TrainSpec
from confide.train import forecast as forecasts
from confide.types import SPLITS, Step
from tests.terms import TERMS

TEXT = Text(points={"train": 300, "valid": 40, "test": 60}, tokens=9.0, private=0.25)


def job(method: str = "crt", **fields) -> TrainSpec:
    settings = {
        "model": LSTMSpec(kind="lstm", embedding=4, hidden=4),
        "recipe": RecipeSpec(batch_size=8, noisy_batch_size=16, epochs=2, regulariser_weight=1.0),
        "privacy": PrivacySpec(epsilon=3.0, delta=1e-4),
    }
    return TrainSpec(data=TERMS, run="a/g0-s0", method=method, **(settings | fields))


def test_the_text_is_as_large_long_and_private_as_what_it_stands_for():
    partition = meaningless(TEXT, 50)
    assert np.bincount(partition.split).tolist() == [TEXT.points[split] for split in SPLITS]
    lengths = np.diff(partition.original.starts)
    assert lengths.min() >= 1 and abs(lengths.mean() - TEXT.tokens) < 1
    assert abs(partition.private.mean() - TEXT.private) < 0.1
    assert np.array_equal(partition.original.marked(), partition.private)
    assert partition.original.ids.max() < 50


def test_of_a_large_text_a_part_stands_for_all_of_it():
    large = TEXT._replace(points={"train": 10 * MOST_POINTS, "valid": MOST_POINTS, "test": 0})
    partition = meaningless(large, 50)
    assert len(partition.original) <= MOST_POINTS + len(SPLITS)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """What is shown here needs no exact times."""
    monkeypatch.setattr(module, "WARM", 0.0)
    monkeypatch.setattr(module, "TIMED", 0.0)


@pytest.mark.parametrize(
    "method", sorted(name for name, method in METHODS.items() if not method.needs_domains)
)
def test_every_method_can_be_rehearsed(method):
    rehearsal = played(job(method), TEXT, 50, 0)
    assert rehearsal.seconds > 0 and rehearsal.per_token > 0 and rehearsal.memory_mb > 50
    parameters = 50 * 4 + (4 + 4 + 2) * 16 + 50 * 4 + 50
    assert 0.5 < 1e6 * rehearsal.weights_mb / (4 * parameters) < 1.5


@pytest.mark.parametrize("private_state", ["carry", "noise", "published"])
def test_states_handed_on_can_be_rehearsed(private_state):
    recipe = RecipeSpec(
        noisy_batch_size=16, epochs=2, schedule="linear", private_state=private_state
    )
    assert played(job("selective", recipe=recipe), TEXT, 50, 0).seconds > 0


@pytest.mark.parametrize("times", [1, 10, 1000])
def test_every_step_of_the_whole_text_counts(times, monkeypatch):
    monkeypatch.setattr(
        module, "seconds_of", lambda *_: 1e6
    )  # beside which evaluations are nothing
    points = {split: times * count for split, count in TEXT.points.items()}
    steps = 2 * math.ceil(points["train"] / 8)
    rehearsal = played(job("nonprivate"), TEXT._replace(points=points), 50, 0)
    assert rehearsal.seconds == pytest.approx(1e6 * steps, rel=0.02)


LONG = TEXT._replace(
    points={"train": 60, "valid": 4, "test": 4},
    tokens=(66 * 9 + 300 + 9) / 68,
    lengths={
        "train": np.array([9] * 30 + [300] + [9] * 29),
        "valid": np.full(4, 9),
        "test": np.full(4, 9),
    },
)


def test_lengths_are_those_of_the_text_and_the_longest_is_there():
    partition = meaningless(LONG, 50)
    lengths = np.diff(partition.original.starts)
    assert sorted(lengths) == [9] * 67 + [300] and partition.split[lengths.argmax()] == 0
    many = LONG._replace(points={"train": 4 * MOST_POINTS, "valid": 4, "test": 4})
    assert np.diff(meaningless(many, 50).original.starts).max() == 300
    assert np.diff(meaningless(LONG, 50, most=100).original.starts).max() == 100


def test_memory_is_that_of_the_longest_text(monkeypatch):
    """Beside what updates that read it really hold, of text of these very lengths."""
    monkeypatch.setattr(memory, "peak_mb", lambda _: 0.0)  # what the process held before
    recipe = RecipeSpec(noisy_batch_size=60, epochs=1)
    wanted = job("dpsgd", recipe=recipe, device="cpu")
    found = played(wanted, LONG, 50, 0)
    average = played(wanted, LONG._replace(lengths=None), 50, 0)
    network = models.build(wanted.model, 50, 0).train()
    step = Step(view="original", pool="all", noisy=True)
    made = module.job_of(wanted, meaningless(LONG, 50), network, Counter([step]))
    really = memory.taken(lambda: [made.run(step) for _ in range(2)], "cpu") / 1e6
    assert 0.7 < found.memory_mb / forecasts.GAPS["cpu"] / really < 1.4
    assert found.memory_mb > 3 * average.memory_mb


@pytest.mark.parametrize("noisy", [False, True])
def test_time_is_that_of_the_tokens_read_on_average(noisy, monkeypatch):
    """Of a machine that needs a second for each token, whether a step met the long text or not."""
    wanted = job("dpsgd" if noisy else "nonprivate", device="cpu")
    step = Step(view="original", pool="all", noisy=noisy)
    network = models.build(wanted.model, 50, 0).train()
    partition = meaningless(LONG, 50)
    made = module.job_of(wanted, partition, network, Counter([step]))

    class Tokens(Clock):
        def now(self):
            return made.batches.tokens, made.batches.tokens

    monkeypatch.setattr(module, "Clock", Tokens)
    lengths = np.diff(partition.original.starts)
    pool = partition.pool("all")
    mean = float(lengths[pool].mean())
    size = 16 if noisy else 8
    exact = size / len(pool) * sum(int(lengths[point]) + 1 for point in pool)
    for _ in range(3):
        assert module.seconds_of(made, step, mean) == pytest.approx(exact)


def test_what_cannot_run_is_not_known(tmp_path):
    missing = CausalLMSpec(kind="causal_lm", pretrained=str(tmp_path / "model"))
    assert rehearsed(job(model=missing), TEXT, 50, 0) is None
    too_few = Text(points={"train": 3, "valid": 1, "test": 1}, tokens=3.0, private=0.5)
    assert rehearsed(job(), too_few, 50, 0) is None


def test_waiting_is_no_work():
    clock = Clock("cpu")
    clock.began = (clock.began[0] - 100, clock.began[1])  # a hundred seconds ago, without work
    assert math.isfinite(clock.seconds()) and clock.seconds() < 50
