"""Every method: what it promises about the steps it yields. New methods are covered by being in the
dict.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from confide.dp.accounting.price import epsilon, price
from confide.methods import METHODS, with_options
from confide.methods.plan import Plan
from confide.methods.schedule import SCHEDULES, ScheduleOptions
from confide.methods.selective import SelectiveOptions
from confide.spec_base import Spec
from confide.specs import RecipeSpec
from confide.types import Release
from tests.releases import noised

PLAN = Plan(
    epochs=4,
    noisy_epochs=3,
    batch_size=10,
    noisy_batch_size=16,
    sizes={"all": 100, "public": 60, "private": 40, "marked": 30},
)


@pytest.mark.parametrize("name", METHODS)
def test_one_list_of_steps_per_epoch_and_the_same_each_time(name: str) -> None:
    first = list(METHODS[name](PLAN))
    second = list(METHODS[name](PLAN))
    assert first == second
    twice = name in ("jft", "behind_cover", "atdp")
    assert len(first) == PLAN.epochs + (PLAN.noisy_epochs if twice else 0)
    assert all(first) or name == "untouched"


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"schedule"}))
def test_noisy_updates_make_the_planned_passes(name: str) -> None:
    noisy = [step for steps in METHODS[name](PLAN) for step in steps if step.noisy]
    for pool in {step.pool for step in noisy}:
        assert len(noisy) == round(PLAN.noisy_epochs * PLAN.sizes[pool] / PLAN.noisy_batch_size)


def test_exact_steps_of_private_methods_read_public_points_only() -> None:
    for name in ("dpsgd", "crt"):
        for steps in METHODS[name](PLAN):
            assert all(step.noisy or step.pool == "public" for step in steps)


def test_crt_alternates_public_and_private_and_reads_only_the_redacted_view() -> None:
    for steps in METHODS["crt"](PLAN):
        assert {step.view for step in steps} == {"redacted"}
        assert [step.pool for step in steps] == sorted((step.pool for step in steps), reverse=True)


def test_selective_tells_tokens_apart_and_reads_all_points_but_with_noise_only_marked_ones() -> (
    None
):
    for steps in METHODS["selective"](PLAN):
        kinds = {(step.view, step.pool, step.noisy, step.tokens, step.state) for step in steps}
        assert kinds == {
            ("original", "all", False, "public", "reset"),
            ("original", "marked", True, "private", "reset"),
        }


@pytest.mark.parametrize("state", ["noise", "carry", "published"])
def test_selective_hands_its_state_to_every_step(state: str) -> None:
    epochs = list(METHODS["selective"](replace(PLAN, recipe=SelectiveOptions(private_state=state))))
    assert {step.state for steps in epochs for step in steps} == {state}
    if state == "published":
        assert [len(steps) for steps in epochs] == [7] * 4  # a step a batch of all points


def test_jft_learns_from_redacted_text_then_from_the_original_with_noise() -> None:
    epochs = [
        {(step.view, step.pool, step.noisy, step.tokens) for step in steps}
        for steps in METHODS["jft"](PLAN)
    ]
    first = ("redacted", "all", False, "unmasked")
    second = ("original", "all", True, "all")
    assert epochs == [{first}] * PLAN.epochs + [{second}] * PLAN.noisy_epochs


SHARES = {  # of updates on redacted text, integrated over training: closed forms
    "linear": 0.5,
    "step": 0.5,
    "staircase": 0.45,
    "exp_convex": (1 - math.exp(-2 * 5)) / (2 * 5),
    "exp_concave": 1 - (1 - math.exp(-2)) / 2,
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_goes_over_from_redacted_to_original_text(kind: str) -> None:
    recipe = ScheduleOptions(redaction_schedule=kind, eta=2.0)
    plan = replace(PLAN, epochs=5, batch_size=1, sizes={"all": 4000}, recipe=recipe)
    exact = np.array([not step.noisy for steps in METHODS["schedule"](plan) for step in steps])
    assert len(exact) == 20_000
    spread = math.sqrt(0.25 / len(exact))
    assert abs(exact.mean() - SHARES[kind]) < 4 * spread
    probabilities = np.array([SCHEDULES[kind](s / 20_000, 5, 2.0) for s in range(20_000)])
    assert (
        (probabilities >= 0).all()
        and (probabilities <= 1).all()
        and (np.diff(probabilities) <= 0).all()
    )
    for tenth in range(10):  # and locally
        part = slice(2000 * tenth, 2000 * (tenth + 1))
        assert abs(exact[part].mean() - probabilities[part].mean()) < 4 * math.sqrt(0.25 / 2000)
    other = np.array(
        [not step.noisy for steps in METHODS["schedule"](replace(plan, seed=1)) for step in steps]
    )
    assert (other != exact).any() or kind == "step"


def test_a_schedule_tells_views_apart() -> None:
    kinds = {
        (step.view, step.pool, step.noisy) for steps in METHODS["schedule"](PLAN) for step in steps
    }
    assert kinds == {("redacted", "all", False), ("original", "all", True)}


def test_the_papers_gap_between_jft_and_a_schedule_is_the_number_of_noised_updates() -> None:
    """About 35 % (Kabra and Elenberg 2023, section 6.4): noise made for 5 epochs at epsilon 8, used
    in 6.7 % of the updates.
    """
    size = 8000
    batch = 4
    epochs = 5
    plan = replace(
        PLAN,
        epochs=epochs,
        batch_size=batch,
        sizes={"all": size},
        recipe=ScheduleOptions(redaction_schedule="exp_concave", eta=15.0),
    )
    steps = [step for steps in METHODS["schedule"](plan) for step in steps]
    noisy = sum(step.noisy for step in steps)
    delta = size**-1.1
    assert noisy / len(steps) == pytest.approx(1 / 15, rel=0.1)

    def spent(sigma: float, count: int) -> float:
        release = noised(rate=batch / size, sigma=sigma, count=count)
        return epsilon([release], delta, "add_or_remove", "rdp")

    sigma = brentq(lambda one: spent(one, len(steps)) - 8, 0.35, 0.5, xtol=1e-4)
    assert 0.40 < sigma < 0.42 and 0.33 < 1 - spent(sigma, noisy) / 8 < 0.40


@pytest.mark.parametrize("name", ["adversarial", "triplet"])
def test_regularised_methods_are_ordinary_training_with_a_regulariser_and_without_a_guarantee(
    name: str,
) -> None:
    epochs = list(METHODS[name](PLAN))
    ordinary = [[replace(step, regulariser="none") for step in steps] for steps in epochs]
    assert ordinary == list(METHODS["nonprivate"](PLAN))
    assert {step.regulariser for steps in epochs for step in steps} == {name}
    found = price([Release(step=epochs[0][0], count=10)])
    assert found.record is None and found.missed is None and found.caught is None


def test_crt_without_public_points_is_dpsgd_on_the_redacted_text() -> None:
    plan = Plan(
        epochs=2,
        noisy_epochs=2,
        batch_size=10,
        noisy_batch_size=16,
        sizes={"all": 40, "public": 0, "private": 40},
    )
    assert all(step.noisy for steps in METHODS["crt"](plan) for step in steps)


def test_an_exact_epoch_reads_every_point_once() -> None:
    assert len(PLAN.exact("original", "all")) == 10
    assert (
        len(
            Plan(
                epochs=1,
                noisy_epochs=1,
                batch_size=64,
                noisy_batch_size=1,
                sizes={"all": 65, "public": 0, "private": 0},
            ).exact("original", "all")
        )
        == 2
    )


def test_a_recipe_is_its_own_fields_then_the_options_of_every_method() -> None:
    """In this order: the settings' digest in a ledger is of their JSON."""
    assert list(RecipeSpec.model_fields)[-9:] == [
        "private_state",
        "redaction_schedule",
        "eta",
        "regulariser_weight",
        "same_author",
        "discriminator_hidden",
        "discriminator_lr",
        "sensitive_weight",
        "early_noise",
    ]
    assert all(issubclass(RecipeSpec, method.options) for method in METHODS.values())
    assert RecipeSpec.__module__ == "confide.specs.training"


def test_a_method_takes_its_own_options_and_no_others() -> None:
    recipe = RecipeSpec(private_state="carry")
    assert replace(PLAN, recipe=recipe).options(SelectiveOptions).private_state == "carry"
    assert PLAN.options(SelectiveOptions).private_state == "reset"
    with pytest.raises(TypeError, match="ScheduleOptions has no options SelectiveOptions"):
        replace(PLAN, recipe=ScheduleOptions()).options(SelectiveOptions)


def test_an_option_that_a_recipe_has_already_is_refused() -> None:
    class Taken(Spec):
        eta: float = 1.0

    with pytest.raises(TypeError, match="declared twice in a recipe: eta"):
        with_options(Taken)


def test_the_kinds_of_steps_follow_the_options_of_the_recipe() -> None:
    kinds = METHODS["selective"].kinds(RecipeSpec(private_state="published"))
    assert {step.state for step in kinds} == {"published"}
    assert {step.noisy for step in METHODS["schedule"].kinds(RecipeSpec())} == {True, False}
