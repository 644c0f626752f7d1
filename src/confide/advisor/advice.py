"""Which policies and which method fit a wish, from prices and from what was measured of policies.

The order is that of what is certified, and of nothing else: for whom first, then how much. Utility
decides nothing of the order, since it is unknown before training. But a model that is known to be
worse than a unigram model, or than the model that it started from, is of no use, so nothing
recommends it; and where the corpus names no secrets nothing recommends what holds for secrets that
the policy catches alone. Utility is perplexity on public tokens: on all tokens, or on secrets, it
punishes what a model was kept from learning.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from confide.certify.facts import COPIES_KEPT, no_bound
from confide.dp.accounting.curves import Relation
from confide.output.rounding import rounded_up

Unit = Literal["secret", "record", "author"]
Cover = Literal["all", "if", "caught", "none"]
UNITS: tuple[Unit, ...] = ("secret", "record", "author")
COVERS: tuple[Cover, ...] = ("all", "if", "caught", "none")  # from most to least
OFTEN = 0.1  # share of the secrets of a label from which on a policy is to be mended
MEND = (
    "mend the policy first: {policy} misses {share:.0%} of the secrets that it finds worst; add "
    "patterns, a list of words or a pipeline (docs/confidentiality.md)"
)
TRACES = (
    "mend the policy first: {policy} hides the secrets that it finds worst, and {share:.0%} leave "
    "a trace, as where it takes them and the words beside for one; take patterns or lists that "
    "find a secret alone (docs/confidentiality.md)"
)
FROM_PROTECTED = "is made from protected text"
DECLARE = (
    "a list that is made from no text of this corpus is declared `independent: true`, a model "
    "`public: true` (docs/confidentiality.md)"
)
HELP = "what would help: more text, a model that starts from public text, or a larger epsilon"
UNIGRAM = "a unigram model, which reads no context"
START = "the model that it started from"
LESS = {
    "if": "less, only where the conservative policy fires",
    "caught": "less, only secrets that the policy catches",
}


class Wish(NamedTuple):
    """What is to be certified: epsilon at delta of one unit, under a neighbour relation."""

    unit: Unit
    epsilon: float
    delta: float
    relation: Relation


class Policies(NamedTuple):
    """A dataset's two policies, and what was measured of them on the corpus's own secrets.

    It is None where the corpus names none. Rates are of the label of secrets that fares worst; a
    review by hand gives bounds alone.
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
    found: int | None = None  # spans of training text; None: not counted
    not_hidden: float | None = None  # share of that label that is not hidden whole; None: as above
    unmarked: Mapping[str, int] = {}  # spans, by label, of a kind that the corpus marks nowhere

    @property
    def unknown(self) -> str:
        """Why nobody can say how many secrets the policy misses; nothing where a bound is known."""
        return no_bound(self.gamma, self.gamma_upper)

    @property
    def of_which(self) -> str:
        """The secrets of which the bounds hold, and by what they were measured."""
        if self.gamma is None:
            return "the secrets of any label found or marked, by what a person marked"
        return f"the secrets of any label, by {self.secrets:,} tested"


class Option(NamedTuple):
    """A method on a dataset, priced before training; epsilon is infinite if nothing bounds it."""

    dataset: str
    method: str
    noise: float | None = None  # noise multiplier; None: no noise
    caught: float = math.inf  # epsilon of a secret that the policy catches
    missed: float = math.inf  # of one that it misses
    random: float | None = math.inf  # of a random one, the miss rate at its bound; None: unknown
    record: float = math.inf  # of a point, or of an author where noise hides authors
    # missed secrets and records: only in points on which the conservative policy fires
    conditional: bool = False
    # of a missed secret only where a policy finds something in a text that stands several times
    copies: bool = False
    problem: str | None = None  # why it cannot be run at all
    unbounded: tuple[str, ...] = ()  # why nothing bounds what its model has seen
    # of one occurrence of a caught secret, if later copies of its text come back; None: as `caught`
    alone: float | None = None
    several: Mapping[int, float] = {}  # of a missed secret in so many distinct texts
    trained: str | None = None  # the run of this method on this dataset, and what was measured
    spent: float = math.inf  # epsilon of a point that this run was trained at
    perplexity: float | None = None  # of its public tokens
    unigram: float | None = None  # the same of a unigram model of the redacted text
    untouched: float | None = None  # the same of the model that training started from
    # not trained: the same method with noise for fewer points, which was
    kin: "Option | None" = None

    @property
    def nearest(self) -> "Option | None":
        """This option if it was trained, or else what was trained in its place."""
        return self.kin if self.perplexity is None else self

    @property
    def bar(self) -> "Bar | None":
        """The best model that took no training on this text, if one is better than this one."""
        if self.perplexity is None:
            return None
        bars = [Bar(UNIGRAM, self.unigram), Bar(START, self.untouched)]
        lower = [
            (bar.perplexity, bar)
            for bar in bars
            if bar.perplexity is not None and bar.perplexity < self.perplexity
        ]
        return min(lower)[1] if lower else None

    @property
    def worse(self) -> bool:
        """Whether its model is known to be worse than one that took no training on this text.

        Of an untrained one: whether that of the same method with no more noise is.
        """
        if self.perplexity is None:
            return self.kin is not None and self.kin.worse
        return self.bar is not None

    def claimed(self, unit: Unit) -> float:
        """Epsilon of one unit, of a secret that the policy misses."""
        return self.missed if unit == "secret" else self.record


class Bar(NamedTuple):
    """What a model must be better than to be of use."""

    name: str
    perplexity: float | None  # of public tokens


class Advice(NamedTuple):
    """The options in order, the recommended one if there is one, and the reasons."""

    ranked: list[Option]
    best: Option | None
    reasons: list[str]


def cover(option: Option, wish: Wish) -> Cover:
    """For whom the wish is certified.

    That is all units; those in points that the conservative policy fires on; secrets that the
    policy catches; or nobody.
    """
    if option.problem is not None:
        return "none"
    if option.claimed(wish.unit) <= wish.epsilon:
        return "if" if option.conditional else "all"
    return "caught" if wish.unit == "secret" and option.caught <= wish.epsilon else "none"


def rank(option: Option, wish: Wish) -> tuple[int, float, float, float]:
    """Sorting key: for whom, then the epsilon of that, of a random secret, and of a caught one.

    Epsilons are compared to a percent of the wish.
    """
    covered = cover(option, wish)
    claimed = option.caught if covered == "caught" else option.claimed(wish.unit)
    random = math.inf if option.random is None else option.random

    def rounded(epsilon: float) -> float:
        return round(epsilon / wish.epsilon, 2)

    return COVERS.index(covered), rounded(claimed), rounded(random), rounded(option.caught)


def advise(options: Sequence[Option], policies: Sequence[Policies], wish: Wish) -> Advice:
    """The options from most to least certified, and what to make of them."""
    ranked = sorted(options, key=lambda option: rank(option, wish))
    covered = cover(ranked[0], wish)
    if covered == "none":
        nothing = f"nothing here certifies epsilon <= {wish.epsilon:g} for one {wish.unit}"
        return Advice(ranked, None, [nothing, *obstacles(ranked)])

    def policies_of(option: Option) -> Policies:
        return next(each for each in policies if each.dataset == option.dataset)

    if covered == "caught" and (why_unknown := policies_of(ranked[0]).unknown):
        nothing = "nothing here covers more than secrets that the policy catches"
        unknown = f"{nothing}, and how many it catches is {why_unknown}"
        return Advice(ranked, None, [unknown, *obstacles(ranked)])
    equals = [option for option in ranked if cover(option, wish) == covered]
    useless = [option for option in equals if outdone(option, wish)]
    best = next((option for option in equals if option not in useless), None)
    if best is None:
        against = [no_use(option) for option in useless]
        others = [option for option in ranked if option not in useless]
        return Advice(ranked, None, [*against, HELP, *alternatives(covered, others, wish)])
    passed_over = [option for option in useless if ranked.index(option) < ranked.index(best)]
    reasons = why(best, covered, policies_of(best), wish)
    reasons += [no_use(option) for option in passed_over]
    reasons += [utility(best), *alternatives(covered, ranked, wish, best)]
    return Advice(ranked, best, reasons)


def outdone(option: Option, wish: Wish) -> bool:
    """Whether training is known to give a model of no use.

    A model that was trained at a smaller epsilon than the wish's says nothing.
    """
    trained = option.nearest
    return option.worse and trained is not None and trained.spent >= 0.99 * wish.epsilon


def no_use(option: Option) -> str:
    """That the model of an option that is `outdone` is worse than one without this text."""
    trained = option.nearest or option
    where = "" if trained is option else f", with noise for fewer points ({trained.dataset}),"
    worse = f"its model{where} is worse than {against(trained)}"
    return f"{option.method} on {option.dataset}: {worse}"


def against(trained: Option) -> str:
    """What a trained model is worse than, with both perplexities."""
    bar = trained.bar
    if bar is None:
        raise ValueError("nothing is better than this model")
    numbers = f"{trained.perplexity:.3g} on public tokens against {bar.perplexity:.3g}"
    return f"{bar.name}: perplexity {numbers}"


def repeated(best: Option) -> list[str]:
    """What a missed secret costs that stands in several texts, if that is known."""
    if not best.several:
        return []
    prices = (f"{shown(price)} in {size:,} texts" for size, price in best.several.items())
    costs = "a missed secret that stands in several texts costs more"
    return [f"{costs}: epsilon = {', '.join(prices)}"]


def obstacles(options: Sequence[Option]) -> list[str]:
    """What keeps methods from running, each reason once."""
    hindered = methods_by((option.problem, option.method) for option in options if option.problem)
    unbounded = methods_by(
        (reason, option.method) for option in options for reason in option.unbounded
    )
    lines = [f"{methods}: {problem}" for problem, methods in hindered.items()]
    lines += [
        f"{methods}: nothing is bounded, for {reason}" for reason, methods in unbounded.items()
    ]
    if any(FROM_PROTECTED in reason for reason in unbounded):
        lines.append(DECLARE)
    if any("author of every training point" in problem for problem in hindered):
        remedy = "plant none in a dataset whose authors are to be protected"
        lines.append(f"planted canaries have no author: {remedy}")
    return lines


def methods_by(told: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The methods that each reason is told of, with commas between, each once."""
    methods: dict[str, dict[str, None]] = {}
    for reason, method in told:
        methods.setdefault(reason, {})[method] = None
    return {reason: ", ".join(some) for reason, some in methods.items()}


def why(best: Option, covered: Cover, policies: Policies, wish: Wish) -> list[str]:
    """What is certified of the best option, and what is not."""
    if covered == "caught":
        whom = f"only for secrets that the policy {policies.policy} catches"
        return [f"{whom}: epsilon = {shown(best.caught)}", missing(policies)]
    if wish.unit != "secret":
        whom = f"every {wish.unit}"
        if covered == "if":
            whom = (
                f"only {policies.private:,} of {policies.points:,} points, those that the "
                f"conservative policy {policies.conservative} makes private, while the others are "
                "learned as they are"
            )
        lines = [f"{whom}: epsilon = {shown(best.record)}"]
        if best.alone is not None:
            lines.append(f"that is if {COPIES_KEPT}")
        return lines
    caught = f"a secret that the policy {policies.policy} catches: epsilon = {shown(best.caught)}"
    lines = [f"{caught}; one that it misses: {shown(best.missed)}"]
    if policies.gamma is not None and policies.gamma > OFTEN:
        hidden = policies.not_hidden is not None and policies.not_hidden <= OFTEN
        mend = TRACES if hidden else MEND
        lines.insert(0, mend.format(policy=policies.policy, share=policies.gamma))
    if best.alone is not None and best.alone != best.caught:
        alone = f"of one copy alone: epsilon = {shown(best.alone)}"
        lines.append(f"that is of masking it in all copies of its text; {alone}")
    lines += repeated(best)
    if covered == "if":
        fails = "how often both miss one is unknown"
        if policies.delta2_upper is not None:
            fails = f"both miss at most {at_most(policies.delta2_upper)} of {policies.of_which}"
        where = f"the conservative policy {policies.conservative} fires on every point"
        remedy = "the policy `everything` in its place removes this condition"
        lines.append(f"only if {where} of a missed secret: {fails}; {remedy}")
    if best.copies:
        other = "of a text in which neither policy finds anything each copy counts"
        lines.append(f"a missed one counts once in all copies of its text; {other}")
    if policies.unknown:
        unknown = f"the share that the policy misses is {policies.unknown}"
        remedy = "`confide review` bounds it, and `confide release` refuses without"
        lines.append(f"{unknown}. Count on what holds for a missed one; {remedy}")
    elif best.random is not None and best.random < best.missed:
        bound = at_most(policies.gamma_upper)
        share = f"a random secret, missed with a probability of at most {bound}"
        lines.append(f"{share}: epsilon = {shown(best.random)}")
    return lines


def shown(epsilon: float) -> str:
    """An epsilon to three digits, and never smaller."""
    return "infinity" if epsilon == math.inf else rounded_up(epsilon, 3)


def at_most(share: float | None) -> str:
    """A bound on a share, in per cent to three digits and never smaller; nothing known is all."""
    return "100%" if share is None else f"{rounded_up(100 * share, 3)}%"


def missing(policies: Policies) -> str:
    """What is not certified of secrets that the policy misses."""
    if policies.unknown:
        unknown = f"and how many these are is {policies.unknown}"
        return f"one that it misses has epsilon = infinity, {unknown}"
    share = f"at most {at_most(policies.gamma_upper)} of {policies.of_which}"
    return f"one that it misses has epsilon = infinity: {share}"


def utility(best: Option) -> str:
    """What the best was measured to be worth, or that nobody knows."""
    if not best.trained:
        unknown = "what its model is worth is unknown: none was trained here"
        if best.kin is not None and best.kin.trained:
            fewer = f"with noise for fewer points ({best.kin.dataset}) it was worth more than that"
            return f"{unknown}; {fewer}: {measured(best.kin)}"
        noise = "Noise may leave less than a unigram model knows"
        return f"{unknown}. {noise}: train it, and the summary compares the two"
    line = measured(best)
    if best.bar is not None:
        line += f"; at its own epsilon it is worse than {against(best)} ({HELP})"
    return line


def measured(option: Option, covered: Cover = "all") -> str:
    """What the model of an option is worth, and the epsilon that it was trained at: of a point, or
    of a secret that the policy catches where that is all that is covered.
    """
    if covered == "caught":
        of_caught = f"ε {shown(option.caught)} for one that it catches, ∞ for one that it misses"
        return f"measured: {option.trained} ({of_caught})"
    return f"measured: {option.trained} (ε {shown(option.spent)})"


def alternatives(
    covered: Cover, options: Sequence[Option], wish: Wish, best: Option | None = None
) -> list[str]:
    """Others that certify something and have a lower perplexity on public tokens than the best.

    Each comes with what it certifies less.
    """
    bar = math.inf if best is None else best.perplexity or math.inf
    lines = []
    for option in options:
        theirs = cover(option, wish)
        if option is best or theirs == "none":
            continue
        if option.perplexity is not None and option.perplexity < bar:
            less = "as much" if theirs == covered else LESS[theirs]
            certifies = f"{option.method} on {option.dataset} certifies {less}"
            lines.append(f"{certifies}; {measured(option, theirs)}")
    return lines
