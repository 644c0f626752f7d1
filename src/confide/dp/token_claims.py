"""What Selective-DPSGD (Shi et al. 2022) may claim of the tokens of a caught secret, and what its paper prints.

Neighbours are the paper's F-neighbours (Definition 3) made definite: one point's private tokens are others, or add nothing to
any sum; which tokens are private, all public tokens, and the cut into points are the same. A point's private losses are one
contribution of norm C to each update that draws it, so the pair of distributions is that of replacing or leaving out a point.
"""

from confide.dp.accounting import agree, epsilon, group
from confide.dp.claims import NEIGHBOURS, POISSON, TOKENS, Claim, Facts, claim


def token_claims(facts: Facts) -> list[Claim]:
    """Empty unless training told tokens apart. The claim for replaced tokens by PLD is `secret_caught`."""
    return [*published_claims(facts), *(caught_claims(facts) if facts.price.by_token and facts.price.caught else [])]


def caught_claims(facts: Facts) -> list[Claim]:
    """A caught secret's tokens, replaced or left out of every sum, by both accountants; and one that stands in many points."""
    caught, held, found = facts.price.caught or [], [POISSON, NEIGHBOURS], []
    prices = {relation: agree(caught, facts.delta, relation) for relation in ("replace_one", "zero_out")}
    for relation, words in (("replace_one", "replaced"), ("zero_out", "left out of every sum")):
        for accountant, value in prices[relation].items():
            if (relation, accountant) != ("replace_one", "pld"):
                says, conversion = (
                    f"Privacy of a caught secret's tokens, {words}",
                    "none" if accountant == "pld" else "improved",
                )
                conversion += ", two hops of zero_out" if (relation, accountant) == ("replace_one", "rdp") else ""
                how = {"accountant": accountant, "conversion": conversion}
                found.append(claim(f"tokens_{relation}_{accountant}", TOKENS, relation, value, facts.delta, held, says, **how))
    if facts.gamma_upper is not None:  # as `bayesian_missing` of redaction: what is missed is what delta is for
        says, delta = "Confidentiality of a random secret but for the chance that the policy misses it", facts.gamma_upper
        delta, unit = delta + (1 - delta) * facts.delta, TOKENS.replace("one", "one random")
        found.append(claim("bayesian_missing", unit, "replace_one", prices["replace_one"]["pld"], delta, held, says))
    size = facts.points_before if facts.points_after is None else facts.points_after
    if size is not None:
        value, way = group(caught, facts.delta, size)
        says, unit = f"Confidentiality of a caught secret that stands in {size} points", f"all occurrences of {TOKENS}"
        found.append(claim("group_caught", unit, "replace_one", value, facts.delta, held, says, conversion=way))
    return found


def published_claims(facts: Facts) -> list[Claim]:
    """What the paper would print of training as it is published: no bound, for batches and states are not accounted for."""
    if not (published := facts.price.published):
        return []
    value = epsilon(published, facts.delta, "add_or_remove", "rdp", "classic")
    held = ["not a valid bound: it takes batches that exact updates have read for secret, and leaves the noised states out"]
    how = {"accountant": "rdp", "conversion": "classic"}
    says = "Selective differential privacy as its paper counts it, which does not hold"
    return [claim("as_published", TOKENS, "add_or_remove", value, facts.delta, held, says, **how)]
