"""What claims rest on: the updates that ran, and what was measured of the policy.

The words for units and conditions are here as well.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from confide.dp.accounting.price import Price, price
from confide.output.rounding import percent
from confide.types import AnyRelease, Packing

# Points in words, by what a corpus consists of.
UNITS = {
    "dialogues": {
        "turn": "one turn of a dialogue",
        "dialogue": "one whole dialogue as one row or file has it",
    },
    "documents": {"turn": "one line of a document", "dialogue": "one whole text"},
}
UNITS_OF_ANY = {"sentence": "one sentence", "window": "one window of consecutive words"}
CONSERVATIVE = "conditional on pi_c catching every miss of pi"
STABLE = (
    "pi hides all of the secret, and masking it changes nothing else that pi or pi_c finds "
    "(so it is where the secret is all of a span and the policies judge each span by itself, and "
    "with covers, if no pattern runs out of time)"
)
POISSON = "Poisson batches normalised by their public expected size; sizes of the pools are public"
DEALT = (
    "each was dealt into a group by chance, once, whatever it holds; Poisson batches of the group "
    "whose turn it is, normalised by a public number; sizes of the pools are public"
)
AUTHOR = "one author: all points of a person"
PART_OF_AUTHOR = "all private points of one author"  # whose public ones are read without noise
POISSON_AUTHORS = (
    "Poisson batches of authors normalised by their public expected number; "
    "numbers of authors are public"
)
IN_ITS_POOL = "the record stays in its pool"
NAMED = "all points of a person carry one name"
NOWHERE_ELSE = (
    "the secret, whatever its case and blanks, stands nowhere but where the corpus marks it alone"
)
MARKS_KEPT = "the marks of later copies stay as they are when the secret is masked"
COPIES_KEPT = "copies of its text, and of what takes its place, are read or masked as they were"
COPIES_FOUND = (
    "of a text that stands several times pi or pi_c finds something, "
    "so that later copies are masked"
)
CUT_KEPT = "its text is cut into points at the same places when the secret is masked"
ONE_ALONE = "one occurrence alone is masked, and a later copy of its text is then read in its place"
UNKNOWN = "unknown: the corpus names no secrets, so nobody can say what the policy misses"
TOO_FEW = (
    "unknown: too few secrets were tested or texts read, or too many missed, for a bound below all"
)
ALL_MISSED = "unknown: of a label it missed all that were tested, or there was none to test"
LENGTHS = (
    "what takes its place has as many tokens in each text that training reads, as it is or with "
    "masks, public numbers, and the same domain, and the tokens beside it stay as they are: "
    "anything else shifts all chunks behind it (epsilon = infinity)"
)
HIDDEN_TOO = "pi hides all of what takes its place as well, and finds nothing else than before"
TINY = "so little noise bounds nothing"
TOKENS = "one secret's tokens, their number public"
NEIGHBOURS = (
    "neighbours differ only in tokens that the policy marks in both, "
    "not in marks, other tokens or the cut into points"
)
ONE_POINT = "these tokens lie in one point"
# names of the claims about a secret that the policy finds, that it misses, and that both miss
SECRET_CAUGHT = "secret_caught"
SECRET_MISSED = "secret_missed"
MISSED_BY_BOTH = "secret_missed_by_both"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that claims rest on.

    gamma: share of secrets that pi misses; delta2: that pi and pi_c both miss. Both are None where
    the corpus names no secrets: then nobody can say what the policy misses. The bounds hold
    together. Points and authors are those that hold the most frequent secret, and None where they
    were not counted.
    """

    releases: Sequence[AnyRelease]
    delta: float
    point: str = "turn"
    texts: str = "dialogues"  # what points are parts of: a key of UNITS
    # as measured; None: the corpus names no secrets, or only the bound is told
    gamma: float | None = None
    gamma_upper: float | None = None
    delta2_upper: float | None = None
    confidence: float = 0.95
    points_after: int | None = None  # copies masked
    points_before: int | None = None  # copies counted
    everything_private: bool = False
    # reasons why the ledger does not bound what the model has seen: nothing finite holds
    unaccounted: Sequence[str] = ()
    authors_before: int | None = None
    packing: Packing | None = None  # None: a record is a point, or an author
    # later copies of a text are masked, so that masking a secret once is not masking all of its
    # text
    dedup: bool = True
    scope: str = "private"  # which copies are: those of texts of which a policy finds something
    # share of secrets that leave a trace if one occurrence alone is masked
    gamma_literal: float | None = None
    gamma_literal_upper: float | None = None
    doubled_literal: float | None = None  # of these, one that is seen in more than one point
    doubled_literal_upper: float | None = None
    points_literal: int = 2  # in how many points, at most
    by_hand: Sequence[str] = ()  # conditions of rates that a person's marks gave
    labels: Sequence[str] = ()  # of the secrets that count; none: of all that the corpus names

    @cached_property
    def price(self) -> Price:
        """Whom the updates reach: what nobody accounts for reaches all."""
        paid = price(self.releases)
        return replace(paid, record=None, caught=None) if self.unaccounted else paid

    @property
    def hopeless(self) -> list[str]:
        """Condition of a claim that nothing can make finite."""
        reasons = self.unaccounted or [self.price.reason or "exact updates read it"]
        return [f"none can help: {reason}" for reason in reasons]

    def unless_infinite(
        self, epsilon: float, reached: Sequence[AnyRelease] | None, conditions: list[str]
    ) -> list[str]:
        """The conditions of a claim about whom these releases reach; where it is infinite, why."""
        if epsilon < math.inf:
            return conditions
        return self.hopeless if reached is None else [f"none can help: {TINY}"]

    @property
    def one_point(self) -> str:
        """One point of the corpus, in words."""
        units = UNITS_OF_ANY | UNITS[self.texts]
        return units.get(self.point, f"one {self.point}")

    @property
    def unit(self) -> str:
        """Whose whole contribution the noise hides."""
        if self.packing is not None:
            return f"one chunk of {self.packing.tokens} tokens"
        if self.price.authors:
            return PART_OF_AUTHOR if self.conditional else AUTHOR
        return self.one_point

    @property
    def pieces(self) -> int:
        """How many records a secret lies in at most.

        One that is shorter than a chunk lies in two chunks, unless no point is cut.
        """
        return min(2, self.packing.most) if self.packing is not None else 1

    @property
    def lengths(self) -> list[str]:
        """The condition on what takes a secret's place, where texts are laid end to end."""
        return [LENGTHS] if self.packing is not None else []

    @property
    def hidden_too(self) -> list[str]:
        """The condition on what takes a caught secret's place, where it cannot be the one mask
        which is not as long: exact updates would read what the policy does not hide.
        """
        is_read = self.packing is not None and self.price.screened and self.price.caught
        return [HIDDEN_TOO] if is_read else []

    @property
    def sampled(self) -> str:
        """The condition on batches."""
        if self.price.dealt:
            return DEALT
        return POISSON_AUTHORS if self.price.authors else POISSON

    @property
    def groups(self) -> dict[str, tuple[int | None, str]]:
        """How many contributions hold the most frequent secret, and what they are.

        k points have at most k authors. In one point it may stand many times, and so in all of the
        chunks that the point lies in.
        """
        after = (self.points_after, "distinct texts")
        before = (self.points_before, "points, copies counted")
        if self.price.authors and self.authors_before is not None:
            before = self.authors_before, "authors' texts, copies counted"
        groups = {"group_after_dedup": after, "group_before_dedup": before}
        if self.packing is None:
            return groups
        return {
            name: (size and size * self.packing.most, f"chunks: {size} {of}")
            for name, (size, of) in groups.items()
        }

    @property
    def cut(self) -> list[str]:
        """The condition on where points begin and end, if words decide that and not lines: a mask
        in place of words shifts all windows behind it, and begins no sentence.
        """
        return [CUT_KEPT] if self.point in UNITS_OF_ANY else []

    @property
    def marks(self) -> list[str]:
        """The conditions on what stays as it is when a secret is masked: later copies, without
        deduplication points like any other, and the cut.
        """
        return [*([MARKS_KEPT] if self.dedup else []), *self.cut]

    @property
    def neighbours(self) -> list[str]:
        """The conditions on a point whose private tokens are others. A text that becomes one of
        several copies, or is no longer one, changes which of them are masked.
        """
        return [NEIGHBOURS, ONE_POINT, *([COPIES_KEPT] if self.dedup else [])]

    @property
    def nowhere_else(self) -> str:
        """The condition on where a secret stands that is counted in several texts."""
        return f"{NOWHERE_ELSE}{self.marked_as}"

    @property
    def copies_found(self) -> list[str]:
        """The condition on copies of a missed secret's text, where those that no policy finds
        anything in are read, too: all of them are then records that hold it.
        """
        masked = self.scope == "all" or self.everything_private or self.conditional
        return [COPIES_FOUND] if self.dedup and not masked else []

    @property
    def needs_gamma(self) -> bool:
        """Whether what a secret drawn at random costs depends on how many the policy misses."""
        return self.price.caught == [] or self.price.caught_alone

    @property
    def bound_words(self) -> str:
        """What stands behind gamma's bound. A sample may show nothing of a label that fares worse
        than all that it shows.
        """
        sure = f"{percent(self.confidence)}, together with all other bounds"
        seen = "found or marked" if self.by_hand else "that is marked"
        return f"gamma of the worst label {seen} at its upper bound ({sure}){self.rests_on}"

    @property
    def missing(self) -> str:
        """Why nobody can say how many secrets the policy misses; nothing where somebody can."""
        return no_bound(self.gamma, self.gamma_upper)

    @property
    def rests_on(self) -> str:
        """On which marks of a person gamma rests, if on any."""
        return "".join(f", if {words}" for words in self.by_hand)

    @property
    def secret(self) -> str:
        """What is protected of a secret that the policy catches or misses."""
        if self.price.by_token:
            return TOKENS
        short = ""
        if self.packing is not None and self.pieces > 1:
            short = f" of fewer than {self.packing.tokens} tokens"
        return f"one secret{short} within {self.one_point}"

    @property
    def random_secret(self) -> str:
        """What is protected of a secret drawn at random; nothing of a kind that nobody marks."""
        kinds = "of a kind that is marked"
        if self.labels:
            kinds = f"of the labels {quoted(self.labels)}"
        words = self.secret.replace("one", "one random", 1)
        return words.replace("one random secret", f"one random secret {kinds}", 1)

    @property
    def marked_as(self) -> str:
        """As what the corpus marks the secrets that count, if not all of them do."""
        return f" as {quoted(self.labels)}" if self.labels else ""

    @property
    def conditional(self) -> bool:
        """Whether claims hold only if the conservative policy catches what the policy misses."""
        return self.price.conditional and not self.everything_private

    @property
    def conservative_condition(self) -> list[str]:
        """The condition on the conservative policy, where claims rest on it."""
        return [CONSERVATIVE] if self.conditional else []


def no_bound(gamma: float | None, gamma_upper: float | None) -> str:
    """Why no bound says how many secrets the policy misses; nothing where one does."""
    if gamma_upper is None:
        return UNKNOWN
    if gamma_upper < 1:
        return ""
    return ALL_MISSED if gamma == 1 else TOO_FEW


def quoted(labels: Iterable[str]) -> str:
    """Labels in a sentence, which none of them can go on with: none has quotation marks."""
    return ", ".join(f'"{label}"' for label in labels)
