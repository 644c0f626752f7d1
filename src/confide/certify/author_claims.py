"""What follows for single points where noise hides authors (`Step.unit`): what protects all points
of a person protects one.

One point more, less or another one is another mean of its author's gradients, so even adding a
point costs what replacing an author does. A secret is masked within one point, which changes one
contribution: its claims need nothing of their own here. A secret in the points of k authors is a
group of k, and k points have at most k authors (`Facts.groups`).
"""

from confide.certify.claims import Claim, Facts, claim, record_conditions, spent

HOW = "that of replacing its author"


def author_claims(facts: Facts) -> list[Claim]:
    """Empty where noise hides points."""
    if not facts.price.authors:
        return []
    value = spent(facts.price.record)(facts.delta)
    unit = f"{facts.one_point} in a pool that is only trained on with noise"
    found = []
    for relation in ("add_or_remove", "replace_one"):
        says = f"Privacy of {unit} ({relation.replace('_', ' ')})"
        held = record_conditions(facts, value)
        found.append(
            claim(
                f"point_{relation}",
                unit=unit,
                relation=relation,
                epsilon=value,
                delta=facts.delta,
                conditions=held,
                says=says,
                conversion=HOW,
            )
        )
    return found
