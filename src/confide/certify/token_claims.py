"""What may be claimed where only a caught secret is protected, by noised updates: Selective-DPSGD
(Shi et al. 2022) and JFT.

For Selective-DPSGD neighbours are the paper's F-neighbours (Definition 3) made definite: one
point's private tokens are others, or add nothing to any sum; which tokens are private, all public
tokens, and the cut into points are the same. A point's private losses are one contribution of norm
C to each update that draws it, so the pair of distributions is that of replacing or leaving out a
point. For JFT a secret is replaced within its point, as everywhere else. What the first paper
prints stands beside.
"""

from confide.certify.claims import CONTEXT_FREE, NEIGHBOURS, TOKENS, Claim, Facts, claim
from confide.dp.accounting.price import agree, epsilon, group


def token_claims(facts: Facts) -> list[Claim]:
    """Empty where more or less than caught secrets is protected. The claim for replaced ones by PLD
    is `secret_caught`.
    """
    return [*published_claims(facts), *(caught_claims(facts) if facts.price.caught_alone else [])]


def caught_claims(facts: Facts) -> list[Claim]:
    """A caught secret, replaced or (its tokens) left out of every sum, by both accountants; one
    that stands in many points.
    """
    caught = facts.price.caught or []
    by_token = facts.price.by_token
    found = []
    held = [
        facts.sampled,
        *facts.lengths,
        *([NEIGHBOURS] if by_token else [CONTEXT_FREE, *facts.marks]),
    ]
    words = {"replace_one": "replaced"} | (
        {"zero_out": "left out of every sum"} if by_token else {}
    )
    what = (
        "Privacy of a caught secret's tokens" if by_token else "Confidentiality of a caught secret"
    )
    if facts.pieces == 1:
        prices = {relation: agree(caught, facts.delta, relation) for relation in words}
    else:
        prices = {"replace_one": {"pld": group(caught, facts.delta, facts.pieces)[0]}}
    for relation, found_by in prices.items():
        for accountant, value in found_by.items():
            if (relation, accountant) != ("replace_one", "pld"):
                conversion = "none" if accountant == "pld" else "improved"
                conversion += (
                    ", two hops of zero_out"
                    if (relation, accountant) == ("replace_one", "rdp")
                    else ""
                )
                how = {"accountant": accountant, "conversion": conversion}
                name = f"caught_{relation}_{accountant}"
                found.append(
                    claim(
                        name,
                        unit=facts.secret,
                        relation=relation,
                        epsilon=value,
                        delta=facts.delta,
                        conditions=held,
                        says=f"{what}, {words[relation]}",
                        **how,
                    )
                )
    if (
        facts.gamma_upper is not None
    ):  # as `bayesian_missing` of redaction: what is missed is what delta is for
        says = "Confidentiality of a random secret but for the chance that the policy misses it"
        delta = facts.gamma_upper
        delta = delta + (1 - delta) * facts.delta
        unit = facts.secret.replace("one", "one random", 1)
        bounded = [*held, facts.bound_words]
        found.append(
            claim(
                "bayesian_missing",
                unit=unit,
                relation="replace_one",
                epsilon=prices["replace_one"]["pld"],
                delta=delta,
                conditions=bounded,
                says=says,
            )
        )
    sizes = facts.groups
    size, of = sizes["group_before_dedup" if facts.points_after is None else "group_after_dedup"]
    if size is not None:
        value, conversion = group(caught, facts.delta, size)
        says = f"Confidentiality of a caught secret that stands in {size} {of}"
        unit = f"all occurrences of {facts.secret}"
        found.append(
            claim(
                "group_caught",
                unit=unit,
                relation="replace_one",
                epsilon=value,
                delta=facts.delta,
                conditions=held,
                says=says,
                conversion=conversion,
            )
        )
    return found


def published_claims(facts: Facts) -> list[Claim]:
    """What the paper would print of training as it is published: no bound, for batches and states
    are not accounted for.
    """
    if not (published := facts.price.published):
        return []
    value = epsilon(published, facts.delta, "add_or_remove", "rdp", "classic")
    held = [
        "not a valid bound: it takes batches that exact updates have read for secret, and leaves the noised states out"
    ]
    how = {"accountant": "rdp", "conversion": "classic"}
    says = "Selective differential privacy as its paper counts it, which does not hold"
    return [
        claim(
            "as_published",
            unit=TOKENS,
            relation="add_or_remove",
            epsilon=value,
            delta=facts.delta,
            conditions=held,
            says=says,
            **how,
        )
    ]
