"""What follows for single points where noise hides authors (`Step.unit`).

What protects all points of a person protects one. One point more, less or another one is another
mean of its author's gradients, so even adding a point costs what replacing an author does. A secret
is masked within one point, which changes one contribution: its claims need nothing of their own
here. A secret in the points of k authors is a group of k, and k points have at most k authors
(`Facts.groups`).
"""

from collections.abc import Iterator

from confide.certify.claims import RELATIONS, Claim, claim, record_conditions, spent
from confide.certify.facts import Facts


def author_claims(facts: Facts) -> Iterator[Claim]:
    """Claims about one point; none where noise hides points."""
    if not facts.price.authors:
        return
    epsilon = spent(facts.price.record)(facts.delta)
    unit = f"{facts.one_point} in a pool that is only trained on with noise"
    for relation in RELATIONS:
        yield claim(
            facts,
            f"point_{relation}",
            unit=unit,
            relation=relation,
            epsilon=epsilon,
            conditions=record_conditions(facts, epsilon),
            says=f"Privacy of {unit} ({relation.replace('_', ' ')})",
            conversion="that of replacing its author",
        )
