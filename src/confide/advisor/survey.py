"""What a user's corpus holds, in numbers: three passes over the file, no text kept.

The first counts what does not depend on the cut into points; the second, for one cut, what each
preset finds; the third lengths, copies, and what policies of these presets would do. Of secrets it
counts those whose masking leaves no trace in the redacted text, as the neighbour test does, but of
held-out documents only: that test measures the chosen policies on training secrets, of which the
choice must know nothing.
"""

import hashlib
import re
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from confide.corpora import READERS
from confide.corpora.lines import AUTOMATIC
from confide.policies import Policy, covered, detector, policy, redacted_text
from confide.specs import CorpusSpec, PolicySpec
from confide.stages.split import pieces
from confide.types import MASK, Span

# cuts that init chooses from, smallest first where a line is a sentence or more
UNITS = ("turn", "sentence", "dialogue")
# training points, and held-out points with gold secrets, that policies are tried on
SAMPLE = 20_000
MOST_READ = 4_000_000  # characters: a policy reads the whole text again for each secret in it
WORD = re.compile(r"\S+")
# points that presets, each by itself, are tried on
PRESET_SAMPLE = 100_000


@dataclass(slots=True)
class Corpus:
    """Counts of a corpus before it is cut."""

    documents: int = 0
    lines: int = 0
    words: int = 0
    authors: set[str] = field(default_factory=set)
    nameless: int = 0  # documents, or lines of them, without an author
    domains: set[str] = field(default_factory=set)
    gold: Counter[tuple[str, str]] = field(default_factory=Counter)  # (label, split) -> secrets
    points: dict[str, Counter[str]] = field(
        default_factory=lambda: {unit: Counter() for unit in UNITS}
    )  # by split
    cut: Counter[str] = field(default_factory=Counter)  # unit -> gold secrets that its cut divides

    def labels(self, split: str | None = None) -> Counter[str]:
        """Gold secrets by label, of one split or of all."""
        counts: Counter[str] = Counter()
        for (label, where), count in self.gold.items():
            counts[label] += count if split in (None, where) else 0
        return counts


@dataclass(slots=True)
class Effect:
    """What one policy does to a sample of the training points, and what held-out ones it hides."""

    private: int = 0  # points with a span
    masked: int = 0  # words of which redaction takes out all or a part
    hidden: Counter[str] = field(default_factory=Counter)  # by label


@dataclass(slots=True)
class Hits:
    """What one preset finds in a sample of all points."""

    spans: Counter[str] = field(default_factory=Counter)  # by the preset's label
    points: int = 0  # with a span
    covered: Counter[str] = field(default_factory=Counter)  # held-out gold secrets, by label
    seconds: float = 0.0


@dataclass(slots=True)
class Presets:
    """What presets find, each by itself."""

    sampled: int = 0  # points
    whole: bool = False  # these are all points
    characters: int = 0  # of these
    held_out: int = 0  # gold secrets of the held-out ones
    hits: dict[str, Hits] = field(default_factory=dict)  # by name of the preset


@dataclass(slots=True)
class Points:
    """Counts of a corpus cut into points."""

    lengths: array = field(default_factory=lambda: array("L"))  # words of the training points
    copies: int = 0  # training points whose text an earlier one had
    sampled: int = 0
    sampled_words: int = 0
    noisy: int = 0  # of the sample: points on which the conservative policy fires
    unguarded: int = 0  # held-out gold secrets in points on which it does not
    # gold secrets of the held-out sample, by label
    held_out: Counter[str] = field(default_factory=Counter)
    read: int = 0  # characters that each policy has read for these
    effects: dict[str, Effect] = field(default_factory=dict)  # by name of the policy
    presets: Presets = field(default_factory=Presets)


def corpus_of(spec: CorpusSpec) -> Corpus:
    """First pass. InputError where a line cannot be read; it names the line, never its text."""
    corpus = Corpus()
    doc_names = set()
    for record in READERS[spec.reader](spec, None):
        corpus.lines += 1
        if record.doc.startswith(AUTOMATIC):
            corpus.documents += 1
        else:
            doc_names.add(record.doc)
        corpus.words += len(record.text.split())
        if record.author is None:
            corpus.nameless += 1
        else:
            corpus.authors.add(record.author)
        if record.domain is not None:
            corpus.domains.add(record.domain)
        corpus.gold.update((span.label, record.split) for span in record.spans)
        for unit in UNITS:
            cut = [spans for _, spans in pieces(record, unit, 0)]
            corpus.points[unit][record.split] += len(cut)
            corpus.cut[unit] += max(0, sum(map(len, cut)) - len(record.spans))
    corpus.documents += len(doc_names)
    return corpus


def presets_of(
    spec: CorpusSpec,
    corpus: Corpus,
    unit: str,
    presets: dict[str, PolicySpec],
    labels: Collection[str] | None = None,
) -> Presets:
    """A pass of its own, for one cut: what each preset finds in points of all splits.

    labels: of gold secrets, where not all count.
    """
    finders = {name: policy(spec) for name, spec in presets.items()}
    stride = -(-sum(corpus.points[unit].values()) // PRESET_SAMPLE)
    survey = Presets(whole=stride == 1, hits={name: Hits() for name in presets})
    for number, (split, text, gold) in enumerate(_cut(spec, unit, labels)):
        if number % stride:
            continue
        survey.sampled += 1
        survey.characters += len(text)
        if split == "train":
            gold = ()
        survey.held_out += len(gold)
        for name, find in finders.items():
            hits = survey.hits[name]
            began = time.perf_counter()  # the time of a process may tick too seldom for one text
            spans = find(text)
            hits.seconds += time.perf_counter() - began
            hits.points += bool(spans)
            hits.spans.update(span.label for span in spans)
            hits.covered.update(
                label for start, end, label, _ in gold if spans and covered(start, end, spans)
            )
    return survey


def points_of(
    spec: CorpusSpec,
    corpus: Corpus,
    unit: str,
    policies: dict[str, PolicySpec],
    conservative: PolicySpec,
    labels: Collection[str] | None = None,
) -> Points:
    """Another pass, for one cut, with policies by name and one conservative policy.

    labels: of gold secrets, where not all count.
    """
    fires = detector(conservative)
    finders = {name: policy(spec) for name, spec in policies.items()}
    points = Points(effects={name: Effect() for name in policies})
    digests: set[bytes] = set()
    train = 0
    stride = -(-corpus.points[unit]["train"] // SAMPLE)
    for split, text, gold in _cut(spec, unit, labels):
        if split != "train":
            if gold and sum(points.held_out.values()) < SAMPLE and points.read < MOST_READ:
                _held_out(points, finders, text, gold)
                points.unguarded += 0 if fires(text) else len(gold)
            continue
        points.lengths.append(len(text.split()))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        points.copies += digest in digests and MASK not in text
        digests.add(digest)
        if train % stride == 0:
            points.noisy += fires(text)
            _sampled(points, finders, text)
        train += 1
    return points


def _cut(
    spec: CorpusSpec, unit: str, labels: Collection[str] | None
) -> Iterator[tuple[str, str, tuple[Span, ...]]]:
    """Split, text and gold secrets of each point."""
    for record in READERS[spec.reader](spec, None):
        for text, gold in pieces(record, unit, 0):
            if labels is not None:
                gold = tuple(span for span in gold if span.label in labels)
            yield record.split, text, gold


def _held_out(
    points: Points, finders: dict[str, Policy], text: str, gold: tuple[Span, ...]
) -> None:
    points.held_out.update(span.label for span in gold)
    points.read += len(text) * (1 + len(gold))
    for name, find in finders.items():
        redacted = redacted_text(text, find(text))
        for start, end, label, _ in gold:
            masked = text[:start] + MASK + text[end:]
            points.effects[name].hidden[label] += redacted_text(masked, find(masked)) == redacted


def _sampled(points: Points, finders: dict[str, Policy], text: str) -> None:
    points.sampled += 1
    points.sampled_words += len(text.split())
    for name, find in finders.items():
        if spans := find(text):
            points.effects[name].private += 1
            points.effects[name].masked += masked_words(text, spans)


def masked_words(text: str, spans: Iterable[Span]) -> int:
    """How many words have a letter or digit in a span; a comma behind it makes no word its own."""
    inside = {place for span in spans for place in range(span.start, span.end)}
    return sum(
        any(place in inside and text[place].isalnum() for place in range(*word.span()))
        for word in WORD.finditer(text)
    )
