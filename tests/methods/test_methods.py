"""Every method: what it promises about the steps it yields. New methods are covered by being in the dict."""

from dataclasses import replace

import pytest

from confide.methods import METHODS
from confide.methods.plan import Plan

PLAN = Plan(
    epochs=4, noisy_epochs=3, batch_size=10, noisy_batch_size=16, sizes={"all": 100, "public": 60, "private": 40, "marked": 30}
)


@pytest.mark.parametrize("name", METHODS)
def test_one_list_of_steps_per_epoch_and_the_same_each_time(name: str) -> None:
    first, second = list(METHODS[name](PLAN)), list(METHODS[name](PLAN))
    assert first == second
    assert len(first) == PLAN.epochs and all(first)


@pytest.mark.parametrize("name", METHODS)
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


def test_selective_tells_tokens_apart_and_reads_all_points_but_with_noise_only_marked_ones() -> None:
    for steps in METHODS["selective"](PLAN):
        kinds = {(step.view, step.pool, step.noisy, step.tokens, step.state) for step in steps}
        assert kinds == {("original", "all", False, "public", "reset"), ("original", "marked", True, "private", "reset")}


@pytest.mark.parametrize("state", ["noise", "carry", "published"])
def test_selective_hands_its_state_to_every_step(state: str) -> None:
    epochs = list(METHODS["selective"](replace(PLAN, private_state=state)))
    assert {step.state for steps in epochs for step in steps} == {state}
    if state == "published":
        assert [len(steps) for steps in epochs] == [7] * 4  # a step a batch of all points


def test_crt_without_public_points_is_dpsgd_on_the_redacted_text() -> None:
    plan = Plan(2, 2, 10, 16, {"all": 40, "public": 0, "private": 40})
    assert all(step.noisy for steps in METHODS["crt"](plan) for step in steps)


def test_an_exact_epoch_reads_every_point_once() -> None:
    assert len(PLAN.exact("original", "all")) == 10
    assert len(Plan(1, 1, 64, 1, {"all": 65, "public": 0, "private": 0}).exact("original", "all")) == 2
