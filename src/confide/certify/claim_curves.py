"""A certificate's claims as curves, delta at many epsilons, for audits to be held against.

A curve says more than the one pair of its claim. Only claims that an audit is compared with, and of
these only where the noised updates are the whole price: a secret that lies in several chunks is a
group, and its claim stays the one pair.
"""

from collections.abc import Sequence

from confide.certify.facts import SECRET_CAUGHT, SECRET_MISSED, Facts
from confide.dp.accounting.curves import Relation, pld_curve
from confide.dp.accounting.price import mechanisms_of
from confide.dp.accounting.tradeoff import Points, points_of
from confide.types import AnyRelease


def claim_curves(facts: Facts) -> dict[str, Points]:
    """Curves by the name of their claim; none where nothing finite is claimed."""
    price = facts.price
    wanted: dict[str, tuple[Sequence[AnyRelease] | None, Relation]] = {
        "record_add_or_remove_pld": (price.record, "add_or_remove"),
        "record_replace_one_pld": (price.record, "replace_one"),
    }
    if price.authors:
        wanted["point_add_or_remove"] = (price.record, "replace_one")
    if facts.pieces == 1:
        wanted[SECRET_CAUGHT] = (price.caught, "replace_one")
        wanted[SECRET_MISSED] = (price.missed, "replace_one")
    curves = {
        name: points_of(pld_curve(mechanisms_of(releases), relation))
        for name, (releases, relation) in wanted.items()
        if releases is not None
    }
    return {name: points for name, points in curves.items() if points}
