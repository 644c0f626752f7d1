"""What each method would certify on measured policies, before it is trained.

Steps and noise are as `train` makes them, priced as `certify` prices them.
"""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

from confide.advisor.advice import FROM_PROTECTED, Option, Wish
from confide.certify.certificate import facts_of
from confide.certify.claims import bayesian_epsilon, spent, spent_on_secret
from confide.certify.facts import Facts
from confide.certify.literal import price_of, records_changed
from confide.dp.accounting.price import group, or_infinity
from confide.errors import InputError
from confide.specs import CertifySpec, PrivacySpec, TrainSpec
from confide.train.planning import enumerate_steps, noise_for, planned
from confide.train.sizes import sizes_of
from confide.types import AnyRelease, Partition, UnitName

# distinct texts that a missed secret may stand in, where nobody knows in how many it does
EXAMPLES = (2, 10)
# the others certify nothing
PRICED = ("crt", "dpsgd", "selective", "jft", "schedule", "redacted", "nonprivate")


def priced(
    spec: CertifySpec,
    dataset: str,
    partition: Partition,
    recall: dict[str, Any],
    neighbours: dict[str, Any],
    wish: Wish,
) -> Option:
    """The price of a job's method on its partition.

    `recall` is recall.json, `neighbours` neighbours.json.
    """
    try:
        releases = planned_updates(spec.train, partition)
    except InputError as error:
        return Option(dataset, spec.train.method, problem=str(error))
    reasons = list(unbounded(spec.train, neighbours))
    facts = facts_of(
        spec,
        releases=releases,
        measured=recall,
        missed=neighbours,
        reasons=reasons,
        packing=None,
    )
    price = facts.price
    random = None
    if facts.gamma_upper is not None:
        drawn = spent_on_secret(facts, price.drawn)
        random = bayesian_epsilon(facts, facts.gamma_upper, drawn)
    alone = None
    if facts.dedup:
        alone = price_of(facts, records_changed(facts, caught=True))(wish.delta)
    return Option(
        dataset,
        spec.train.method,
        noise=max((release.noise_multiplier for release in releases), default=0.0) or None,
        caught=spent_on_secret(facts, price.caught)(wish.delta),
        missed=spent_on_secret(facts, price.missed)(wish.delta),
        random=random,
        record=spent(price.record, wish.relation)(wish.delta),
        conditional=facts.conditional,
        copies=bool(facts.copies_found),
        alone=alone,
        several=several(facts, wish),
        unbounded=tuple(reasons),
    )


def several(facts: Facts, wish: Wish) -> dict[int, float]:
    """Epsilon of a missed secret that stands in several texts, by their number.

    It is that of the most frequent secret, or examples where no secrets are known. Empty where
    nothing bounds even a secret in one text, and where each stands in one alone.
    """
    releases = facts.price.missed
    if wish.unit != "secret" or not releases:
        return {}
    if spent_on_secret(facts, releases)(wish.delta) == math.inf:
        return {}
    most = facts.points_after if facts.dedup else facts.points_before
    sizes = EXAMPLES if most is None else (most,)
    return {size: or_infinity(group(releases, wish.delta, size)[0]) for size in sizes if size > 1}


def with_wish(spec: CertifySpec, method: str, dedup: bool, wish: Wish) -> CertifySpec:
    """A job's specification with another method, made for the wish.

    Selective-DPSGD resets its states, or nothing holds.
    """
    unit: UnitName = "author" if wish.unit == "author" else "point"
    privacy = PrivacySpec(epsilon=wish.epsilon, delta=wish.delta, relation=wish.relation, unit=unit)
    recipe = spec.train.recipe.model_copy(update={"private_state": "reset"})
    data = spec.train.data.model_copy(update={"dedup": dedup and unit == "point"})
    train = spec.train.model_copy(
        update={"method": method, "privacy": privacy, "recipe": recipe, "data": data}
    )
    return spec.model_copy(update={"train": train})


def planned_updates(spec: TrainSpec, partition: Partition) -> list[AnyRelease]:
    """The updates that a job would make; InputError where it could not."""
    if spec.pack is not None:
        message = "chunks of text are not priced before training"
        raise InputError(message, key="pack", value=spec.pack)
    sizes = sizes_of(spec, partition)
    epochs = enumerate_steps(spec, sizes)
    noise_multiplier = noise_for(spec, epochs, sizes)
    by_epoch = planned(spec, epochs, noise_multiplier=noise_multiplier, sizes=sizes)
    return list(chain.from_iterable(by_epoch))


def unbounded(spec: TrainSpec, neighbours: dict[str, Any]) -> Iterator[str]:
    """Why the updates would not bound what the model has seen, as the certificate would say it."""
    for source in spec.reads:
        if not source.public:
            yield f"the {source.stage} {source.source} {FROM_PROTECTED}"
    if spec.init is not None and not spec.init_public:
        yield f"it starts from {spec.init}, which has seen protected text"
    if neighbours["misaligned"]:
        yield f"masking one secret changed more than one point ({neighbours['misaligned']} secrets)"
