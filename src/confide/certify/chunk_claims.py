"""What follows for points and secrets where training reads points in chunks (`train.packing`).

Points are laid end to end and cut. A record is a chunk (Kabra and Elenberg 2023 certify that
alone). A whole point lies in several, known to be at most k: it is a group of k. A secret of fewer
tokens than a chunk lies in two at most, or in one if no point is cut. Both hold against another
text of as many tokens only: any other number shifts all chunks behind it, and no group is that
large. Where nothing but the redacted view is read, masking a caught secret leaves every chunk the
same, without that condition.
"""

import math
from collections.abc import Iterator

from confide.certify.claims import Claim, claim, record_conditions
from confide.certify.facts import Facts
from confide.dp.accounting.price import group, or_infinity

SHIFTS = "none can help: another number of tokens shifts every chunk behind it"
OTHER_LENGTH = (
    "Confidentiality of a secret that leaves a trace, where what stands in its place has another "
    "number of tokens"
)


def chunk_claims(facts: Facts) -> Iterator[Claim]:
    """What holds for one point, and for a text of another length: nothing.

    None where points are records.
    """
    if facts.packing is None:
        return
    reached = facts.price.record
    most = facts.packing.most
    epsilon = math.inf
    way = "an exact update read it"
    if reached is not None:
        epsilon, way = group(reached, facts.delta, most)
    epsilon = or_infinity(epsilon)
    chunks = f"in at most {most} chunks"
    unit = f"{facts.one_point}, {chunks}, in a pool that is only trained on with noise"
    conditions = record_conditions(facts, epsilon)
    yield claim(
        facts,
        "point_replace_one",
        unit=unit,
        epsilon=epsilon,
        conditions=[*conditions, *(facts.lengths if epsilon < math.inf else [])],
        says=f"Privacy of {unit} (replace one)",
        conversion=way,
    )
    yield claim(
        facts,
        "point_add_or_remove",
        unit=unit,
        relation="add_or_remove",
        epsilon=math.inf,
        conditions=facts.hopeless if reached is None else [SHIFTS],
        says=f"Privacy of {unit} (add or remove)",
    )
    yield claim(
        facts,
        "secret_other_length",
        unit=facts.secret,
        epsilon=math.inf,
        conditions=facts.hopeless if facts.price.drawn is None else [SHIFTS],
        says=OTHER_LENGTH,
    )
