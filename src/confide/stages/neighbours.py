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
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from confide.data.label_rates import of_worst_label, upper
from confide.data.neighbours import (
    Kind,
    Outcome,
    Secret,
    Tester,
    counted,
    draw,
    process_of,
    quotas,
    secrets_of,
    touched,
)
from confide.data.partitioning import Raw
from confide.data.redaction import finder_of
from confide.dp.accounting.bounds import each_of
from confide.files.io import write_json
from confide.files.jsons import JsonObject
from confide.files.rows import read_rows
from confide.policies import covered
from confide.provenance.terms import read_before, terms
from confide.specs import NeighboursSpec
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


def neighbours(spec: NeighboursSpec, *, points: Path, tokenizer: Path, output: Path) -> None:
    """Write neighbours.json for gold secrets of the train split.

    All its bounds hold together with spec.confidence.

    It says on what terms it was measured, and with which tokenizer and models, as recall.json does.

    Guarantees: only counts, rates and labels are written, never text.
    """
    labels = spec.text.labels
    there = counted(chosen(secrets_of(read(points)), labels))
    for label in labels or ():
        there.setdefault(Kind(planted=False, label=label), 0)
    wanted: dict[Kind, int] = {}
    for planted in (False, True):
        alike = {kind: count for kind, count in there.items() if kind.planted == planted}
        wanted |= quotas(alike, spec.sample)
    drawn = draw(chosen(secrets_of(read(points)), labels), wanted, spec.seed)
    find = lru_cache(maxsize=CACHE_TEXTS)(finder_of(spec.redact))
    process = process_of(find, spec.partition, load(tokenizer))
    tester = Tester(process, touched(read(points), drawn), dedup=spec.partition.dedup)
    tested = []
    for secret in drawn:
        inside = covered(secret.start, secret.end, find(secret.text).get("spans", []))
        outcome, literal = tester.test(secret)
        tested.append(Trial(secret, outcome, literal, tally_of(outcome, literal, inside)))
    measured_on = {
        "terms": terms(spec.text, spec.redact, spec.partition),
        "reads": list(read_before(spec.reads, tokenizer)),
    }
    write_json(output, measured_on | summary(tested, there, spec.confidence))


def chosen(secrets: Iterable[Secret], labels: list[str] | None) -> Iterator[Secret]:
    """Secrets of these labels, and planted ones; None: all."""
    return (
        secret
        for secret in secrets
        if labels is None or secret.kind.planted or secret.label in labels
    )


def read(points: Path) -> Iterator[Raw]:
    """Points, file order."""
    return map(Raw._make, read_rows(points, *Raw._fields))


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


def summary(tested: list[Trial], there: Counter[Kind], confidence: float) -> JsonObject:
    """The measurement as it is written; rates are null where the corpus names no secret.

    At the top stand the rates of the label with the largest, and the largest bounds. `misaligned`
    is a fault of the stages, whichever secret shows it, so planted ones count for it, too.
    """
    real = [test for test in tested if not test.secret.kind.planted]
    planted = together(test.tally for test in tested if test.secret.kind.planted)._asdict()
    planted["sampled"] = planted["secrets"]
    planted["secrets"] = sum(size for kind, size in there.items() if kind.planted)
    sizes = {kind.label: size for kind, size in there.items() if not kind.planted}
    each = each_of(confidence, len(EVENTS) * len(sizes))
    labels = {
        label: rates([test for test in real if test.secret.label == label], each)
        for label in sorted(sizes)
    }
    total = sum(sizes.values())
    return of_worst_label(labels, tuple(EVENTS)) | {
        "confidence": confidence,
        "confidence_each": each if labels else None,
        "note": None if total else NO_GOLD,
        "secrets": total,
        "sampled": len(real),
        "census": len(real) == total,
        "occurrences": together(test.tally for test in real)._asdict(),
        "unique": together(Tally(**row["unique"]) for row in labels.values())._asdict(),
        "misaligned": sum(test.outcome.points > 1 for test in tested),
        "literal": {
            "exposed": sum(test.literal.kind == "exposed" for test in real),
            "points": max((test.literal.points for test in real), default=0),
        },
        "planted": planted,
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
    found: JsonObject = {**occurrences._asdict(), "unique": unique._asdict()}
    for name, event in EVENTS.items():
        found[name] = found[f"{name}_upper"] = None
        if tests:
            found[name] = getattr(occurrences, event) / len(tests)
            found[f"{name}_upper"] = upper((occurrences, unique), event, "secrets", confidence)
    return found
