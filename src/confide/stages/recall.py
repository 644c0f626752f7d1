"""Measure a policy against gold secrets: recall, precision, and bounds on what it misses.

CRT section 3.2 names them.

gamma is the share of gold secrets that the policy misses; delta2 the share that it misses in a
point on which the conservative policy is silent too, so that they reach the public pool. Both are
of the label of secrets that fares worst, with one-sided Clopper-Pearson bounds that hold together.
Secrets that the tool planted itself are no secrets of the corpus: they are counted apart.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from confide.data import occurrences
from confide.data.label_rates import of_worst_label, upper
from confide.data.occurrences import (
    Joined,
    check_gold_apart,
    planted,
    texts_of,
    touched,
)
from confide.data.occurrences import (
    covered as covered_at,
)
from confide.dp.accounting.bounds import each_of
from confide.files import arrays, columns
from confide.files.buckets import KEYED, Buckets, Offsets, later_places
from confide.files.columns import Points, Spans
from confide.files.io import Range, size_of, write_json
from confide.files.jsons import JsonObject
from confide.files.rows import Found, Join, located_rows
from confide.files.shards import scatter, shards
from confide.files.stretches import Beside
from confide.output.escaping import warn
from confide.policies import is_within, runs_of, shows
from confide.provenance.terms import findings_by, read_before, terms
from confide.specs import RecallSpec
from confide.text.deduplication import TURNS, apart, can_be_copy, content, contents_apart
from confide.text.fingerprints import KEY, Fingerprints, fresh
from confide.text.planted import is_planted_key
from confide.text.secret_strings import (
    Everywhere,
    Flags,
    Most,
    Occurrences,
    Records,
    Strings,
    records_of,
    together,
)
from confide.types import MASK

NO_GOLD = (
    "the corpus names no secrets, so nobody can say what the policy misses: its rates are unknown"
)
MARK = np.dtype([("start", np.int64), ("end", np.int64), ("label", KEY)])  # of a gold span
BOUNDED = ("miss_rate", "delta2", "delta2_given_miss")


@dataclass(slots=True)
class Count:
    """What is counted over training points, but for what is counted by secret string."""

    secrets: dict[str, Flags] = field(default_factory=dict)  # by gold label
    planted: Flags = field(default_factory=Flags)  # whatever their label
    # of the secrets, those of which more is read than white space between masks
    shown: Counter[str] = field(default_factory=Counter)
    spans: Counter[str] = field(default_factory=Counter)  # by label of the policy
    true: Counter[str] = field(default_factory=Counter)  # of these, those that touch a secret
    points: Counter[str] = field(default_factory=Counter)  # by pool; failed: the policy raised

    def join(self, other: "Count") -> None:
        """Add what was counted over other points."""
        self.secrets = together(self.secrets, other.secrets)
        self.planted = self.planted.beside(other.planted)
        self.shown += other.shown
        self.spans += other.spans
        self.true += other.true
        self.points += other.points


def recall(spec: RecallSpec, *, points: Path, spans: Path, output: Path, threads: int = 1) -> None:
    """Write recall.json for the train split, before deduplication.

    Its bounds hold together with probability spec.confidence.

    It says on what terms it was measured, and with which models, so that no certificate takes it
    for that of another run.

    Guarantees: only counts and rates are written, never a secret.
    """
    fingerprints = fresh()
    labels = spec.text.labels
    everywhere = Everywhere(output.parent, size_of(points))
    count = count_into(
        everywhere,
        fingerprints,
        points=points,
        findings=Beside(spans, findings_by(spec.redact)),
        labels=labels,
        threads=threads,
    )
    by_label = everywhere.labels(threads)
    for label in labels or spec.named:
        count.secrets.setdefault(label, Flags())
    names = [label.encode() for label in count.secrets]
    known = fingerprints(arrays.binaries(names)).tolist()
    unique = {
        label: by_label.get(name, Flags()) for label, name in zip(count.secrets, known, strict=True)
    }
    measured_on = {"terms": terms(spec.text, spec.redact), "reads": list(read_before(spec.reads))}
    measurement = summary(count, unique, everywhere.most(threads), spec.confidence)
    write_json(output, measured_on | measurement)
    looked_at = count.points["public"] + count.points["private"]
    if looked_at and not count.spans.total():
        warn(
            "recall: warning: the policy finds nothing, so that redaction changes nothing in the "
            f"{looked_at:,} training points"
        )


def count_into(
    everywhere: Everywhere,
    fingerprints: Fingerprints,
    *,
    points: Path,
    findings: Beside,
    labels: list[str] | None,
    threads: int,
) -> Count:
    """Count all training points, and add what is known of their secret strings.

    Each shard is counted as if it were alone; then what was counted of texts that stand in an
    earlier one is taken back.
    """
    ranges = shards(points)
    count = Count()
    texts = Buckets(everywhere.folder, size_of(points), KEYED)
    for part, records, first in scatter(
        lambda: partial(counted, fingerprints, findings, labels), ranges, threads
    ):
        count.join(part)
        everywhere.add(records)
        texts.add(first)
    copies = Offsets(everywhere.folder)
    copies.gather(texts.each(later_places, threads))
    for records in scatter(lambda: partial(copied, fingerprints, copies, labels), ranges, threads):
        everywhere.add(records)
    return count


def counted(
    fingerprints: Fingerprints,
    findings: Beside,
    labels: list[str] | None,
    shard: Range,
) -> tuple[Count, Records, np.ndarray]:
    """What is counted over the training points of a shard, and records of their secret strings.

    Also records KEYED of the texts with gold spans, whatever their label, each of which stands
    first in the shard: as if none stood in an earlier one.

    labels: of secrets, where not all count; those of planted ones do.
    """
    try:
        joined = occurrences.read(shard, findings.of(shard))
        return of_columns(fingerprints, labels, joined)
    except columns.Unlike:
        return of_rows(fingerprints, findings, labels, shard)


def of_columns(
    fingerprints: Fingerprints, labels: list[str] | None, joined: Joined
) -> tuple[Count, Records, np.ndarray]:
    """What `counted` says of a shard, in columns; Unlike where spans of a point overlap."""
    points = joined.points
    gold = points.gold
    count = Count()
    private = joined.found | points.masked
    count.points["private"] = int((points.train & private).sum())
    count.points["public"] = int((points.train & ~private).sum())
    is_planted = planted(points)
    counts = counted_spans(points, is_planted, labels)
    start, end = (column[counts] for column in joined.placed(gold, gold.line))
    line = gold.line[counts]
    # what the policy flags, and whether a secret is in it
    first, last = joined.placed(joined.spans, joined.span_line)
    flagged = joined.spans.label
    kinds = joined.spans.names
    real = (points.train & ~is_planted)[joined.span_line]
    true = real & touched(first, last, start, end)
    for number, kind in enumerate(kinds):
        count.spans[kind] = int((real & (flagged == number)).sum())
        count.true[kind] = int((true & (flagged == number)).sum())
    missed = ~covered_at(start, end, first, last)
    unprotected = missed & ~joined.conservative[line]
    of_planted = is_planted[line]
    numbers = gold.label[counts]
    count.planted = flags_among(missed, unprotected, of_planted)
    for number, name in enumerate(gold.names):
        which = ~of_planted & (numbers == number)
        if which.any():
            count.secrets[name] = flags_among(missed, unprotected, which)
    for place in np.flatnonzero(missed & ~of_planted):
        if shows(*in_its_text(joined, line[place], start[place], end[place])):
            count.shown[gold.names[numbers[place]]] += 1
    texts, again = apart(points, gold.counts > 0, fingerprints, marks_of(gold, fingerprints))
    real_secrets = ~of_planted
    there = Occurrences(
        line=line[real_secrets],
        string=texts_of(points, gold.where(counts).where(real_secrets), line[real_secrets]),
        author=points.owner.number[line[real_secrets]],
        label=numbers[real_secrets],
        fresh=~np.isin(points.at[line[real_secrets]], again),
        missed=missed[real_secrets],
        unprotected=unprotected[real_secrets],
    )
    return count, records_of(there, points.owner.names, gold.names, fingerprints), texts


def in_its_text(
    joined: Joined, line: int, start: int, end: int
) -> tuple[str, int, int, list[tuple[int, int]]]:
    """A range among all characters as one of its text, with what the policy finds there."""
    first, last = np.searchsorted(joined.span_line, (line, line + 1))
    found = zip(joined.spans.start[first:last], joined.spans.end[first:last], strict=True)
    base = joined.base[line]
    return joined.points.texts[line].as_py(), start - base, end - base, list(found)


def counted_spans(points: Points, is_planted: np.ndarray, labels: list[str] | None) -> np.ndarray:
    """(G,) bool: gold spans that count as secrets."""
    gold = points.gold
    counts = points.train[gold.line]
    if labels is not None:
        wanted = [gold.names.index(name) for name in labels if name in gold.names]
        counts &= is_planted[gold.line] | np.isin(gold.label, wanted)
    return counts


def flags_among(missed: np.ndarray, unprotected: np.ndarray, which: np.ndarray) -> Flags:
    """Of the secrets (G,) that `which` names: how many, how many missed, how many unprotected."""
    return Flags(int(which.sum()), int((missed & which).sum()), int((unprotected & which).sum()))


def of_rows(
    fingerprints: Fingerprints,
    findings: Beside,
    labels: list[str] | None,
    shard: Range,
) -> tuple[Count, Records, np.ndarray]:
    """What `counted` says of a shard, row by row."""
    count = Count()
    strings = Strings()
    contents = marked_contents(fingerprints, shard)
    places = np.fromiter(contents, np.int64, len(contents))
    texts, again = contents_apart(places, arrays.binaries(list(contents.values())), fingerprints)
    later = frozenset(again.tolist())
    found = Join(Found, findings.of(shard))
    for at, (key, owner, text, split, gold) in located_rows(
        shard, "key", "owner", "text", "split", "gold"
    ):
        finding = found.take(key) if key == found.key else None
        if split != "train":
            continue
        if gold or finding or MASK in text:
            planted = is_planted_key(key)
            if labels is not None and not planted:
                gold = [span for span in gold if span[2] in labels]
            strings_here = tally(count, text, gold, finding, planted=planted)
            strings.add(owner, {} if planted else strings_here, fresh=at not in later)
        else:
            count.points["public"] += 1
    found.finish()
    return count, strings.records(fingerprints), texts


def marked_contents(fingerprints: Fingerprints, shard: Range) -> dict[int, bytes]:
    """Texts and marks of training points with gold spans, by where these begin, row by row.

    A text in which other secrets are marked is no copy here: its secrets stand in the first one,
    too, which is read, and nowhere else are they counted. Points that cannot be copies are left
    out.
    """
    contents: dict[int, bytes] = {}
    counts: list[int] = []
    spans: list[tuple[int, int, int]] = []
    labels: dict[str, int] = {}
    for at, (text, split, answers, gold) in located_rows(shard, "text", "split", "answers", "gold"):
        if gold and can_be_copy(text, split):
            contents[at] = content(text, answers) + TURNS
            counts.append(len(gold))
            for start, end, label, *_ in gold:
                spans.append((start, end, labels.setdefault(label, len(labels))))
    start, end, number = np.array(spans, np.int64).reshape(-1, 3).T
    every = Spans(np.array(counts, np.int64), start, end, number, list(labels))
    marks = marks_of(every, fingerprints).to_pylist()
    return {at: said + mark for (at, said), mark in zip(contents.items(), marks, strict=True)}


def marks_of(gold: Spans, fingerprints: Fingerprints) -> pa.BinaryArray:
    """What is marked in each point (N,), the same for the same places and labels."""
    marks = np.empty(len(gold.start), MARK)
    marks["start"] = gold.start
    marks["end"] = gold.end
    names = arrays.binaries([name.encode() for name in gold.names])
    marks["label"] = fingerprints(names)[gold.label]
    edges = np.append(0, np.cumsum(gold.counts)) * MARK.itemsize
    return arrays.binaries_between(marks, edges)


def copied(
    fingerprints: Fingerprints, copies: Offsets, labels: list[str] | None, shard: Range
) -> Records:
    """What takes back of a shard that texts are the first of their kind that stand in one before.

    copies: where these begin.
    """
    later = copies.within(shard)
    if not len(later):
        return Strings().records(fingerprints)
    try:
        points = columns.points_at(shard.path, later)
        return copied_columns(fingerprints, labels, points).taken_back()
    except columns.Unlike:
        return copied_rows(fingerprints, labels, shard, later).taken_back()


def copied_columns(fingerprints: Fingerprints, labels: list[str] | None, points: Points) -> Records:
    """Records of the secret strings of points, as if none were a copy; Unlike where spans of one
    point overlap.
    """
    gold = points.gold
    check_gold_apart(points)
    is_planted = planted(points)
    real_secrets = counted_spans(points, is_planted, labels) & ~is_planted[gold.line]
    line = gold.line[real_secrets]
    there = Occurrences(
        line=line,
        string=texts_of(points, gold.where(real_secrets), line),
        author=points.owner.number[line],
        label=gold.label[real_secrets],
        fresh=np.ones(len(line), bool),
        missed=np.zeros(len(line), bool),
        unprotected=np.zeros(len(line), bool),
    )
    return records_of(there, points.owner.names, gold.names, fingerprints)


def copied_rows(
    fingerprints: Fingerprints, labels: list[str] | None, shard: Range, later: np.ndarray
) -> Records:
    """Records of the secret strings of points, row by row."""
    strings = Strings()
    places = frozenset(later.tolist())
    for at, (key, owner, text, gold) in located_rows(shard, "key", "owner", "text", "gold"):
        if at in places and not is_planted_key(key):
            here = {
                (text[start:end], label): (False, False)
                for start, end, label, *_ in gold
                if labels is None or label in labels
            }
            strings.add(owner, here, fresh=True)
    return strings.records(fingerprints)


def tally(
    count: Count, text: str, gold: list[Any], finding: Found | None, *, planted: bool
) -> dict[tuple[str, str], tuple[bool, bool]]:
    """Add one training point to a count.

    For each of its secret strings, with its label: whether one is missed, and one unprotected.
    """
    private = finding is not None or MASK in text
    count.points["private" if private else "public"] += 1
    spans = finding.spans if finding else []
    if finding and finding.failed:
        count.points["failed"] += 1
    firsts = sorted(start for start, *_ in gold)
    lasts = sorted(end for _, end, *_ in gold)
    for start, end, label, *_ in spans if not planted else []:
        count.spans[label] += 1
        # more gold spans begin before its end than end before it begins: one shares a character
        count.true[label] += bisect_left(firsts, end) > bisect_right(lasts, start)
    runs = runs_of(spans)
    missed_by_string: dict[tuple[str, str], tuple[bool, bool]] = {}
    for start, end, label in dict.fromkeys((start, end, label) for start, end, label, *_ in gold):
        missed = not is_within(start, end, runs)
        unprotected = missed and not (finding and finding.conservative)
        flags = Flags(1, missed, unprotected)
        if planted:
            count.planted = count.planted.beside(flags)
        else:
            count.secrets[label] = count.secrets.get(label, Flags()).beside(flags)
            count.shown[label] += missed and shows(text, start, end, spans)
        before = missed_by_string.get((text[start:end], label), (False, False))
        missed_by_string[text[start:end], label] = (before[0] or missed, before[1] or unprotected)
    return missed_by_string


def summary(count: Count, unique: dict[str, Flags], most: Most, confidence: float) -> JsonObject:
    """The measurement as it is written; rates are null where the corpus names no secret.

    At the top stand the rates of the label with the largest, and the largest bounds.
    """
    labels = sorted(count.secrets)
    each = each_of(confidence, len(BOUNDED) * len(labels))
    rows = {
        label: rates(count.secrets[label], unique[label], each) | {"shown": count.shown[label]}
        for label in labels
    }
    top = of_worst_label(rows, ("miss_rate", "delta2"))
    return top | {
        "recall": None if top["miss_rate"] is None else 1 - top["miss_rate"],
        "confidence": confidence,
        "confidence_each": each if labels else None,
        "note": None if labels else NO_GOLD,
        "occurrences": reduce(Flags.beside, count.secrets.values(), Flags())._asdict(),
        "unique": reduce(Flags.beside, unique.values(), Flags())._asdict(),
        "planted": count.planted._asdict(),
        "precision": _share(count.true.total(), count.spans.total()) if labels else None,
        "spans": {
            label: {
                "found": flagged,
                "precision": _share(count.true[label], flagged) if labels else None,
            }
            for label, flagged in count.spans.items()
        },
        "pools": {name: count.points[name] for name in ("public", "private")},
        "multiplicity": most.points or None,
        "multiplicity_distinct": most.texts or None,
        "multiplicity_authors": most.authors or None,
        "multiplicity_authors_distinct": most.first_authors or None,
        "policy_failures": count.points["failed"],
    }


def rates(occurrences: Flags, unique: Flags, confidence: float) -> JsonObject:
    """Counts of one label of secrets with their rates and upper bounds."""
    secrets, missed, unprotected = occurrences
    both = (occurrences, unique)
    return occurrences._asdict() | {
        "unique": unique._asdict(),
        "recall": _share(secrets - missed, secrets),
        "miss_rate": _share(missed, secrets),
        "miss_rate_upper": upper(both, "missed", "secrets", confidence) if secrets else None,
        "delta2": _share(unprotected, secrets),
        "delta2_upper": upper(both, "unprotected", "secrets", confidence) if secrets else None,
        "delta2_given_miss": _share(unprotected, missed),
        "delta2_given_miss_upper": (
            upper(both, "unprotected", "missed", confidence) if missed else None
        ),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
