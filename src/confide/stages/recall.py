"""Measure a policy against gold secrets: recall, precision, and how large its miss rate may be (CRT section 3.2).

gamma is the share of gold secrets that the policy misses; delta2 the share that it misses in a point on which the
conservative policy is silent too, so that they reach the public pool. Both come with one-sided Clopper-Pearson bounds.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.data import Join, read_rows
from confide.dp.bounds import clopper_pearson
from confide.io import write_json
from confide.policies import covered
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
    """Everything that one pass over the training points counts."""

    secrets: dict[str, Tally] = field(default_factory=dict)  # by gold label
    unique: dict[str, list[bool]] = field(default_factory=dict)  # secret string -> [missed, unprotected] anywhere
    spans: Counter[str] = field(default_factory=Counter)  # by label of the policy
    true: Counter[str] = field(default_factory=Counter)  # of these, the ones that touch a gold secret
    points: Counter[str] = field(default_factory=Counter)  # secret string -> points that contain it
    texts: Counter[str] = field(default_factory=Counter)  # secret string -> distinct texts that contain it
    authors: dict[str, set[str]] = field(default_factory=dict)  # secret string -> whose points contain it
    first_authors: dict[str, set[str]] = field(default_factory=dict)  # the same of distinct texts, which first had them
    pools: Counter[str] = field(default_factory=Counter)
    failures: int = 0


def recall(spec: RecallSpec, *, points: Path, spans: Path, output: Path) -> None:
    """Write recall.json for the train split, before deduplication; bounds hold with probability spec.confidence.

    Guarantees: only counts and rates are written, never a secret.
    """
    count = Count()
    seen: set[bytes] = set()
    for author, text, gold, finding in training_points(points, spans):
        if gold or finding or MASK in text:
            tally(count, author, text, gold, finding, fresh=bool(gold) and _is_new(text, seen))
        else:
            count.pools["public"] += 1
    write_json(output, summary(count, spec.confidence))


def training_points(points: Path, spans: Path) -> Iterator[tuple[str, str, list[Any], dict[str, Any] | None]]:
    """Author, text, gold spans and the line of the policy for each training point; one without author is one of his own."""
    found = Join(spans)
    for key, owner, text, split, gold in read_rows(points, "key", "owner", "text", "split", "gold"):
        finding = found.take(key) if key == found.key else None
        if split == "train":
            yield f"point {key}" if owner is None else f"author {owner}", text, gold, finding
    found.finish()


def _is_new(text: str, seen: set[bytes]) -> bool:
    """Whether the text was not seen before; one with <MASK> is never a copy (as in deduplication)."""
    size = len(seen)
    seen.add(hashlib.sha1(text.encode()).digest())
    return len(seen) > size or MASK in text


def tally(count: Count, author: str, text: str, gold: list[Any], finding: dict[str, Any] | None, *, fresh: bool) -> None:
    """Add one training point to the counts."""
    private = finding is not None or MASK in text
    count.pools["private" if private else "public"] += 1
    found = finding["spans"] if finding else []
    count.failures += bool(finding and finding.get("failed"))
    for start, end, label, *_ in found:
        count.spans[label] += 1
        count.true[label] += any(start < last and first < end for first, last, *_ in gold)
    for start, end, label, *_ in gold:
        missed = not covered(start, end, found)
        unprotected = missed and not (finding and finding["conservative"])
        count.secrets.setdefault(label, Tally()).add(missed, unprotected)
        either = count.unique.setdefault(text[start:end], [False, False])
        either[0] |= missed
        either[1] |= unprotected
    strings = {text[start:end] for start, end, *_ in gold}
    count.points.update(strings)
    if fresh:
        count.texts.update(strings)
    for string in strings:
        count.authors.setdefault(string, set()).add(author)
        if fresh:
            count.first_authors.setdefault(string, set()).add(author)


def summary(count: Count, confidence: float) -> dict[str, Any]:
    """The measurement as it is written; rates are null where there is nothing to count.

    The bounds at the top are the larger of two, over occurrences and over unique secret strings: occurrences of one
    string are found or missed together, so they are not independent trials.
    """
    occurrences = Tally(*(sum(getattr(tally, name) for tally in count.secrets.values()) for name in Tally.__slots__))
    unique = Tally()
    for either in count.unique.values():
        unique.add(*either)
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
        "multiplicity": max(count.points.values(), default=None),
        "multiplicity_distinct": max(count.texts.values(), default=None),
        "multiplicity_authors": max(map(len, count.authors.values()), default=None),
        "multiplicity_authors_distinct": max(map(len, count.first_authors.values()), default=None),
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
