"""What follows for points and secrets where training reads points end to end, cut into chunks
(`confide.train.packing`).

A record is a chunk (Kabra and Elenberg 2023 certify that alone). A whole point lies in several,
known to be at most k: it is a group of k. A secret of fewer tokens than a chunk lies in two at
most, or in one if no point is cut. Both hold against another text of as many tokens only: any other
number shifts all chunks behind it, and no group is that large. Where nothing but the redacted view
is read, masking a caught secret leaves every chunk the same, without that condition.
"""

import math

from confide.certify.claims import Claim, Facts, claim, record_conditions
from confide.dp.accounting.price import group, rounded_up

SHIFTS = "none can help: another number of tokens shifts every chunk behind it"


def chunk_claims(facts: Facts) -> list[Claim]:
    """Empty where points are records. What holds for one point, and what for a text of another
    length: nothing.
    """
    if facts.packing is None:
        return []
    reached = facts.price.record
    most = facts.packing.most
    value, way = (
        (math.inf, "an exact update read it")
        if reached is None
        else group(reached, facts.delta, most)
    )
    value = rounded_up(value)
    unit = (
        f"{facts.one_point}, in at most {most} chunks, in a pool that is only trained on with noise"
    )
    held = [*record_conditions(facts, value), *(facts.lengths if value < math.inf else [])]
    says = f"Privacy of {unit}"
    shifts = facts.hopeless if reached is None else [SHIFTS]
    missed = facts.hopeless if facts.price.drawn is None else [SHIFTS]
    secret = "Confidentiality of a secret that leaves a trace, where what stands in its place has another number of tokens"
    rows = [
        ("point_replace_one", unit, "replace_one", value, held, f"{says} (replace one)", way),
        (
            "point_add_or_remove",
            unit,
            "add_or_remove",
            math.inf,
            shifts,
            f"{says} (add or remove)",
            "none",
        ),
        ("secret_other_length", facts.secret, "replace_one", math.inf, missed, secret, "none"),
    ]
    return [claim(*row[:4], facts.delta, *row[4:6], conversion=row[6]) for row in rows]
