"""`confide epsilon`: what Poisson-subsampled Gaussian updates would cost, before any training."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from confide.certify.confidentiality import bayesian_at
from confide.dp.accounting import price as accounting
from confide.dp.accounting.banded import error_of_sums, inverse_root
from confide.dp.accounting.calibration import calibrate, check_ranges, updates
from confide.dp.accounting.curves import Relation
from confide.errors import InputError
from confide.output.escaping import say
from confide.output.rounding import ceiling, rounded_up
from confide.specs.training import LEAST_NOISE, MOST_NOISE
from confide.types import UNNAMED, Correlation, Release

Row = tuple[str, ...]
MOST_STEPS = 10**12
MOST_OF_GROUP = 10**6


def epsilon(
    *,
    sample_rate: float,
    steps: int,
    delta: float,
    noise_multiplier: float | None = None,
    target_epsilon: float | None = None,
    relation: str | None = None,
    gamma: float | None = None,
    delta2: float | None = None,
    group: int | None = None,
    releases_per_step: int | None = None,
    unamplified: bool = False,
    bands: int | None = None,
    order: str | None = None,
) -> None:
    """Print epsilon by relation and accountant.

    With group, gamma and delta2 also group and Bayesian confidentiality.

    sample_rate: probability that a record is in a batch.
    steps: number of noised updates.
    delta: of (epsilon, delta).
    noise_multiplier: standard deviation of the noise, over the norm that gradients are clipped to.
    target_epsilon: instead of noise_multiplier: first calibrate the noise to it.
    relation: replace_one (default) or add_or_remove, for which noise is calibrated.
    gamma: share of secrets that the policy misses, for Bayesian confidentiality.
    delta2: delta of Bayesian confidentiality.
    group: number of records that hold the same secret.
    releases_per_step: so many releases of a record share one draw of the batch.
    unamplified: who is drawn is no secret, and each record in steps * sample_rate of the batches
    (Selective-DPSGD as published).
    bands: noise is correlated over so many steps.
    order: of bands: sampled (default) or cyclic, as in a recipe.
    """
    target = 1.0 if target_epsilon is None else target_epsilon
    base = check_ranges(target, delta, sample_rate, steps, relation or "replace_one")
    check(
        noise_multiplier,
        steps=steps,
        gamma=gamma,
        delta2=delta2,
        group=group,
        releases_per_step=releases_per_step,
    )
    # k Gaussians about one record are one with sigma / sqrt(k)
    shared = math.sqrt(releases_per_step or 1)
    rate, correlation = correlated(sample_rate, bands, order)
    count = steps
    if correlation is not None and (releases_per_step or unamplified):
        message = "is priced by itself: leave out releases_per_step and unamplified"
        raise InputError(message, key="bands", value=bands)
    if unamplified:
        rate = 1.0
        count = max(1, math.ceil(steps * sample_rate))
    if noise_multiplier is None and target_epsilon is not None:
        least = shared * calibrate(
            target_epsilon, delta, rate, count, base, correlation=correlation
        )
        # as it is printed, so that what is printed has the prices beneath it
        noise_multiplier = float(ceiling(least, 5))
    elif noise_multiplier is None or target_epsilon is not None:
        message = "give either noise_multiplier or target_epsilon"
        raise InputError(message, key="noise_multiplier", value=noise_multiplier)
    mechanism = f"sample_rate {sample_rate}, {steps} steps, delta {delta}"
    lines = [f"noise_multiplier {noise_multiplier}, {mechanism}"]
    each = noise_multiplier / shared
    if releases_per_step or unamplified:
        lines.append(
            f"priced as {count} steps at sample_rate {rate:.5g}, noise_multiplier {each:.5g}"
        )
    releases = [updates(each, sample_rate=rate, steps=count, correlation=correlation)]
    if correlation is not None:
        lines.append(
            f"noise correlated over {bands} steps, {correlation.separation} groups in turns"
        )
        lines.append(in_sums(releases[0], sample_rate, delta, base))
    for row in table(releases, delta, gamma, delta2 or 0.0, group):
        lines.append(f"{row[0]:<42}" + "".join(f"{cell:>14}" for cell in row[1:]))
    say(*lines)


def correlated(
    sample_rate: float, bands: int | None, order: str | None
) -> tuple[float, Correlation | None]:
    """The sample rate of the group whose turn it is, and how noise hangs together; None: it does
    not. InputError for bands or an order that a recipe could not have.
    """
    if order not in (None, "sampled", "cyclic") or (order and bands is None):
        message = "is sampled or cyclic, and goes with bands"
        raise InputError(message, key="order", value=order)
    if bands is None:
        return sample_rate, None
    most = math.ceil(1 / sample_rate)
    if not 1 <= bands <= most:
        message = f"must lie between 1 and the {most} steps of one pass"
        raise InputError(message, key="bands", value=bands)
    groups = bands if order != "cyclic" else most
    rate = min(1.0, groups * sample_rate) if order != "cyclic" else 1.0
    return rate, Correlation(coefficients=inverse_root(bands), separation=groups, sequence=UNNAMED)


def in_sums(release: Release, sample_rate: float, delta: float, relation: Relation) -> str:
    """In words how large correlated noise is in sums of updates, against independent noise."""
    spent = accounting.epsilon([release], delta, relation)
    if release.correlation is None or not 0 < spent < math.inf:
        return "noise in sums of updates is not compared: epsilon is 0 or infinite"
    independent = calibrate(spent, delta, sample_rate, release.count, relation)
    alone = replace(release.correlation, coefficients=(1.0,))
    own = release.noise_multiplier * error_of_sums(release.correlation, release.count)
    ratio = own / (independent * error_of_sums(alone, release.count))
    return f"noise in sums of updates: {ratio:.3g} times that of independent noise, same epsilon"


def priced(
    *, noise_multiplier: float, sample_rate: float, steps: int, delta: float, relation: str
) -> float:
    """Epsilon by privacy loss distributions, with which the second accountant agrees."""
    base = check_ranges(1.0, delta, sample_rate, steps, relation)
    check(
        noise_multiplier, steps=steps, gamma=None, delta2=None, group=None, releases_per_step=None
    )
    ran = updates(noise_multiplier, sample_rate=sample_rate, steps=steps)
    return agreed([ran], delta, base)["pld"]


def agreed(releases: Sequence[Release], delta: float, relation: Relation) -> dict[str, float]:
    """Epsilon by every accountant; InputError where they do not agree, so that nothing is said."""
    try:
        return accounting.agree(releases, delta, relation)
    except ArithmeticError:
        message = "is so small, or updates are so many, that two accountants do not agree: no price"
        raise InputError(message, key="privacy.delta", value=delta) from None


def check(
    noise_multiplier: float | None,
    *,
    steps: int,
    gamma: float | None,
    delta2: float | None,
    group: int | None,
    releases_per_step: int | None,
) -> None:
    """InputError naming the first flag whose value makes no sense."""
    if noise_multiplier is not None:
        if not 0 < noise_multiplier < math.inf:
            raise InputError("must be positive", key="noise_multiplier", value=noise_multiplier)
        if not LEAST_NOISE <= noise_multiplier <= MOST_NOISE:
            message = f"must lie between {LEAST_NOISE:g} and {MOST_NOISE:g}"
            raise InputError(message, key="noise_multiplier", value=noise_multiplier)
    if steps > MOST_STEPS:
        raise InputError(f"must be at most {MOST_STEPS:,}", key="steps", value=steps)
    if group is not None and group > MOST_OF_GROUP:
        raise InputError(f"must be at most {MOST_OF_GROUP:,}", key="group", value=group)
    for key, value in (("gamma", gamma), ("delta2", delta2)):
        if value is not None and not 0 <= value <= 1:
            raise InputError("must lie between 0 and 1", key=key, value=value)
    if delta2 is not None and gamma is None:
        raise InputError("counts only beside gamma: give that, too", key="delta2", value=delta2)
    for key, value in (("group", group), ("releases_per_step", releases_per_step)):
        if value is not None and value < 1:
            raise InputError("must be at least 1", key=key, value=value)


def table(
    releases: Sequence[Release], delta: float, gamma: float | None, delta2: float, group: int | None
) -> Iterator[Row]:
    """Rows of text: a name and a number for each relation."""
    relations = accounting.RELATIONS
    yield ("", *relations)
    prices = {relation: agreed(releases, delta, relation) for relation in relations}
    for accountant in accounting.ACCOUNTANTS:
        yield (
            f"epsilon, {accountant}",
            *(rounded_up(prices[relation][accountant]) for relation in relations),
        )
    classic = (
        accounting.epsilon(releases, delta, relation, "rdp", "classic") for relation in relations
    )
    yield ("epsilon, rdp (classic conversion)", *map(rounded_up, classic))
    if group is not None:
        of_group = (accounting.group(releases, delta, group, relation)[0] for relation in relations)
        yield (f"group of {group}, same delta", *map(rounded_up, of_group))
    if gamma is not None:
        for divide, reading in ((True, "read at delta / gamma"), (False, "read at delta")):
            yield (
                f"Bayesian, gamma {gamma}, {reading}",
                *_bayesian(releases, delta, gamma, delta2, divide),
            )


def _bayesian(
    releases: Sequence[Release], delta: float, gamma: float, delta2: float, divide: bool
) -> Iterator[str]:
    for relation in accounting.RELATIONS:
        at = partial(accounting.epsilon, releases, relation=relation)
        yield rounded_up(bayesian_at(at, delta, gamma, delta2, divide=divide))
