"""Which policies and which method fit a wish: a pure function of prices and of what was measured of
the policies.

The order is that of what is certified, and of nothing else: for whom first, then how much. Utility
decides nothing of the order, since it is unknown before training. But a model that is known to be
worse than a unigram model is of no use, so nothing recommends it; and where the corpus names no
secrets nothing recommends what holds for secrets that the policy catches alone. Utility is
perplexity on public tokens: on all tokens, or on secrets, it punishes what a model was kept from
learning.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

Unit = Literal["secret", "record", "author"]
Cover = Literal["all", "if", "caught", "none"]
UNITS: tuple[Unit, ...] = ("secret", "record", "author")
COVERS: tuple[Cover, ...] = ("all", "if", "caught", "none")  # from most to least
UNKNOWN = "unknown: the corpus names no secrets, so nobody can say what the policy misses"
HELP = "what would help: more text, a model that starts from public text, or a larger epsilon"
LESS = {
    "if": "less, only where the conservative policy fires",
    "caught": "less, only secrets that the policy catches",
}


class Wish(NamedTuple):
    """What is to be certified: epsilon at delta of one unit, under a neighbour relation."""

    unit: Unit
    epsilon: float
    delta: float
    relation: str


class Policies(NamedTuple):
    """A dataset's two policies, and what was measured of them on the corpus's own secrets; None
    where it names none.

    Rates are of the label of secrets that fares worst.
    """

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
    label: str | None = None  # of secrets, that the policy misses most


class Option(NamedTuple):
    """A method on a dataset, priced before training; epsilon is infinite where nothing bounds
    it.
    """

    dataset: str
    method: str
    noise: float | None = None  # noise multiplier; None: no noise
    caught: float = math.inf  # epsilon of a secret that the policy catches
    missed: float = math.inf  # of one that it misses
    random: float | None = (
        math.inf
    )  # of a random one, the miss rate at its bound; None: that is unknown
    record: float = math.inf  # of a point, or of an author where noise hides authors
    conditional: bool = (
        False  # missed secrets and records: only in points on which the conservative policy fires
    )
    problem: str | None = None  # why it cannot be run at all
    alone: float | None = (
        # of one occurrence of a caught secret, if later copies of its text come back; None: as
        # `caught`
        None
    )
    trained: str | None = (
        None  # the run of this method on this dataset, with what was measured of it
    )
    spent: float = math.inf  # epsilon of a point that this run was trained at
    perplexity: float | None = None  # of its public tokens
    unigram: float | None = None  # the same of a unigram model of the redacted text
    kin: "Option | None" = (
        None  # not trained: the same method with noise for fewer points, which was
    )

    @property
    def worse(self) -> bool:
        """Whether this model, or one of the same method with no more noise, is known to be worse
        than a unigram model.
        """
        if self.perplexity is None:
            return self.kin is not None and self.kin.worse
        return self.unigram is not None and self.perplexity > self.unigram


class Advice(NamedTuple):
    """The options in order, the recommended one if there is one, and the reasons."""

    ranked: list[Option]
    best: Option | None
    reasons: list[str]


def cover(option: Option, wish: Wish) -> Cover:
    """For whom the wish is certified: all units; those in points that pi_c fires on; secrets that
    pi catches; nobody.
    """
    if option.problem is not None:
        return "none"
    if (option.missed if wish.unit == "secret" else option.record) <= wish.epsilon:
        return "if" if option.conditional else "all"
    return "caught" if wish.unit == "secret" and option.caught <= wish.epsilon else "none"


def rank(option: Option, wish: Wish) -> tuple[int, float, float, float]:
    """Sorting key: for whom, then the epsilon of that, of a random secret, and of a caught one; to
    a percent of the wish.
    """
    found = cover(option, wish)
    claimed = (
        option.caught
        if found == "caught"
        else option.missed
        if wish.unit == "secret"
        else option.record
    )
    random = math.inf if option.random is None else option.random
    return COVERS.index(found), *(
        round(value / wish.epsilon, 2) for value in (claimed, random, option.caught)
    )


def advise(options: Sequence[Option], policies: Sequence[Policies], wish: Wish) -> Advice:
    """The options from most to least certified, and what to make of them."""
    ranked = sorted(options, key=lambda option: rank(option, wish))
    found = cover(ranked[0], wish)
    if found == "none":
        nothing = f"nothing here certifies epsilon <= {wish.epsilon:g} for one {wish.unit}"
        return Advice(ranked, None, [nothing, *obstacles(ranked)])

    def measured(option: Option) -> Policies:
        return next(one for one in policies if one.dataset == option.dataset)

    if found == "caught" and measured(ranked[0]).gamma_upper is None:
        nothing = "nothing here covers more than secrets that the policy catches, and how many it catches is "
        return Advice(ranked, None, [nothing + UNKNOWN, *obstacles(ranked)])
    equals = [option for option in ranked if cover(option, wish) == found]
    useless = [option for option in equals if outdone(option, wish)]
    best = next((option for option in equals if option not in useless), None)
    passed = (
        useless
        if best is None
        else [option for option in useless if ranked.index(option) < ranked.index(best)]
    )
    against = [no_use(option) for option in passed]
    if best is None:
        others = [option for option in ranked if option not in useless]
        return Advice(ranked, None, [*against, HELP, *alternatives(found, math.inf, others, wish)])
    reasons = [*why(best, found, measured(best), wish), *against, *utility(best, wish)]
    return Advice(
        ranked,
        best,
        [*reasons, *alternatives(found, best.perplexity or math.inf, ranked, wish, best)],
    )


def outdone(option: Option, wish: Wish) -> bool:
    """Whether training is known to give a model of no use: one that was trained with no less
    privacy than none is left out.
    """
    trained = option if option.perplexity is not None else option.kin
    return option.worse and trained is not None and trained.spent >= 0.99 * wish.epsilon


def no_use(option: Option) -> str:
    """That a model is worse than one that reads no context."""
    own = option if option.perplexity is not None else option.kin
    where = "" if own is option else f", with noise for fewer points ({own.dataset}),"
    numbers = f"{own.perplexity:.3g} on public tokens against {own.unigram:.3g}"
    return f"{option.method} on {option.dataset}: its model{where} is worse than a unigram model, perplexity {numbers}"


def obstacles(options: Sequence[Option]) -> list[str]:
    """What keeps methods from running, each reason once."""
    found: dict[str, list[str]] = {}
    for option in options:
        if option.problem is not None:
            found.setdefault(option.problem, []).append(option.method)
    lines = [
        f"{', '.join(dict.fromkeys(methods))}: {problem}" for problem, methods in found.items()
    ]
    nameless = any("author of every training point" in problem for problem in found)
    return (
        lines
        + [
            "planted canaries have no author: plant none in a dataset whose authors are to be protected"
        ]
        * nameless
    )


def why(best: Option, found: Cover, measured: Policies, wish: Wish) -> list[str]:
    """What is certified of the best option, and what is not."""
    if found == "caught":
        return [
            f"only for secrets that the policy {measured.policy} catches: epsilon = {best.caught:.3g}",
            missing(measured),
        ]
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
    if best.alone is not None and best.alone != best.caught:
        lines.append(
            f"that is of masking it in all copies of its text; of one copy alone: epsilon = {best.alone:.3g}"
        )
    if found == "if":
        fails = "how often it does not is unknown"
        if measured.delta2_upper is not None:
            fails = (
                f"it does not for at most {measured.delta2_upper:.2%} of the secrets of any label"
            )
        where = f"only if the conservative policy {measured.conservative} fires on every point of a missed secret"
        lines.append(
            f"{where}: {fails}; the policy `everything` in its place removes this condition"
        )
    if best.random is None:
        lines.append(
            f"the share that the policy misses is {UNKNOWN}. Count on what holds for a missed one"
        )
    elif best.random < best.missed:
        share = f"a random secret, missed with a probability of at most {measured.gamma_upper:.2%}"
        lines.append(f"{share}: epsilon = {best.random:.3g}")
    return lines


def missing(measured: Policies) -> str:
    """What is not certified of secrets that the policy misses."""
    if measured.gamma_upper is None:
        return f"one that it misses has epsilon = infinity, and how many these are is {UNKNOWN}"
    share = f"at most {measured.gamma_upper:.2%} of the secrets of any label, by {measured.secrets:,} tested"
    return f"one that it misses has epsilon = infinity: {share}"


def utility(best: Option, wish: Wish) -> list[str]:
    """What the best was measured to be worth, or that nobody knows."""
    if best.trained:
        known = best.perplexity is not None and best.unigram is not None
        beside = (
            f"; a unigram model of the redacted text has {best.unigram:.3g} on public tokens"
            if known
            else ""
        )
        caveat = (
            f"; it is worse than a unigram model at its own epsilon ({HELP})" if best.worse else ""
        )
        return [f"measured: {best.trained}{beside}{caveat}"]
    unknown = "what its model is worth is unknown: none was trained here. Noise may leave less than a unigram model knows"
    return [f"{unknown}: train it, and the summary compares the two"]


def alternatives(
    found: Cover,
    perplexity: float,
    options: Sequence[Option],
    wish: Wish,
    best: Option | None = None,
) -> list[str]:
    """Others that certify something and have a lower perplexity on public tokens, with what they
    certify less.
    """
    lines = []
    for option in options:
        own = cover(option, wish)
        if (
            option is best
            or option.perplexity is None
            or own == "none"
            or option.perplexity >= perplexity
        ):
            continue
        less = "as much" if own == found else LESS[own]
        lines.append(
            f"{option.method} on {option.dataset} certifies {less}; measured: {option.trained}"
        )
    return lines
