"""What several models that were trained on one corpus tell of it together.

Whoever receives several models has the sum of what they tell. Each noised update of each training
is one mechanism, so all of them are composed by their privacy loss distributions, which is less
than the sum of the epsilons. A training that several models start from took place once, so it is
counted once. Where the ledgers are not at hand, or a claim is not simply the price of its ledgers'
updates, epsilons and deltas are added instead (basic composition: Dwork and Roth 2014, Theorem
3.16).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from confide.certify.facts import AUTHOR, PART_OF_AUTHOR, SECRET_MISSED, TOKENS
from confide.dp.accounting.curves import Relation
from confide.dp.accounting.price import agree, epsilon, or_infinity, price, units_hidden
from confide.dp.ledger import Ledger, noise_drawn_twice
from confide.errors import InputError
from confide.types import AnyRelease

REPLACED = "record_replace_one_pld"
# those that add up: what they are about, and the relation
CLAIMS: dict[str, tuple[str, Relation]] = {
    REPLACED: ("one record replaced", "replace_one"),
    "record_add_or_remove_pld": ("one record added or removed", "add_or_remove"),
    SECRET_MISSED: ("one secret that the policy misses, masked", "replace_one"),
}
RECORDS = tuple(name for name in CLAIMS if name != SECRET_MISSED)
SHORT = re.compile(r" of fewer than (\d+) tokens")  # in what a claim about a packed model is of
SAME = 1e-6  # relative difference of two prices that are the same
TWICE = "the same noise was drawn in two trainings"
COPIES = (
    "later copies of a text are masked for some models alone: replacing a record, or masking a "
    "secret in one place or wherever its text stands, changes several records of one or the other"
)
COMPOSED = "updates composed"
ADDED = "epsilons and deltas added"


class Stated(NamedTuple):
    """Epsilon and delta of one claim of one certificate."""

    epsilon: float
    delta: float


NOTHING = Stated(math.inf, 0.0)  # of a claim that a certificate does not make


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model as its certificate has it.

    `unit`: what its noise hides. `secret`: what the claim of a missed secret is of. `history`:
    ledgers of its training and of those that it started from, oldest first; None where they are not
    at hand, so that the certificate is taken at its word. `corpora`: names and digests of what it
    was trained on, as far as that is recorded. `read_openly`: those that its public starts were
    trained on, and another model protects. `alone`: its records are no records of any other
    model (chunks of text, cut anew for each model), though secrets are the same. `note`: what its
    certificate says against giving it away. `vocabulary`: digest of what makes its tokens.
    """

    file: Path
    run: str
    head: str
    unit: str
    secret: str
    claims: dict[str, Stated]
    history: tuple[Ledger, ...] | None
    corpora: frozenset[tuple[str, str]] = frozenset()
    read_openly: frozenset[tuple[str, str]] = frozenset()
    alone: bool = False
    note: str | None = None
    vocabulary: str = ""
    dedup: bool | None = None  # later copies of its texts were masked; None: nobody says

    def stated(self, name: str) -> Stated:
        return self.claims.get(name, NOTHING)

    def is_price(self, name: str) -> bool:
        """Whether a claim is the price of the ledgers' updates, so that updates can be composed."""
        claim = self.stated(name)
        if self.history is None or claim.epsilon == math.inf or claim.delta == 0:
            return False
        if name == SECRET_MISSED and self.most_tokens is not None:
            return False  # it lies in two chunks
        paid = or_infinity(epsilon(releases_of(self.history), claim.delta, CLAIMS[name][1]))
        return math.isclose(paid, claim.epsilon, rel_tol=SAME, abs_tol=SAME)

    @property
    def most_tokens(self) -> int | None:
        """Of how many tokens a secret must have fewer; None if of any number."""
        short = SHORT.search(self.secret)
        return int(short[1]) if short else None

    @property
    def where(self) -> str:
        """A secret by where it may lie, whatever its length: it is one for all such models."""
        if self.secret == TOKENS:
            return f"one secret within {self.unit}"
        return SHORT.sub("", self.secret)

    @property
    def hides(self) -> set[str]:
        """Whether noise hides points or authors."""
        return units_hidden(releases_of(self.history or ()))


class Total(NamedTuple):
    """One claim of several models together.

    added: the sum of their epsilons, for comparison. why: of an infinite one.
    """

    claim: str
    epsilon: float
    delta: float
    added: float
    how: str
    # runs that several models have started from, or that are a model of their own as well: they
    # are counted once
    shared: list[str]
    why: str | None = None


class Group(NamedTuple):
    """Models whose records, or whose secrets, are the same: what these claims cost adds up.

    assumed: those of which no corpus is recorded.
    """

    unit: str
    corpora: list[str]
    models: list[Model]
    assumed: list[Model]
    claims: tuple[str, ...]


def releases_of(ledgers: Iterable[Ledger]) -> list[AnyRelease]:
    """All updates of several ledgers."""
    return [release for ledger in ledgers for release in ledger.releases()]


def distinct(models: Sequence[Model]) -> tuple[list[Model], list[tuple[Model, Model]]]:
    """Each training once, and what was left out with the one that stands for it.

    That is one with its ledgers, else the dearest.
    """

    def place(model: Model) -> tuple[bool, float, float]:
        claim = model.stated(REPLACED)
        return model.history is None, -claim.epsilon, -claim.delta

    by_head: dict[str, Model] = {}
    for model in sorted(models, key=place):
        by_head.setdefault(model.head, model)
    left_out = [
        (model, by_head[model.head]) for model in models if by_head[model.head] is not model
    ]
    return [model for model in models if by_head[model.head] is model], left_out


def groups_of(models: Sequence[Model]) -> list[Group]:
    """Models by corpus and by what their claims are of: a record, and a secret.

    One whose corpus is not recorded may be of any, so it is counted with each.
    """
    unknown = [model for model in models if not model.corpora]
    parts = related([model for model in models if model.corpora])
    groups = []
    for corpora, known in parts or [(frozenset(), [])]:
        names = sorted(value for kind, value in corpora if kind == "name")
        candidates = [model for model in models if model in known or model in unknown]
        some = list(record_groups(candidates))
        of_secrets = alike(candidates, lambda model: model.where)
        some += [(narrowest(members), members, (SECRET_MISSED,)) for members in of_secrets]
        for unit, members, claims in some:
            assumed = [model for model in members if model in unknown]
            groups.append(Group(unit, names, members, assumed, claims))
    return groups


def record_groups(
    models: Sequence[Model],
) -> Iterator[tuple[str, list[Model], tuple[str, ...]]]:
    """A record, the models that have it, and which claims about it add up.

    Whoever replaces all private points of an author replaces an author; who adds or removes them
    changes one whose other points stay, which is no author more or less.
    """

    def whole(model: Model) -> tuple[str, str]:
        unit = model.unit.replace(PART_OF_AUTHOR, AUTHOR)
        return unit, model.head if model.alone else ""

    for members in alike(models, whole):
        by_unit = alike(members, lambda model: model.unit)
        if len(by_unit) == 1:
            yield members[0].unit, members, RECORDS
            continue
        part = next(model.unit for model in members if PART_OF_AUTHOR in model.unit)
        yield part, members, (REPLACED,)
        for some in by_unit:
            others = tuple(name for name in RECORDS if name != REPLACED)
            yield some[0].unit, some, others


def alike(models: Sequence[Model], key: Callable[[Model], Hashable]) -> list[list[Model]]:
    """Models with the same key, in order of the first of each."""
    groups: dict[Hashable, list[Model]] = {}
    for model in models:
        groups.setdefault(key(model), []).append(model)
    return list(groups.values())


def narrowest(models: Sequence[Model]) -> str:
    """What all claims of several models about one secret are of: the shortest that one is of.

    A length counts in the tokens of its own model, so of each vocabulary there is a shortest.
    """

    def size(model: Model) -> tuple[float, bool]:
        return model.most_tokens or math.inf, model.secret != TOKENS

    by_size = sorted(models, key=size)
    shortest: dict[str, Model] = {}
    for model in by_size:
        if model.most_tokens is not None:
            shortest.setdefault(model.vocabulary, model)
    if len(shortest) < 2:
        return by_size[0].secret
    lengths = [f"{model.most_tokens} tokens of {model.run}" for model in shortest.values()]
    words = f" of fewer than {' and '.join(lengths)}"
    return SHORT.sub(lambda _: words, by_size[0].secret)


def related(models: Sequence[Model]) -> list[tuple[frozenset[tuple[str, str]], list[Model]]]:
    """Models that share a corpus's name or digest, directly or through other models."""
    parts: list[tuple[frozenset[tuple[str, str]], list[Model]]] = []
    for model in models:
        own = model.corpora | model.read_openly
        touching = [part for part in parts if part[0] & own]
        joined = own.union(*(corpora for corpora, _ in touching))
        members = [member for _, some in touching for member in some]
        parts = [part for part in parts if part not in touching] + [(joined, [*members, model])]
    return parts


def total(models: Sequence[Model], name: str, delta: float | None = None) -> Total:
    """What distinct models cost together, at the sum of their deltas or at `delta`.

    InputError where that delta is too small for what the certificates claim, or the sum is no
    probability.
    """
    relation = CLAIMS[name][1]
    priced = [model for model in models if model.is_price(name)]
    if len(set().union(*(model.hides for model in priced))) > 1:
        priced = []  # updates that hide authors do not compose with those that hide points
    ledgers = {ledger.head: ledger for model in priced for ledger in model.history or ()}
    worded = [model.stated(name) for model in models if model not in priced]
    stated = [model.stated(name) for model in models]
    at = sum(claim.delta for claim in stated) if delta is None else delta
    added = sum(claim.epsilon for claim in stated)
    if why := hopeless(models, name):
        return Total(name, epsilon=math.inf, delta=at, added=added, how="none", shared=[], why=why)
    left = at - sum(claim.delta for claim in worded)
    if not (0 < at < 1) or left < 0 or (priced and left <= 0):
        message = "leaves nothing for the updates, or is no probability: the claims alone need more"
        raise InputError(message, key="delta", value=at)
    cost = sum(claim.epsilon for claim in worded)
    if priced:
        together = price(releases_of(ledgers.values()))
        reached = together.missed if name == SECRET_MISSED else together.record
        cost += math.inf if reached is None else agree(reached, left, relation)["pld"]
    how = " and ".join(word for word, some in ((COMPOSED, priced), (ADDED, worded)) if some)
    return Total(
        name, epsilon=or_infinity(cost), delta=at, added=added, how=how, shared=shared_by(priced)
    )


def hopeless(models: Sequence[Model], name: str) -> str | None:
    """Why several models together bound nothing, or None."""
    unbounded = [model.run for model in models if model.stated(name).epsilon == math.inf]
    if unbounded:
        return f"nothing bounds {', '.join(unbounded)}"
    openly = [model.run for model in models if model.read_openly]
    if openly:
        return f"what {', '.join(openly)} started from had read such a corpus as public text"
    if len({model.dedup for model in models}) > 1:
        return COPIES
    ledgers = {ledger.head: ledger for model in models for ledger in model.history or ()}
    return TWICE if noise_drawn_twice(ledgers.values()) else None


def shared_by(models: Sequence[Model]) -> list[str]:
    """Runs whose ledger is in the history of several models."""
    histories = [{ledger.head: ledger for ledger in model.history or ()} for model in models]
    counts = Counter(head for ledgers in histories for head in ledgers)
    ledgers = {head: ledger for some in histories for head, ledger in some.items()}
    return [run_of(ledgers[head]) for head, count in counts.items() if count > 1]


def run_of(ledger: Ledger) -> str:
    """Name of the run that a ledger is of."""
    started: list[dict[str, Any]] = ledger.events("start")
    return started[0]["run"] if started else f"ledger {ledger.head[:12]}"
