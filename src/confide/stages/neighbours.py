"""Mask gold secrets in the raw text one at a time, and see what training would read then.

This is the neighbour test.

gamma is the share of secrets whose masking changes what training reads: missed by the policy, or
covered by it and yet unstable (the policy then changes its mind elsewhere, or its span reaches
beyond the secret). delta2 is the share that changes a point of the public pool, moves one between
the pools, or changes their number (CRT section 3.2, Theorem 8.3).

Both are of the label of secrets that fares worst: a policy that finds all telephone numbers and no
name does not miss half of the secrets, it misses names. Secrets that the tool planted count for
neither; what became of them stands apart.

Two neighbours are tested. In the usual one later copies of the text stay masked; in the literal one
a single occurrence is masked, so that the second copy becomes the first and is read in its place.
`gamma_literal` is the share of secrets for which that changes anything, `doubled_literal` the share
for which it changes more than one point.

A review adds secrets that a person marked, and rates of their own that follow from these. Where
there are gold secrets, too, the larger bounds govern: gold knows what it names, a person sees the
rest.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from confide.certify import review as of_review
from confide.data.gold_columns import alike, candidates
from confide.data.label_rates import of_worst_label, upper
from confide.data.neighbours import (
    Kind,
    Outcome,
    Secret,
    Tester,
    draw,
    lot_of,
    process_of,
    quotas,
    touched,
)
from confide.data.redaction import finder_of
from confide.dp.accounting.bounds import each_of
from confide.errors import InputError
from confide.files.io import write_json
from confide.files.jsons import JsonObject
from confide.files.shards import shards
from confide.policies import covered
from confide.provenance.terms import findings_by, read_before, terms
from confide.reviews.draw import Drawn, Mark, Text, with_copies
from confide.reviews.marks import Review, reviewed
from confide.reviews.tally import Rates, counts_of, marks_of
from confide.specs import NeighboursSpec
from confide.text.planted import audit_set
from confide.text.tokenizer import load

NO_GOLD = (
    "the corpus names no secrets, so nobody can say what the policy misses: "
    "gamma and delta2 are unknown"
)
CACHE_TEXTS = 1 << 14
EVENTS = {
    "gamma": "different",
    "delta2": "exposed",
    "gamma_literal": "literal",
    "doubled_literal": "doubled",
}


class Tally(NamedTuple):
    """Counts of tested secrets: all, and those that leave a trace of one kind or another.

    different: a trace; exposed: one in public; unstable: one though the policy covers the secret.

    literal, doubled: those that leave a trace if they alone are masked, and one in more than one
    point.
    """

    secrets: int = 0
    different: int = 0
    exposed: int = 0
    unstable: int = 0
    literal: int = 0
    doubled: int = 0


class Trial(NamedTuple):
    """A tested secret, and what it counts as."""

    secret: Secret
    outcome: Outcome
    literal: Outcome
    tally: Tally


class Told(NamedTuple):
    """A review, what it counts, and trials of all that the policy found or the person marked."""

    review: Review
    counts: JsonObject
    tested: list[Trial]

    @property
    def written(self) -> JsonObject:
        """What neighbours.json says of it, without text and without names of points."""
        review = self.review
        who = {"by": review.by, "seed": review.seed, "most": review.most}
        numbers = {"drawn": len(review.marks), "reviewed": review.reviewed}
        return {"reviewed": who | numbers, "review_counts": self.counts}


def neighbours(
    spec: NeighboursSpec,
    *,
    points: Path,
    tokenizer: Path,
    output: Path,
    review: Path | None = None,
    spans: Path | None = None,
    copies: Path | None = None,
    threads: int = 1,
) -> None:
    """Write neighbours.json for gold secrets of the train split, and for those of a `review`.

    All its bounds hold together with spec.confidence. A review's texts are drawn again from the
    points, from what the policies find in them (`spans`), and without later copies (`copies`).

    `threads`: processes that read the points.

    It says on what terms it was measured, and with which tokenizer and models, as recall.json does.

    Guarantees: only counts, rates and labels are written, never text.
    """
    labels = spec.text.labels
    ranges = shards(points)
    lot = lot_of(points, spec.seed)
    there, some_secrets = candidates(ranges, labels, spec.sample, lot, threads)
    for label in labels or spec.named:
        there.setdefault(Kind(planted=False, label=label), 0)
    wanted: dict[Kind, int] = {}
    for planted in (False, True):
        some = {kind: count for kind, count in there.items() if kind.planted == planted}
        wanted |= quotas(some, spec.sample)
    drawn = draw(some_secrets, wanted, lot)
    find = lru_cache(maxsize=CACHE_TEXTS)(finder_of(spec.redact))
    process = process_of(find, spec.partition, load(tokenizer))
    by_hand = None if review is None else with_texts(spec, review, points, spans, copies)
    marked = [] if by_hand is None else [secret_of(*mark) for mark in marks_of(*by_hand)]
    secrets = [*drawn, *marked]
    texts = {text for secret in secrets for text in (secret.text, secret.masked)}
    same = touched(alike(ranges, texts, threads), secrets)
    tester = Tester(process, same, dedup=spec.partition.dedup)

    def trial(secret: Secret) -> Trial:
        inside = covered(secret.start, secret.end, find(secret.text).get("spans", []))
        outcome, literal = tester.test(secret)
        return Trial(secret, outcome, literal, tally_of(outcome, literal, inside))

    tested = [trial(secret) for secret in drawn]
    measured_on = {
        "terms": terms(spec.text, spec.redact, spec.partition),
        "reads": list(read_before(spec.reads, tokenizer)),
    }
    review_told = None
    if by_hand is not None:
        counts = counts_of(*by_hand, partial(rates_in, tester), of_review.RATES)
        review_told = Told(by_hand[0], counts, [trial(secret) for secret in marked])
    write_json(output, measured_on | summary(tested, there, spec.confidence, review_told))


def with_texts(
    spec: NeighboursSpec, review: Path, points: Path, spans: Path | None, copies: Path | None
) -> tuple[Review, Drawn]:
    """A review with its texts; InputError without the files that these are drawn from."""
    if spans is None or copies is None:
        raise InputError("needs spans and copies, too: its texts are drawn from them", key="review")
    files = {"points": points, "spans": spans, "copies": copies}
    read, sample = reviewed(spec.text, spec.redact, review, **files)
    if not spec.partition.dedup:
        policies = findings_by(spec.redact)
        sample = with_copies(sample, read.most, **files, policies=policies)
    return read, sample


def secret_of(text: Text, mark: Mark) -> Secret:
    """What a person marked, or the policy found, as a secret to test."""
    return Secret(text.key, text.text, *mark)


def rates_in(tester: Tester, text: Text, mark: Mark) -> Rates:
    """For which rates a secret counts."""
    counted_as = tally_of(*tester.test(secret_of(text, mark)), inside=False)
    return {rate: bool(getattr(counted_as, event)) for rate, event in EVENTS.items()}


def tally_of(outcome: Outcome, literal: Outcome, inside: bool) -> Tally:
    """What one secret counts as; inside: the policy's spans cover it in D."""
    different = outcome.kind != "same"
    return Tally(
        secrets=1,
        different=different,
        exposed=outcome.kind == "exposed",
        unstable=different and inside,
        literal=literal.kind != "same",
        doubled=literal.points > 1,
    )


def summary(
    tested: list[Trial],
    there: Counter[Kind],
    confidence: float,
    review: Told | None = None,
) -> JsonObject:
    """The measurement as it is written; rates are null where nobody names a secret.

    At the top stand the rates of the label with the largest, and the largest bounds. `misaligned`
    is a fault of the stages, whichever secret shows it, so planted ones count for it, too.
    """
    real = [test for test in tested if not test.secret.kind.planted]
    by_hand = [] if review is None else review.tested
    shown = [*real, *by_hand]
    every = [*tested, *by_hand]
    planted = planted_counts([test for test in tested if test.secret.kind.planted])
    planted["secrets"] = sum(size for kind, size in there.items() if kind.planted)
    sizes = {kind.label: size for kind, size in there.items() if not kind.planted}
    bounds = len(EVENTS) * len(sizes)
    bounds += 0 if review is None else of_review.bounds_in(review.counts)
    each = each_of(confidence, bounds)
    labels = {
        label: rates([test for test in real if test.secret.label == label], each)
        for label in sorted(sizes)
    }
    total = sum(sizes.values())
    worst = of_worst_label(labels, tuple(EVENTS))
    if review is not None:
        rows = of_review.rates_of(review.counts, each)
        worst = larger(worst, of_worst_label(rows, tuple(EVENTS)))
        worst |= review.written | {"review_labels": rows}
    return worst | {
        "labels": labels,
        "confidence": confidence,
        "confidence_each": each if bounds else None,
        "note": None if total or review else NO_GOLD,
        "secrets": total,
        "sampled": len(real),
        "census": len(real) == total,
        "occurrences": together(test.tally for test in real)._asdict(),
        "unique": together(Tally(**row["unique"]) for row in labels.values())._asdict(),
        "misaligned": sum(test.outcome.points > 1 for test in every),
        "literal": {
            "exposed": sum(test.literal.kind == "exposed" for test in shown),
            "points": max((test.literal.points for test in shown), default=0),
        },
        "planted": planted,
    }


def planted_counts(tests: list[Trial]) -> JsonObject:
    """Counts of planted secrets; `sets`: of those whose coins an audit guesses, set by set.

    read: of these, what redacted text still holds.
    """
    counts: JsonObject = together(test.tally for test in tests)._asdict()
    counts["sampled"] = len(tests)
    of_sets: dict[str, list[Trial]] = {}
    for test in tests:
        name = audit_set(test.secret.doc)
        if name is not None:
            of_sets.setdefault(name, []).append(test)
    counts["sets"] = {name: coins_of(of_set) for name, of_set in sorted(of_sets.items())}
    return counts


def coins_of(tests: list[Trial]) -> dict[str, int]:
    """Counts of the planted secrets of a set.

    A secret that is hidden whole may leave a trace beside it, of which guessing it learns nothing.
    """
    counts = together(test.tally for test in tests)
    return {
        "sampled": len(tests),
        "different": counts.different,
        "read": counts.different - counts.unstable,
    }


def larger(gold: JsonObject, review: JsonObject) -> JsonObject:
    """The larger of the bounds that gold secrets and a review give, and no rate as measured.

    A review is a sample: what it estimates bounds nothing.
    """
    bounds = [f"{rate}_upper" for rate in EVENTS]
    known = [rates for rates in (gold, review) if rates["gamma_upper"] is not None]
    worse = max(known, key=lambda rates: rates["gamma_upper"])
    return dict.fromkeys(EVENTS) | {
        "worst_label": worse["worst_label"],
        **{name: max(rates[name] for rates in known) for name in bounds},
    }


def together(tallies: Iterable[Tally]) -> Tally:
    """Counts of several secrets, or of several labels, in one.

    Of labels they give no rates, for rare ones are sampled more often than frequent ones.
    """
    return Tally(*map(sum, zip(*tallies, strict=True)))


def rates(tests: list[Trial], confidence: float) -> JsonObject:
    """Counts of one label of secrets, with their rates and upper bounds.

    A secret string counts once among the unique ones, with what any of its occurrences shows.
    """
    alike: dict[str, Tally] = {}
    for test in tests:
        before = alike.get(test.secret.string, Tally())
        alike[test.secret.string] = Tally(*map(max, before, test.tally))
    occurrences = together(test.tally for test in tests)
    unique = together(alike.values())
    numbers: JsonObject = {**occurrences._asdict(), "unique": unique._asdict()}
    for name, event in EVENTS.items():
        rate = None
        bound = None
        if tests:
            rate = getattr(occurrences, event) / len(tests)
            bound = upper((occurrences, unique), event, "secrets", confidence)
        numbers[name] = rate
        numbers[f"{name}_upper"] = bound
    return numbers
