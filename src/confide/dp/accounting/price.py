"""Prices of a ledger's releases: epsilon at a given delta, by two accountants.

They must agree in order. An update with noise on a pool costs its Poisson-subsampled Gaussian. An
exact update costs nothing to a secret only where its points cannot hold that secret: on the public
pool (if the conservative policy catches every miss of the policy), on the redacted text (if the
policy catches it), or on public tokens (Selective-DPSGD; the same). Everything else is epsilon =
infinity. An unknown event raises.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from confide.dp.accounting import banded
from confide.dp.accounting.bisection import narrowed
from confide.dp.accounting.curves import (
    Conversion,
    Curve,
    Mechanism,
    Mechanisms,
    Relation,
    pld_curve,
    rdp_curve,
    shift,
    unsampled_curve,
)
from confide.dp.ledger import check_release, updates_of
from confide.dp.mechanism.discrete import DISTANCE
from confide.types import AnyRelease, Correlation, Release, StateRelease, Step

RELATIONS: tuple[Relation, ...] = ("add_or_remove", "replace_one", "zero_out")
MOST_MIXED = 128  # records of a group whose mixture is priced on a grid: tenths of a second
MEANINGLESS = 1e6  # an epsilon beyond it says nothing that infinity does not
TOLERANCE = 1e-2  # by which a grid may exceed the Renyi bound before the two are said to disagree


class Bound(NamedTuple):
    """A curve of log delta, and how many times it must be passed to get from D to D'."""

    curve: Curve
    hops: int = 1


def pld(mechanisms: Mechanisms, relation: Relation, conversion: Conversion = "improved") -> Bound:
    """Privacy loss distributions, directly for each relation (`conversion` has no meaning here)."""
    return Bound(pld_curve(mechanisms, relation))


def rdp(mechanisms: Mechanisms, relation: Relation, conversion: Conversion = "improved") -> Bound:
    """Renyi divergences.

    replace_one takes two hops, (2e, (1 + exp(e)) delta), since no Renyi bound of Poisson
    replacement is at hand.
    """
    return Bound(rdp_curve(mechanisms, conversion), 2 if relation == "replace_one" else 1)


ACCOUNTANTS = {"pld": pld, "rdp": rdp}


def mechanisms_of(releases: Iterable[AnyRelease]) -> Mechanisms:
    """The noised updates, those of one kind counted together.

    Of a sequence with correlated noise they are what one unit sees of it (`accounting.banded`).
    """
    counts: Counter[tuple[float, float, int, Correlation | None]] = Counter()
    for release in releases:
        if release.noisy and release.count:
            size = release.discrete_coordinates
            key = (release.sample_rate, release.noise_multiplier, size, release.correlation)
            counts[key] += release.count
    mechanisms = []
    for (rate, sigma, size, correlation), count in counts.items():
        if correlation is None:
            mechanisms.append(Mechanism(rate, sigma, count, size * DISTANCE))
        else:
            mechanisms += [
                Mechanism(rate, sigma / longer, updates, dealt=True)
                for longer, updates in banded.blocks(correlation, count)
            ]
    return tuple(mechanisms)


def epsilon(
    releases: Sequence[AnyRelease],
    delta: float,
    relation: Relation = "replace_one",
    accountant: str = "pld",
    conversion: Conversion = "improved",
) -> float:
    """Epsilon of the noised updates alone, for one record of their pools.

    Guarantees: (epsilon, delta)-indistinguishable under `relation`, batches Poisson and normalised
    by a public constant.
    """
    for release in releases:
        check_release(release)
    return solve(ACCOUNTANTS[accountant](mechanisms_of(releases), relation, conversion), delta)


def or_infinity(value: float) -> float:
    """Epsilon, or infinity for one that bounds nothing, as of noise that is there in name only."""
    return math.inf if value > MEANINGLESS else value


def solve(bound: Bound, delta: float, relative: float = 1e-7) -> float:
    """Smallest epsilon found for which (epsilon, delta) holds; infinity if none does.

    It is never below the truth.

    k hops at (e, d) each give (k e, (1 + exp(e) + ... + exp((k-1) e)) d).
    """
    if not 0 < delta < 1:
        raise ValueError(f"Expected {delta=} in (0, 1)")
    if bound.hops == 1 and bound.curve.epsilon is not None:
        return bound.curve.epsilon(delta)
    steps = np.arange(bound.hops)

    def holds(value: float) -> bool:
        log_total = bound.curve.log_delta(value) + float(np.logaddexp.reduce(value * steps))
        return log_total <= math.log(delta)

    if holds(0.0):
        return 0.0
    ends = bracket(bound, math.log(delta), holds)
    _, high = narrowed(holds, *ends, close=lambda low, high: high - low <= relative * high)
    return bound.hops * high


def bracket(bound: Bound, log_delta: float, holds: Callable[[float], bool]) -> tuple[float, float]:
    """(value that fails, value that holds or infinity).

    With several hops the condition is not monotone: small strides.
    """
    low = 0.0
    high = 1e-6
    stride = 2.0 if bound.hops == 1 else 1.02
    while not holds(high):
        if high > 1e15 or (bound.hops > 1 and hopeless(bound, high, log_delta)):
            return high, math.inf
        # a hop alone must meet delta first: reach that with long strides
        far = bound.hops > 1 and bound.curve.log_delta(2 * high) > log_delta
        low = high
        high = high * (2.0 if far else stride)
    return low, high


def hopeless(bound: Bound, value: float, log_delta: float) -> bool:
    """The factor exp((hops - 1) e) outgrows what the curve still loses."""
    floor = bound.curve.log_delta(1e15)
    return floor > -math.inf and floor + (bound.hops - 1) * value > log_delta


def agree(releases: Sequence[AnyRelease], delta: float, relation: Relation) -> dict[str, float]:
    """Epsilon by every accountant.

    ArithmeticError unless 0 < PLD <= RDP: the guard against an unsound accountant.
    """
    epsilon_by_accountant = {name: epsilon(releases, delta, relation, name) for name in ACCOUNTANTS}
    mechanisms = mechanisms_of(releases)
    # what a single update already gives away at epsilon = 0: total variation q (2 Phi(shift / 2s) -
    # 1)
    size = shift(relation)
    least = max(
        (
            mechanism.sample_rate * (2 * float(ndtr(size / (2 * mechanism.noise_multiplier))) - 1)
            for mechanism in mechanisms
        ),
        default=0.0,
    )
    by_pld = epsilon_by_accountant["pld"]
    by_rdp = epsilon_by_accountant["rdp"]
    positive = by_pld > 0 or (by_pld == 0 and least <= delta)
    if not positive or by_pld > by_rdp * (1 + TOLERANCE) + 1e-3:
        raise ArithmeticError(
            f"accountants disagree: {epsilon_by_accountant} for {relation=}, {delta=}, {mechanisms}"
        )
    return epsilon_by_accountant


def group(
    releases: Sequence[AnyRelease], delta: float, size: int, relation: Relation = "replace_one"
) -> tuple[float, str]:
    """Epsilon at `delta` in all if `size` records change at once, and the argument that gave it.

    It is the least that holds.
    """
    if size < 1:
        return 0.0, "no record changes"
    if size == 1:
        return epsilon(releases, delta, relation), "one record"
    if not (mechanisms := mechanisms_of(releases)):
        return 0.0, "no update with noise"
    twice = 2 if relation == "replace_one" else 1
    ways = {
        "group privacy, record by record (PLD)": Bound(pld_curve(mechanisms, relation), size),
        "group privacy, record by record (RDP)": Bound(rdp_curve(mechanisms), size * twice),
        "no amplification by sampling": Bound(unsampled_curve(mechanisms, relation, size)),
    }
    if size <= MOST_MIXED and not any(mechanism.dealt for mechanism in mechanisms):
        ways["mixture over the records drawn"] = Bound(
            pld_curve(mechanisms, "zero_out", size), twice
        )
    epsilon_by_way = {name: solve(bound, delta) for name, bound in ways.items()}
    best = min(epsilon_by_way, key=lambda name: epsilon_by_way[name])
    return epsilon_by_way[best], best


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Which releases reach whom.

    A list is priced by `epsilon`; None: an exact update read it, epsilon = infinity.
    """

    record: list[AnyRelease] | None  # any change of one record of the pools trained on with noise
    caught: list[AnyRelease] | None  # a secret that the redaction policy catches
    # a pool that the conservative policy defines was read: all holds if that policy catches every
    # miss
    conditional: bool
    # tokens were told apart: what is protected is a secret's tokens, not their number or place
    by_token: bool = False
    # updates read redacted text, so that what the policy finds must not depend on the secret
    screened: bool = False
    # noised updates of training that nothing bounds, as the paper counts them
    published: tuple[Release, ...] = ()
    reason: str | None = None  # why nothing is bounded, if exact updates are not to blame
    # a contribution that noise hides is that of an author: a record is all of his points
    authors: bool = False
    # noise is correlated: units are dealt into groups that take turns
    dealt: bool = False

    @property
    def missed(self) -> list[AnyRelease] | None:
        """A secret that the redaction policy misses: as any change of its record."""
        return self.record

    @property
    def caught_alone(self) -> bool:
        """Whether noise protects a caught secret, and nothing protects one that is missed."""
        return self.missed is None and bool(self.caught)

    @property
    def drawn(self) -> list[AnyRelease] | None:
        """What a secret drawn at random costs.

        It costs as one that is missed, or as one that is caught if only those are protected.
        """
        return self.caught if self.caught_alone else self.missed


def price(releases: Sequence[AnyRelease]) -> Price:
    """Sort releases by whom they reach; ValueError for an event of no known kind."""
    for release in releases:
        check_release(release)
    ran = [release for release in releases if release.count]
    updates = updates_of(ran)
    noisy = [release for release in ran if release.noisy]
    exposing = [
        release for release in updates if not release.noisy and release.step.pool != "public"
    ]
    reason = unbounded(ran)
    in_clear = any(
        release.step.view == "original" and release.step.tokens != "public" for release in exposing
    )
    closed = in_clear or reason is not None
    return Price(
        record=None if exposing or reason else noisy,
        caught=None if closed else [release for release in noisy if reads_original(release)],
        conditional=any(release.step.pool in ("public", "private") for release in updates),
        by_token=any(map(tells_apart, ran)),
        screened=any(release.step.view == "redacted" for release in updates),
        published=tuple(
            release for release in updates if release.noisy and as_published(release.step)
        ),
        reason=reason,
        authors=any(release.noisy and release.step.unit == "author" for release in updates),
        dealt=any(release.correlation is not None for release in updates),
    )


def as_published(step: Step) -> bool:
    """Whether an update is one of a paper that counts more of it than holds."""
    return step.state == "published" or step.weighing != "none"


def reads_original(release: AnyRelease) -> bool:
    """Whether it read text with its secrets."""
    return isinstance(release, StateRelease) or release.step.view == "original"


def tells_apart(release: AnyRelease) -> bool:
    """Whether it tells public tokens from private ones, as whoever hands on states does."""
    return isinstance(release, StateRelease) or release.step.tells_apart


def units_hidden(ran: Sequence[AnyRelease]) -> set[str]:
    """Whom noise hides, points or authors; states that are handed on are of points."""
    updates = updates_of(ran)
    units: set[str] = {release.step.unit for release in updates if release.noisy}
    if len(updates) < len(ran):
        units.add("point")
    return units


def unbounded(ran: Sequence[AnyRelease]) -> str | None:
    """Why nothing is bounded by releases that tell tokens apart, or do so now and then, or hide now
    points, now authors.

    None if that is no reason.
    """
    updates = updates_of(ran)
    units = units_hidden(ran)
    # more or fewer points are a contribution more in one, and another contribution in the other
    if len(units) > 1:
        return "some noise hides points and some hides authors, and nothing here composes the two"
    told_apart = set(map(tells_apart, ran))
    if "author" in units and True in told_apart:
        return "tokens of a point were told apart, but noise hides authors"
    # a caught secret's tokens add nothing to a sum, or change it; and what a mask hides and which
    # tokens are private are two conditions
    if len(told_apart) > 1:
        return (
            "some updates told the tokens of a point apart and some did not, and nothing here "
            "composes the two"
        )
    weighings = {release.step.weighing for release in updates}
    if "tokens" in weighings:
        return (
            "gradients of other tokens, which read a secret that stands before them, had no noise"
        )
    if "scores" in weighings:
        return "how much noise an update had, the text decides, and text without scores had none"
    states = {release.step.state for release in updates}
    if "published" in states:
        return "exact and noisy updates read the same batches, so that sampling is no secret"
    if any(release.step.state == "carry" and not release.noisy for release in updates):
        return (
            "exact updates on public tokens read a recurrent state that private ones had left "
            "behind"
        )
    handed_on = any(release.step.state == "noise" and not release.noisy for release in updates)
    if handed_on and len(updates) == len(ran):
        return "recurrent states were handed on, but no release of them is recorded"
    return None
