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
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

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
from confide.dp.accounting.bounds import clopper_pearson, each_of
from confide.files.io import write_json
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


@dataclass(slots=True)
class Tally:
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

    def add(self, flags: tuple[bool, ...]) -> None:
        """Count one secret, with a flag for each of the other fields."""
        self.secrets += 1
        for name, flag in zip(Tally.__slots__[1:], flags, strict=True):
            setattr(self, name, getattr(self, name) + flag)


@dataclass(slots=True)
class Count:
    """What the test counts of the secrets of the corpus, or of those that were planted."""

    labels: dict[str, Tally] = field(default_factory=dict)  # by gold label
    # label -> string -> flags, in any occurrence
    unique: dict[str, dict[str, tuple[bool, ...]]] = field(default_factory=dict)
    misaligned: int = 0  # more than one point differs
    exposed: int = 0  # by the literal neighbour
    points: int = 0  # that differ at most by the literal neighbour


def neighbours(spec: NeighboursSpec, *, points: Path, tokenizer: Path, output: Path) -> None:
    """Write neighbours.json for gold secrets of the train split.

    All its bounds hold together with spec.confidence.

    It says on what terms it was measured, and with which tokenizer and models, as recall.json does.

    Guarantees: only counts, rates and labels are written, never text.
    """
    there = counted(secrets_of(read(points)))
    wanted: dict[Kind, int] = {}
    for planted in (False, True):
        alike = {kind: count for kind, count in there.items() if kind.planted == planted}
        wanted |= quotas(alike, spec.sample)
    drawn = draw(secrets_of(read(points)), wanted, spec.seed)
    find = lru_cache(maxsize=CACHE_TEXTS)(finder_of(spec.redact))
    process = process_of(find, spec.partition, load(tokenizer))
    tester = Tester(process, touched(read(points), drawn), dedup=spec.partition.dedup)
    counts = {False: Count(), True: Count()}
    for secret in drawn:
        outcome, literal = tester.test(secret)
        inside = covered(secret.start, secret.end, find(secret.text).get("spans", []))
        tally(counts[secret.kind.planted], secret, outcome, literal, inside)
    measured_on = {
        "terms": terms(spec.text, spec.redact, spec.partition),
        "reads": list(read_before(spec.reads, tokenizer)),
    }
    write_json(output, measured_on | summary(counts, there, spec.confidence))


def read(points: Path) -> Iterator[Raw]:
    """Points, file order."""
    return map(Raw._make, read_rows(points, *Raw._fields))


def tally(count: Count, secret: Secret, outcome: Outcome, literal: Outcome, inside: bool) -> None:
    """Add one tested secret; inside: the policy's spans cover it in D."""
    different = outcome.kind != "same"
    exposed = outcome.kind == "exposed"
    unstable = different and inside
    flags = (different, exposed, unstable, literal.kind != "same", literal.points > 1)
    count.labels.setdefault(secret.label, Tally()).add(flags)
    strings = count.unique.setdefault(secret.label, {})
    before = strings.get(secret.string, (False,) * len(flags))
    strings[secret.string] = tuple(one or other for one, other in zip(before, flags, strict=True))
    count.misaligned += outcome.points > 1
    count.exposed += literal.kind == "exposed"
    count.points = max(count.points, literal.points)


def summary(counts: dict[bool, Count], there: Counter[Kind], confidence: float) -> dict[str, Any]:
    """The measurement as it is written; rates are null where the corpus names no secret.

    At the top stand the rates of the label with the largest, and the largest bounds. `misaligned`
    is a fault of the stages, whichever secret shows it, so planted ones count for it, too.
    """
    real = counts[False]
    planted = counts[True]
    of_planted = together(list(planted.labels.values()))
    of_planted["sampled"] = of_planted.pop("secrets")
    sizes = {kind.label: size for kind, size in there.items() if not kind.planted}
    each = each_of(confidence, len(EVENTS) * len(sizes))
    labels = {label: rates(real, label, each) for label in sorted(sizes)}
    top = {name: worst(labels, name) for event in EVENTS for name in (event, f"{event}_upper")}
    occurrences = together(list(real.labels.values()))
    sampled = occurrences["secrets"]
    total = sum(sizes.values())
    return top | {
        "confidence": confidence,
        "confidence_each": each if labels else None,
        "note": None if total else NO_GOLD,
        "secrets": total,
        "sampled": sampled,
        "census": sampled == total,
        "worst_label": max(labels, key=lambda label: badness(labels[label]), default=None),
        "occurrences": occurrences,
        "unique": together([unique_of(real, label) for label in real.unique]),
        "labels": labels,
        "misaligned": real.misaligned + planted.misaligned,
        "literal": {"exposed": real.exposed, "points": real.points},
        "planted": of_planted
        | {"secrets": sum(size for kind, size in there.items() if kind.planted)},
    }


def badness(row: dict[str, Any]) -> tuple[float, float]:
    """What labels are compared by: the rate, then its bound.

    All of a label that was not tested may be missed.
    """
    return (1.0, 1.0) if row["gamma"] is None else (row["gamma"], row["gamma_upper"])


def worst(labels: dict[str, dict[str, Any]], name: str) -> float | None:
    """The largest of the labels' rates or bounds; None where there is no label.

    It is 1 for a label of which none was tested.
    """
    return max((1.0 if row[name] is None else row[name] for row in labels.values()), default=None)


def unique_of(count: Count, label: str) -> Tally:
    """The secret strings of a label, each counted once."""
    found = Tally()
    for flags in count.unique.get(label, {}).values():
        found.add(flags)
    return found


def together(tallies: list[Tally]) -> dict[str, int]:
    """Counts of several labels in one.

    They give no rates, for rare labels are sampled more often than frequent ones.
    """
    return {name: sum(getattr(tally, name) for tally in tallies) for name in Tally.__slots__}


def rates(count: Count, label: str, confidence: float) -> dict[str, Any]:
    """Counts of one label of secrets, with their rates and upper bounds.

    A bound is the larger of two, over occurrences and over unique secret strings: occurrences of
    one string change or stay together, so they are not independent trials.
    """
    occurrences = count.labels.get(label, Tally())
    unique = unique_of(count, label)
    found: dict[str, Any] = {name: getattr(occurrences, name) for name in Tally.__slots__}
    found["unique"] = {name: getattr(unique, name) for name in Tally.__slots__}
    for name, event in EVENTS.items():
        found[name] = found[f"{name}_upper"] = None
        if occurrences.secrets:
            found[name] = getattr(occurrences, event) / occurrences.secrets
            found[f"{name}_upper"] = max(
                clopper_pearson(getattr(tally, event), tally.secrets, confidence)
                for tally in (occurrences, unique)
            )
    return found
