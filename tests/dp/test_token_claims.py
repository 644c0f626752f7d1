"""Selective-DPSGD: what is claimed of caught and missed secrets in each of its ways, and what its
paper would print.
"""

import math
from typing import Any

import pytest

from confide.certify.claims import (
    STABLE,
    TOKENS,
    Claim,
    Facts,
    all_claims,
    epoch_claims,
    headline,
)
from confide.certify.confidentiality import caught_only
from confide.certify.facts import COPIES_KEPT, NEIGHBOURS, ONE_POINT
from confide.certify.token_claims import token_claims
from confide.dp.accounting.curves import gaussian_curve
from confide.dp.accounting.price import epsilon, group, price, solve
from confide.types import Release, StateRelease, Step
from tests import releases

DELTA = 8e-5
SIGMA = 2.0


def exact(
    tokens: str = "public", state: str = "reset", view: str = "original", pool: str = "all"
) -> Release:
    return releases.exact(view=view, pool=pool, count=5, tokens=tokens, state=state)


def noisy(
    state: str = "reset", count: int = 60, pool: str = "marked", rate: float = 0.05
) -> Release:
    where = {"view": "original", "pool": pool, "tokens": "private", "state": state}
    return releases.noised(rate=rate, sigma=SIGMA, count=count, **where)


def shown(count: int) -> StateRelease:
    return StateRelease(noise_multiplier=SIGMA, max_grad_norm=1.0, count=count)


RESET = [exact(), noisy()]
NOISE = [exact(state="noise"), shown(12), noisy("noise")]
CARRY = [exact(state="carry"), noisy("carry")]
PUBLISHED = [exact(state="published"), noisy("published", pool="all")] * 3


def claims(releases: list[Release], **given: Any) -> dict[str, Claim]:
    known = {
        "gamma": 0.0,
        "gamma_upper": 0.01,
        "delta2_upper": 0.01,
        "points_after": 2,
        "points_before": 3,
    }
    facts = Facts(releases=releases, delta=DELTA, **known | given)
    return {claim["name"]: claim for claim in [*all_claims(facts), *token_claims(facts)]}


def test_only_noised_updates_reach_a_caught_secret_and_exact_ones_a_missed_one() -> None:
    found = price(RESET)
    assert found.record is found.missed is None and found.caught == RESET[1:]
    assert found.by_token and not found.conditional and found.reason is None
    assert price(NOISE).caught == NOISE[1:]


@pytest.mark.parametrize("tokens", ["all", "private"])
def test_an_exact_update_on_private_tokens_spoils_all(tokens: str) -> None:
    assert price([*RESET, exact(tokens)]).caught is None


def test_public_tokens_are_those_of_the_original_text() -> None:
    with pytest.raises(ValueError, match="in the original text alone"):
        price([exact(view="redacted")])


def test_what_tells_tokens_apart_is_not_composed_with_what_does_not() -> None:
    """Leaving a secret's tokens out of a sum that they are a part of moves it by up to 2 C; and one
    secret in place of another, both private, may be redacted in another way.
    """
    for other in (
        releases.noised(rate=0.1, sigma=SIGMA, count=5),
        releases.exact(view="redacted", pool="all"),
        releases.exact(view="redacted", pool="all", tokens="unmasked"),
    ):
        found = price([other, *RESET])
        assert found.caught is found.record is None and "told the tokens" in (found.reason or "")
    quiet = price([noisy()])  # no exact update at all: a noised one bounds every record
    assert quiet.record == quiet.missed == quiet.caught == [noisy()]


@pytest.mark.parametrize("releases", [CARRY, PUBLISHED, [exact(state="noise"), noisy("noise")]])
def test_where_states_or_batches_tell_nothing_is_bounded_and_the_reason_is_given(
    releases: list[Release],
) -> None:
    reason = price(releases).reason
    found = claims(releases)
    values = {name: claim["epsilon"] for name, claim in found.items() if name != "as_published"}
    assert reason and set(values.values()) == {math.inf}
    assert (
        reason in found["secret_caught"]["condition"] and reason in found["bayesian"]["condition"]
    )


def test_claims_of_reset_states() -> None:
    found = claims(RESET)
    value = epsilon(RESET[1:], DELTA)
    assert found["secret_caught"]["epsilon"] == pytest.approx(value)
    assert found["secret_caught"]["unit"] == TOKENS == "one secret's tokens, their number public"
    assert {
        found[name]["epsilon"]
        for name in ("record_replace_one_pld", "secret_missed", "group_after_dedup")
    } == {math.inf}
    assert found["caught_zero_out_pld"]["epsilon"] == pytest.approx(
        epsilon(RESET[1:], DELTA, "zero_out")
    )
    assert (
        found["caught_zero_out_pld"]["epsilon"]
        < value
        <= found["caught_replace_one_rdp"]["epsilon"]
    )
    # of two secrets in a point, one that is left out changes what both give together
    for accountant in ("pld", "rdp"):
        left_out = found[f"caught_zero_out_{accountant}"]
        assert left_out["unit"].startswith("all private tokens of one turn of a dialogue")
        assert "all private tokens of one turn" in left_out["sentence"]
    assert found["caught_replace_one_rdp"]["unit"] == TOKENS
    assert found["group_caught"]["epsilon"] == pytest.approx(group(RESET[1:], DELTA, 2)[0])
    assert (
        claims(RESET, points_after=None)["group_caught"]["epsilon"]
        > found["group_caught"]["epsilon"]
    )
    assert "as_published" not in found


@pytest.mark.parametrize("dedup", [True, False])
def test_other_tokens_may_make_a_text_one_of_several_copies(dedup: bool) -> None:
    """Then another record changes, too; and what stands in several points is a group."""
    found = claims(RESET, dedup=dedup, labels=("id",))
    single = ("secret_caught", "caught_replace_one_rdp", "caught_zero_out_pld", "bayesian")
    for name in (*single, "bayesian_missing", "group_caught"):
        assert (COPIES_KEPT in found[name]["condition"]) is dedup
        assert (ONE_POINT in found[name]["condition"]) is (name != "group_caught")
    assert found["group_caught"]["unit"].startswith("all occurrences of one secret that the corpus")
    assert 'marks it alone as "id"' in found["group_caught"]["condition"]


def test_gamma_counts_what_is_missed_as_unprotected() -> None:
    value = epsilon(RESET[1:], DELTA)
    assert claims(RESET)["bayesian"]["epsilon"] == pytest.approx(
        value
    )  # nothing is missed: as one that is caught
    assert claims(RESET)["bayesian_upper"]["epsilon"] == math.inf
    assert claims(RESET, gamma=0.1)["bayesian"]["epsilon"] == math.inf
    unknown = claims(RESET, gamma=None, gamma_upper=None)
    assert not [name for name in unknown if "bayesian" in name]
    little = claims(RESET, gamma=1e-5)["bayesian"]["epsilon"]
    assert (
        little == pytest.approx(epsilon(RESET[1:], (DELTA - 1e-5) / (1 - 1e-5))) and little > value
    )
    rest = claims(RESET)["bayesian_missing"]
    assert rest["epsilon"] == pytest.approx(value) and rest["delta"] == pytest.approx(
        0.01 + 0.99 * DELTA
    )


def test_fine_tuning_twice_protects_caught_secrets_by_its_second_stage_alone() -> None:
    first = exact("unmasked", view="redacted")
    second = releases.noised(sigma=SIGMA, count=60, view="original", pool="all")
    paid = price([first, second])
    assert (paid.record, paid.missed, paid.caught) == (None, None, [second])
    assert paid.screened and not paid.by_token and paid.drawn == [second]
    found = claims([first, second])
    value = epsilon([second], DELTA)
    assert found["secret_caught"]["epsilon"] == found["bayesian"]["epsilon"] == pytest.approx(value)
    assert (
        found["secret_missed"]["epsilon"] == found["record_replace_one_pld"]["epsilon"] == math.inf
    )
    assert claims([first, second], gamma=0.1)["bayesian"]["epsilon"] == math.inf
    assert (
        STABLE in found["secret_caught"]["condition"]
        and NEIGHBOURS not in found["secret_caught"]["condition"]
    )
    assert found["group_caught"]["epsilon"] == pytest.approx(group([second], DELTA, 2)[0])
    assert (
        found["caught_replace_one_rdp"]["epsilon"] >= value and "caught_zero_out_pld" not in found
    )
    assert "one secret within" in found["secret_caught"]["unit"]
    after_first = claims([first])
    assert after_first["secret_caught"]["epsilon"] == 0 and after_first["bayesian"]["epsilon"] == 0
    assert claims([first], gamma=0.1)["bayesian"]["epsilon"] == math.inf


def test_caught_only_bounds_every_mixture() -> None:
    """A missed secret may be told for certain: randomized response with a share gamma of
    certainty.
    """
    gamma = 0.02
    value = 0.7
    keep = math.exp(value) / (1 + math.exp(value))
    mixture = [(1 - gamma) * keep + gamma, (1 - gamma) * (1 - keep)]
    other = [(1 - gamma) * (1 - keep), (1 - gamma) * keep + gamma]
    delta = 0.05
    found = caught_only(lambda _: value, delta, gamma)
    assert (
        sum(max(0.0, p - math.exp(found) * q) for p, q in zip(mixture, other, strict=True)) <= delta
    )
    assert caught_only(lambda d: -math.log(d), delta, gamma) == pytest.approx(
        -math.log((delta - gamma) / (1 - gamma))
    )
    assert (
        caught_only(lambda _: value, delta, delta) == math.inf
        and caught_only(lambda _: value, delta, 0.0) == value
    )


def test_noised_states_cost_what_unsampled_gaussians_cost() -> None:
    found = claims(NOISE)["secret_caught"]["epsilon"]
    states = solve_gaussian(2 * math.sqrt(12) / SIGMA)
    assert states < found < states + epsilon(NOISE[2:], DELTA)
    assert found > 5 * claims(RESET)["secret_caught"]["epsilon"]


def solve_gaussian(mu: float) -> float:
    from confide.dp.accounting.price import Bound

    return solve(Bound(gaussian_curve(mu)), DELTA)


def test_the_papers_number_stands_beside_infinity() -> None:
    rate = 1 / 3337
    count = round(3.06 * 50 * 3337)
    step = Step(view="original", pool="all", noisy=True, tokens="private", state="published")
    found = claims(
        [
            exact(state="published"),
            Release(
                step=step, sample_rate=rate, noise_multiplier=0.7, max_grad_norm=5e-3, count=count
            ),
        ]
    )
    assert found["as_published"]["epsilon"] == pytest.approx(
        2.74, abs=0.006
    )  # CustomerSim, Table 2
    assert "not a valid bound" in found["as_published"]["condition"]
    assert (found["as_published"]["accountant"], found["as_published"]["conversion"]) == (
        "rdp",
        "classic",
    )


def test_headline_and_epochs_agree() -> None:
    facts = Facts(releases=RESET, delta=DELTA, gamma=0.0, gamma_upper=0.01)
    epochs = [(1, [exact()]), (2, [noisy(count=20)]), (3, [noisy(count=40)])]
    rows = epoch_claims(facts, [], epochs)
    head = headline(facts)
    assert [row["record_epsilon"] for row in rows] == [math.inf] * 3 and head[
        "record_epsilon"
    ] == math.inf
    values = [row["bayesian_epsilon"] for row in rows]
    assert values[0] == 0 < values[1] < values[2] == pytest.approx(head["bayesian_epsilon"])
