"""Of epsilon = 0 a certificate says "changes nothing at all" only where no update read what is
protected: with much noise, or a large delta, epsilon is 0 as well.
"""

import pytest

from confide.certify.certificate import in_words
from confide.certify.claims import Claim, all_claims
from confide.certify.facts import NEIGHBOURS, POISSON, STABLE, Facts
from confide.types import AnyRelease, Release, Step, TokensName

NOTHING = "changes nothing at all (epsilon = 0)"
MASKED = Release(count=10, step=Step(view="redacted", pool="all", noisy=False, tokens="unmasked"))
PUBLIC = Release(count=10, step=Step(view="original", pool="all", noisy=False, tokens="public"))


def noised(pool: str = "all", tokens: TokensName = "all") -> Release:
    return Release(
        sample_rate=0.1,
        noise_multiplier=100.0,
        max_grad_norm=1.0,
        count=100,
        step=Step(view="original", pool=pool, noisy=True, tokens=tokens),
    )


def certified(*releases: AnyRelease) -> tuple[dict[str, Claim], str]:
    facts = Facts(releases=releases, delta=0.01, gamma=0.01, gamma_upper=0.02)
    claims = all_claims(facts)
    by_name = {claim["name"]: claim for claim in claims}
    return by_name, in_words(claims, facts.price, missing=facts.missing)


@pytest.mark.parametrize(
    "releases",
    [[noised()], [MASKED, noised()], [PUBLIC, noised("marked", "private")]],
    ids=["dpsgd", "jft", "selective"],
)
def test_much_noise_is_not_nothing(releases: list[AnyRelease]) -> None:
    by_name, says = certified(*releases)
    caught = by_name["secret_caught"]
    assert caught["epsilon"] == 0.0 and POISSON in caught["condition"]
    assert NOTHING not in says
    assert "by at most a factor of 1, but for a probability of 0.01" in says


def test_what_selective_training_depends_on_stays() -> None:
    by_name, _ = certified(PUBLIC, noised("marked", "private"))
    condition = by_name["secret_caught"]["condition"]
    assert NEIGHBOURS in condition and STABLE not in condition


def test_nothing_read_is_nothing_changed() -> None:
    by_name, says = certified(MASKED)
    condition = by_name["secret_caught"]["condition"]
    assert STABLE in condition and POISSON not in condition
    assert NOTHING in says
