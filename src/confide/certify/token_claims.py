"""What may be claimed where noised updates protect a caught secret alone.

That is Selective-DPSGD (Shi et al. 2022) and JFT. For Selective-DPSGD neighbours are the paper's
F-neighbours (Definition 3) made definite: one point's private tokens are others, or add nothing to
any sum; which tokens are private, all public tokens, and the cut into points are the same. A
point's private losses are one contribution of norm C to each update that draws it, so the pair of
distributions is that of replacing or leaving out a point. For JFT a secret is replaced within its
point, as everywhere else. What the first paper prints stands beside.
"""

from collections.abc import Iterator, Sequence

from confide.certify.claims import BUT_FOR_MISSES, Claim, claim, conversion_of
from confide.certify.facts import ONE_POINT, STABLE, TOKENS, Facts
from confide.dp.accounting.curves import Relation
from confide.dp.accounting.price import agree, epsilon, group
from confide.types import Release

NO_BOUND = (
    "not a valid bound: it takes batches that exact updates have read for secret, "
    "and leaves the noised states out"
)


NO_BOUND_BY_TOKENS = (
    "not a valid bound: it leaves out that gradients of other tokens have no noise, "
    "and these read what stands before them"
)
NO_BOUND_BY_SCORES = (
    "not a valid bound: it counts the noise of the highest score, "
    "and the text decides how much there is, down to none"
)


def token_claims(facts: Facts) -> Iterator[Claim]:
    """None where more or less than caught secrets is protected.

    The claim for replaced ones by PLD is `secret_caught`.
    """
    if facts.price.published:
        yield published_claim(facts, facts.price.published)
    if facts.price.caught_alone:
        yield from caught_claims(facts)


def caught_claims(facts: Facts) -> Iterator[Claim]:
    """A caught secret, one drawn at random, and one that stands in many points.

    A caught secret is replaced or, where tokens are told apart, all that are private of its point
    are left out of every sum: of two secrets in a point one alone is not, since what is clipped is
    what both give together. Both accountants price that.
    """
    caught = facts.price.caught or []
    conditions = [facts.sampled, *facts.lengths, *facts.hidden_too]
    all_of_a_point = f"all private tokens of {facts.one_point}, their number public"
    what = "Confidentiality of a caught secret"
    changes: dict[Relation, tuple[str, str]] = {}
    if facts.price.by_token:
        what = "Privacy of a caught secret's tokens"
        left_out = f"Privacy of all private tokens of {facts.one_point}, left out of every sum"
        changes["zero_out"] = (all_of_a_point, left_out)
        conditions += facts.neighbours
    else:
        conditions += [STABLE, *facts.marks]
    changes["replace_one"] = (facts.secret, f"{what}, replaced")
    if facts.pieces == 1:
        prices = {relation: agree(caught, facts.delta, relation) for relation in changes}
    else:
        prices = {"replace_one": {"pld": group(caught, facts.delta, facts.pieces)[0]}}
    for relation, by_accountant in prices.items():
        for accountant, value in by_accountant.items():
            if (relation, accountant) != ("replace_one", "pld"):
                yield claim(
                    facts,
                    f"caught_{relation}_{accountant}",
                    unit=changes[relation][0],
                    relation=relation,
                    epsilon=value,
                    conditions=conditions,
                    says=changes[relation][1],
                    accountant=accountant,
                    conversion=conversion_of(accountant, relation, hop="zero_out"),
                )
    if facts.gamma_upper is not None and facts.gamma_upper < 1:  # else delta would be 1
        # as `bayesian_missing` of redaction: what is missed is what delta is for
        yield claim(
            facts,
            "bayesian_missing",
            unit=facts.random_secret,
            epsilon=prices["replace_one"]["pld"],
            delta=facts.gamma_upper + (1 - facts.gamma_upper) * facts.delta,
            conditions=[*conditions, facts.bound_words],
            says=BUT_FOR_MISSES,
        )
    counted = "group_before_dedup" if facts.points_after is None else "group_after_dedup"
    size, of = facts.groups[counted]
    if size is not None:
        value, way = group(caught, facts.delta, size)
        yield claim(
            facts,
            "group_caught",
            unit=f"all occurrences of one secret that the corpus marks{facts.marked_as} "
            f"({size} {of})",
            epsilon=value,
            conditions=[*(one for one in conditions if one != ONE_POINT), facts.nowhere_else],
            says=f"Confidentiality of a caught secret that stands in {size} {of}",
            conversion=way,
        )


def published_claim(facts: Facts, published: Sequence[Release]) -> Claim:
    """What the paper would print of training as it is published: no bound.

    Batches and states are not accounted for; of ATDP and SA-ADP, gradients without noise are not.
    """
    counted = {
        "none": (NO_BOUND, "Selective differential privacy as its paper counts it"),
        "tokens": (NO_BOUND_BY_TOKENS, "Differential privacy as the paper of ATDP counts it"),
        "scores": (NO_BOUND_BY_SCORES, "Differential privacy as the paper of SA-ADP counts it"),
    }
    kinds = list(dict.fromkeys(release.step.weighing for release in published))
    what = counted[kinds[0]][1] if len(kinds) == 1 else "Differential privacy as papers count it"
    return claim(
        facts,
        "as_published",
        unit=TOKENS,
        relation="add_or_remove",
        epsilon=epsilon(published, facts.delta, "add_or_remove", "rdp", "classic"),
        conditions=[counted[kind][0] for kind in kinds],
        says=f"{what}, which does not hold",
        accountant="rdp",
        conversion="classic",
    )
