"""What a review counts: in each stratum, by label, how many texts have how many secrets.

A text that was drawn and not read counts as if it held as many secrets as it can, all of them
missed, and as if all that the policy finds in it were in vain. What the policy finds counts in
runs (`Text.runs`): one of which any part is in vain, or touches a mark of the person, is none.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from confide.files.jsons import JsonObject
from confide.reviews.draw import Counted, Drawn, Mark, Text, is_between
from confide.reviews.marks import Marks, Review
from confide.specs.files import ANY

Rates = Mapping[str, bool]  # by name of a rate: whether a secret leaves a trace that counts for it
Test = Callable[[Text, Mark], Rates]


def counts_of(review: Review, sample: Drawn, test: Test, rates: tuple[str, ...]) -> JsonObject:
    """Counts that bounds follow from, as neighbours.json has them."""
    texts = list(zip(sample.texts, review.marks, strict=True))
    return {
        "labels": review.labels,
        "strata": {
            stratum: stratum_of(
                review,
                counted,
                [(text, marks) for text, marks in texts if text.stratum == stratum],
                test,
                rates,
            )
            for stratum, counted in sample.counted.items()
        },
    }


def marks_of(review: Review, sample: Drawn) -> Iterator[tuple[Text, Mark]]:
    """All that is to be tested: what the policy finds in texts that were read, and marks."""
    for text, marks in zip(sample.texts, review.marks, strict=True):
        if marks is not None:
            spans = [span for number, span in enumerate(text.found) if number not in marks.vain]
            yield from ((text, mark) for mark in (*spans, *marks.missed))


def stratum_of(
    review: Review,
    counted: Counted,
    texts: list[tuple[Text, Marks | None]],
    test: Test,
    rates: tuple[str, ...],
) -> JsonObject:
    """Counts of one stratum."""
    read = [(text, marks) for text, marks in texts if marks is not None]
    unread = [text for text, marks in texts if marks is None]
    labels = {}
    for label in (*review.labels, ANY):
        secrets_by_text = [secrets_of(label, text, marks, test) for text, marks in read]
        rooms = Counter(text.room(review.most) + len(text.runs(label)) for text in unread)
        spans = Counter(len(text.runs(label)) for text in unread)
        labels[label] = {
            "found": histogram(counted.found.get(label, Counter())),
            "room": histogram(counted.ranges(label)),
            "marked": sum(not is_found for secrets in secrets_by_text for is_found, _ in secrets),
            **{rate: traces(secrets_by_text, rate, rooms, spans) for rate in rates},
        }
    return {
        "texts": counted.texts,
        "drawn": len(texts),
        "reviewed": len(read),
        "labels": labels,
    }


Secret = tuple[bool, Rates | None]  # whether the policy finds it; None: it finds none there


def secrets_of(label: str, text: Text, marks: Marks, test: Test) -> list[Secret]:
    """What the policy finds of a label in a text, or of ANY, then what the person marked."""

    def each() -> Iterator[Secret]:
        for run in text.runs(label):
            spans = [text.found[number] for number in run]
            if not {*run} & {*marks.vain} and not touched(text, spans, marks.missed):
                yield True, either([test(text, span) for span in spans])
            else:
                yield True, None
        for mark in marks.missed:
            if label in (mark[2], ANY):
                yield False, test(text, mark)

    return list(each())


def touched(text: Text, spans: Sequence[Mark], missed: Sequence[Mark]) -> bool:
    """Whether a mark of the person overlaps a span, or no word that is left stands between them.

    Then the policy has found a part of a secret, of which the rest can be read.
    """
    return any(
        (first < end and start < last)
        or not is_between(text.words_left, min(end, last), max(start, first))
        for start, end, _ in spans
        for first, last, _ in missed
    )


def either(rates: list[Rates]) -> Rates:
    """For which rates any of several parts of a secret counts."""
    return {name: any(each[name] for each in rates) for name in rates[0]}


def traces(
    secrets_by_text: list[list[Secret]], rate: str, rooms: Counter[int], spans: Counter[int]
) -> JsonObject:
    """How many texts have how many secrets that leave a trace, and spans that do or are in vain."""
    leaving: Counter[int] = Counter(rooms)
    lost: Counter[int] = Counter(spans)
    for secrets in secrets_by_text:
        leaving[sum(rates is not None and rates[rate] for _, rates in secrets)] += 1
        lost[sum(is_found and (rates is None or rates[rate]) for is_found, rates in secrets)] += 1
    return {"traces": histogram(leaving), "lost": histogram(lost)}


def histogram(values: Counter[int]) -> dict[str, int]:
    """A histogram as JSON has it, without those that have nothing."""
    return {str(value): count for value, count in sorted(values.items()) if value and count}
