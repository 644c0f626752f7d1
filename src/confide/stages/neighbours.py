"""Mask sampled gold secrets in the raw text, one at a time, and see what the data stages make of it (the neighbour test).

gamma is the share of secrets whose masking changes what training reads: missed by the policy, or covered by it and yet
unstable (the policy then changes its mind elsewhere, or its span reaches beyond the secret). delta2 is the share that
changes a point of the public pool, moves one between the pools, or changes their number. Both come with one-sided
Clopper-Pearson bounds (CRT section 3.2 and Theorem 8.3).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from confide.dp.bounds import clopper_pearson
from confide.io import write_json
from confide.neighbours import Outcome, Secret, Tester, draw, process_of, secrets_of, touched
from confide.partitioning import Raw
from confide.policies import covered
from confide.redaction import finder_of
from confide.rows import read_rows
from confide.specs import NeighboursSpec
from confide.tokenizer import load

NO_GOLD = "the training points carry no gold secrets: nothing can be tested, so gamma and delta2 are unknown"
CACHE_TEXTS = 1 << 14


@dataclass(slots=True)
class Tally:
    """Counts of tested secrets: all, those that leave a trace, a trace in public, a trace though the policy covers them."""

    secrets: int = 0
    different: int = 0
    exposed: int = 0
    unstable: int = 0

    def add(self, different: bool, exposed: bool, unstable: bool) -> None:
        self.secrets += 1
        self.different += different
        self.exposed += exposed
        self.unstable += unstable


@dataclass(slots=True)
class Count:
    """Everything that the test counts."""

    labels: dict[str, Tally] = field(default_factory=dict)  # by gold label
    unique: dict[str, list[bool]] = field(default_factory=dict)  # secret string -> flags of Tally, in any occurrence
    misaligned: int = 0  # more than one point differs
    literal: Counter[str] = field(default_factory=Counter)


def neighbours(spec: NeighboursSpec, *, points: Path, tokenizer: Path, output: Path) -> None:
    """Write neighbours.json for gold secrets of the train split; bounds hold with probability spec.confidence.

    Guarantees: only counts and rates are written, never text.
    """
    drawn, total = draw(secrets_of(read(points)), spec.sample, spec.seed)
    find = lru_cache(maxsize=CACHE_TEXTS)(finder_of(spec.redact))
    process = process_of(find, spec.partition, load(tokenizer))
    tester = Tester(process, touched(read(points), drawn), dedup=spec.partition.dedup)
    count = Count()
    for secret in drawn:
        outcome, literal = tester.test(secret)
        inside = covered(secret.start, secret.end, find(secret.text).get("spans", []))
        tally(count, secret, outcome, literal, inside)
    write_json(output, summary(count, len(drawn), total, spec.confidence))


def read(points: Path) -> Iterator[Raw]:
    """Points, file order."""
    return map(Raw._make, read_rows(points, *Raw._fields))


def tally(count: Count, secret: Secret, outcome: Outcome, literal: Outcome, inside: bool) -> None:
    """Add one tested secret; inside: the policy's spans cover it in D."""
    different = outcome.kind != "same"
    flags = (different, outcome.kind == "exposed", different and inside)
    count.labels.setdefault(secret.label, Tally()).add(*flags)
    before = count.unique.get(secret.string, [False] * 3)
    count.unique[secret.string] = [one or other for one, other in zip(before, flags, strict=True)]
    count.misaligned += outcome.points > 1
    count.literal["different"] += literal.kind != "same"
    count.literal["exposed"] += literal.kind == "exposed"
    count.literal["misaligned"] += literal.points > 1


def summary(count: Count, sampled: int, total: int, confidence: float) -> dict[str, Any]:
    """The measurement as it is written; rates are null where there was nothing to test.

    The bounds at the top are the larger of two, over occurrences and over unique secret strings: occurrences of one
    string change or stay together, so they are not independent trials.
    """
    occurrences = Tally(*(sum(getattr(tally, name) for tally in count.labels.values()) for name in Tally.__slots__))
    unique = Tally()
    for flags in count.unique.values():
        unique.add(*flags)
    both = rates(occurrences, confidence), rates(unique, confidence)
    top = {name: both[0][name] for name in ("gamma", "delta2")}
    for name in ("gamma_upper", "delta2_upper"):
        top[name] = max((rate[name] for rate in both if rate[name] is not None), default=None)
    return top | {
        "confidence": confidence,
        "note": None if total else NO_GOLD,
        "secrets": total,
        "sampled": sampled,
        "census": sampled == total,
        "occurrences": both[0],
        "unique": both[1],
        "labels": {label: rates(tally, confidence) for label, tally in count.labels.items()},
        "misaligned": count.misaligned,
        "literal": {name: count.literal[name] for name in ("different", "exposed", "misaligned")},
    }


def rates(tally: Tally, confidence: float) -> dict[str, Any]:
    """Counts of one kind of secret with their rates and upper bounds."""
    events = {"gamma": tally.different, "delta2": tally.exposed}
    known = tally.secrets > 0
    shares = {name: number / tally.secrets if known else None for name, number in events.items()}
    bounds = {f"{name}_upper": clopper_pearson(n, tally.secrets, confidence) if known else None for name, n in events.items()}
    return {name: getattr(tally, name) for name in Tally.__slots__} | shares | bounds
