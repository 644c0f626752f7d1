"""Which policies and which method fit a wish: a pure function of prices and of what was measured of the policies.

The order is that of what is certified, and of nothing else: for whom first, then how much. Utility decides nothing here, since
it is unknown before training; where models were trained, their perplexities stand beside.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

Unit = Literal["secret", "record", "author"]
Cover = Literal["all", "if", "caught", "none"]
UNITS: tuple[Unit, ...] = ("secret", "record", "author")
COVERS: tuple[Cover, ...] = ("all", "if", "caught", "none")  # from most to least
LESS = {"if": "less, only where the conservative policy fires", "caught": "less, only secrets that the policy catches"}


class Wish(NamedTuple):
    """What is to be certified: epsilon at delta of one unit, under a neighbour relation."""

    unit: Unit
    epsilon: float
    delta: float
    relation: str


class Policies(NamedTuple):
    """A dataset's two policies, and what was measured of them on gold secrets; None where there are none."""

    dataset: str
    policy: str
    conservative: str
    points: int  # training points, planted ones and copies among them
    private: int  # of these, trained on with noise only
    marked: float | None  # share of the training tokens that the policy marks
    secrets: int  # tested
    gamma: float | None
    gamma_upper: float | None
    delta2_upper: float | None
    most: int | None = None  # distinct texts of the most frequent secret


class Option(NamedTuple):
    """A method on a dataset, priced before training; epsilon is infinite where nothing bounds it."""

    dataset: str
    method: str
    noise: float | None = None  # noise multiplier; None: no noise
    caught: float = math.inf  # epsilon of a secret that the policy catches
    missed: float = math.inf  # of one that it misses
    random: float | None = math.inf  # of a random one, the miss rate at its bound; None: that is unknown
    record: float = math.inf  # of a point, or of an author where noise hides authors
    conditional: bool = False  # missed secrets and records: only in points on which the conservative policy fires
    problem: str | None = None  # why it cannot be run at all
    trained: str | None = None  # the run of this method on this dataset, with what was measured of it
    perplexity: float | None = None


class Advice(NamedTuple):
    """The options in order, the recommended one if there is one, and the reasons."""

    ranked: list[Option]
    best: Option | None
    reasons: list[str]


def cover(option: Option, wish: Wish) -> Cover:
    """For whom the wish is certified: all units; those in points that pi_c fires on; secrets that pi catches; nobody."""
    if option.problem is not None:
        return "none"
    if (option.missed if wish.unit == "secret" else option.record) <= wish.epsilon:
        return "if" if option.conditional else "all"
    return "caught" if wish.unit == "secret" and option.caught <= wish.epsilon else "none"


def rank(option: Option, wish: Wish) -> tuple[int, float, float, float]:
    """Sorting key: for whom, then the epsilon of that, of a random secret, and of a caught one; to a percent of the wish."""
    found = cover(option, wish)
    claimed = option.caught if found == "caught" else option.missed if wish.unit == "secret" else option.record
    random = math.inf if option.random is None else option.random
    return COVERS.index(found), *(round(value / wish.epsilon, 2) for value in (claimed, random, option.caught))


def advise(options: Sequence[Option], policies: Sequence[Policies], wish: Wish) -> Advice:
    """The options from most to least certified, and what to make of them."""
    ranked = sorted(options, key=lambda option: rank(option, wish))
    found = cover(ranked[0], wish)
    if found == "none":
        nothing = f"nothing here certifies epsilon <= {wish.epsilon:g} for one {wish.unit}"
        return Advice(ranked, None, [nothing, *obstacles(ranked)])
    best = ranked[0]
    measured = next(one for one in policies if one.dataset == best.dataset)
    return Advice(ranked, best, [*why(best, found, measured, wish), *utility(best, ranked[1:], wish)])


def obstacles(options: Sequence[Option]) -> list[str]:
    """What keeps methods from running, each reason once."""
    found: dict[str, list[str]] = {}
    for option in options:
        if option.problem is not None:
            found.setdefault(option.problem, []).append(option.method)
    lines = [f"{', '.join(dict.fromkeys(methods))}: {problem}" for problem, methods in found.items()]
    nameless = any("author of every training point" in problem for problem in found)
    return lines + ["planted canaries have no author: plant none in a dataset whose authors are to be protected"] * nameless


def why(best: Option, found: Cover, measured: Policies, wish: Wish) -> list[str]:
    """What is certified of the best option, and what is not."""
    if found == "caught":
        return [f"only for secrets that the policy {measured.policy} catches: epsilon = {best.caught:.3g}", missing(measured)]
    if wish.unit != "secret":
        whom = f"every {wish.unit}"
        if found == "if":
            whom = (
                f"only {measured.private:,} of {measured.points:,} points, those that the conservative policy "
                f"{measured.conservative} makes private, while the others are learned as they are"
            )
        return [f"{whom}: epsilon = {best.record:.3g}"]
    caught = f"a secret that the policy {measured.policy} catches: epsilon = {best.caught:.3g}"
    lines = [f"{caught}; one that it misses: {best.missed:.3g}"]
    if found == "if":
        fails = "how often it does not is unknown"
        if measured.delta2_upper is not None:
            fails = f"it does not for at most {measured.delta2_upper:.2%} of the secrets"
        where = f"only if the conservative policy {measured.conservative} fires on every point of a missed secret"
        lines.append(f"{where}: {fails}; the policy `everything` in its place removes this condition")
    if best.random is None:
        lines.append("no gold secrets: the share that the policy misses is unknown, so count on what holds for a missed one")
    elif best.random < best.missed:
        share = f"a random secret, missed with a probability of at most {measured.gamma_upper:.2%}"
        lines.append(f"{share}: epsilon = {best.random:.3g}")
    return lines


def missing(measured: Policies) -> str:
    """What is not certified of secrets that the policy misses."""
    if measured.gamma_upper is None:
        return "one that it misses has epsilon = infinity, and without gold secrets nobody knows how many these are"
    share = f"at most {measured.gamma_upper:.2%} of the secrets, by {measured.secrets:,} tested"
    return f"one that it misses has epsilon = infinity: {share}"


def utility(best: Option, others: Sequence[Option], wish: Wish) -> list[str]:
    """Perplexities as measured, and only these: of the best, and of others that certify something and have lower ones."""
    lines = [f"measured: {best.trained}" if best.trained else "what its model is worth is unknown: none was trained here"]
    for option in others:
        found = cover(option, wish)
        if option.perplexity is None or found == "none" or option.perplexity >= (best.perplexity or math.inf):
            continue
        less = "as much" if found == cover(best, wish) else LESS[found]
        lines.append(f"{option.method} on {option.dataset} certifies {less}; measured: {option.trained}")
    return lines
