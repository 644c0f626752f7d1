"""Measure a policy against gold secrets: recall, precision, and how large its miss rate may be (CRT section 3.2).

gamma is the share of gold secrets that the policy misses; delta2 the share that it misses in a point on which the
conservative policy is silent too, so that they reach the public pool. Both come with one-sided Clopper-Pearson bounds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from confide.buckets import Buckets, Offsets, repeats
from confide.deduplication import digest, digests
from confide.dp.bounds import clopper_pearson
from confide.io import Range, size_of, write_json
from confide.policies import covered
from confide.rows import Found, Join, located_rows, stretch
from confide.secret_strings import COUNTED, Shown, Strings, shown
from confide.shards import scatter, shards
from confide.specs import RecallSpec
from confide.types import MASK

NO_GOLD = "the training points carry no gold secrets: nothing can be measured, so assume miss_rate and delta2"


@dataclass(slots=True)
class Tally:
    """Counts of gold secrets: all, missed by the policy, and missed without a conservative hit in their point."""

    secrets: int = 0
    missed: int = 0
    unprotected: int = 0

    def add(self, missed: bool, unprotected: bool) -> None:
        self.secrets += 1
        self.missed += missed
        self.unprotected += unprotected


@dataclass(slots=True)
class Count:
    """What is counted over training points, but for what is counted by secret string."""

    secrets: dict[str, Tally] = field(default_factory=dict)  # by gold label
    spans: Counter[str] = field(default_factory=Counter)  # by label of the policy
    true: Counter[str] = field(default_factory=Counter)  # of these, the ones that touch a gold secret
    pools: Counter[str] = field(default_factory=Counter)
    failures: int = 0

    def join(self, other: "Count") -> None:
        """Add what was counted over other points."""
        for label, tally in other.secrets.items():
            mine = self.secrets.setdefault(label, Tally())
            for name in Tally.__slots__:
                setattr(mine, name, getattr(mine, name) + getattr(tally, name))
        self.spans += other.spans
        self.true += other.true
        self.pools += other.pools
        self.failures += other.failures


def recall(spec: RecallSpec, *, points: Path, spans: Path, output: Path, threads: int = 1) -> None:
    """Write recall.json for the train split, before deduplication; bounds hold with probability spec.confidence.

    Guarantees: only counts and rates are written, never a secret.
    """
    ranges, folder, digested = shards(points), output.parent, digest("hmac-sha1")
    copies, count, together = Offsets(folder), Count(), Shown()
    for found in repeats(lambda: partial(gold_texts, digested), ranges, folder, threads):
        copies.extend(found["at"])
    strings = Buckets(folder, size_of(points), COUNTED)
    for part, records in scatter(lambda: partial(counted, digested, copies, spans), ranges, threads):
        count.join(part)
        strings.add(records)
    for some in scatter(lambda: lambda index: shown(strings.read(index)), range(len(strings.files)), threads):
        together = together.beside(some)
    write_json(output, summary(count, together, spec.confidence))


def gold_texts(digested: Callable[[bytes], bytes], shard: Range) -> Iterator[tuple[int, bytes]]:
    """Byte at which the training points with gold spans begin, and digest of their texts, where they can be copies."""
    rows = located_rows(shard, "text", "split", "gold")
    return digests(((at, text, split) for at, (text, split, gold) in rows if gold), digested)


def counted(digested: Callable[[bytes], bytes], copies: Offsets, spans: Path, shard: Range) -> tuple[Count, np.ndarray]:
    """What is counted over the training points of a shard, and the records of their secret strings."""
    count, strings, later = Count(), Strings(), frozenset(copies.within(shard).tolist())
    found = Join(Found, stretch(spans, shard))
    for at, (key, owner, text, split, gold) in located_rows(shard, "key", "owner", "text", "split", "gold"):
        finding = found.take(key) if key == found.key else None
        if split != "train":
            continue
        if gold or finding or MASK in text:
            strings.add(owner, tally(count, text, gold, finding), fresh=at not in later)
        else:
            count.pools["public"] += 1
    found.finish()
    return count, strings.records(digested)


def tally(count: Count, text: str, gold: list[Any], finding: Found | None) -> dict[str, tuple[bool, bool]]:
    """Add one training point to the counts; for each of its secret strings, whether one is missed, and one unprotected."""
    private = finding is not None or MASK in text
    count.pools["private" if private else "public"] += 1
    found = finding.spans if finding else []
    count.failures += bool(finding and finding.failed)
    for start, end, label, *_ in found:
        count.spans[label] += 1
        count.true[label] += any(start < last and first < end for first, last, *_ in gold)
    strings: dict[str, tuple[bool, bool]] = {}
    for start, end, label, *_ in gold:
        missed = not covered(start, end, found)
        unprotected = missed and not (finding and finding.conservative)
        count.secrets.setdefault(label, Tally()).add(missed, unprotected)
        before = strings.get(text[start:end], (False, False))
        strings[text[start:end]] = (before[0] or missed, before[1] or unprotected)
    return strings


def summary(count: Count, together: Shown, confidence: float) -> dict[str, Any]:
    """The measurement as it is written; rates are null where there is nothing to count.

    The bounds at the top are the larger of two, over occurrences and over unique secret strings: occurrences of one
    string are found or missed together, so they are not independent trials.
    """
    occurrences = Tally(*(sum(getattr(tally, name) for tally in count.secrets.values()) for name in Tally.__slots__))
    unique = Tally(*together[:3])
    both = rates(occurrences, confidence), rates(unique, confidence)
    top = {name: both[0][name] for name in ("recall", "miss_rate", "delta2")}
    for name in ("miss_rate_upper", "delta2_upper"):
        top[name] = max((rate[name] for rate in both if rate[name] is not None), default=None)
    return top | {
        "confidence": confidence,
        "note": None if count.secrets else NO_GOLD,
        "occurrences": both[0],
        "unique": both[1],
        "labels": {label: rates(tally, confidence) for label, tally in count.secrets.items()},
        "precision": _share(count.true.total(), count.spans.total()) if count.secrets else None,
        "spans": {
            label: {"found": found, "precision": _share(count.true[label], found) if count.secrets else None}
            for label, found in count.spans.items()
        },
        "pools": {name: count.pools[name] for name in ("public", "private")},
        "multiplicity": together.points or None,
        "multiplicity_distinct": together.texts or None,
        "multiplicity_authors": together.authors or None,
        "multiplicity_authors_distinct": together.first_authors or None,
        "policy_failures": count.failures,
    }


def rates(tally: Tally, confidence: float) -> dict[str, Any]:
    """Counts of one kind of secret with their rates and upper bounds."""
    return {
        "secrets": tally.secrets,
        "missed": tally.missed,
        "unprotected": tally.unprotected,
        "recall": _share(tally.secrets - tally.missed, tally.secrets),
        "miss_rate": _share(tally.missed, tally.secrets),
        "miss_rate_upper": _upper(tally.missed, tally.secrets, confidence),
        "delta2": _share(tally.unprotected, tally.secrets),
        "delta2_upper": _upper(tally.unprotected, tally.secrets, confidence),
        "delta2_given_miss": _share(tally.unprotected, tally.missed),
        "delta2_given_miss_upper": _upper(tally.unprotected, tally.missed, confidence),
    }


def _upper(events: int, trials: int, confidence: float) -> float | None:
    return clopper_pearson(events, trials, confidence) if trials else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
