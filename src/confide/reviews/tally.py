"""What a review counts: in each stratum, by label, how many texts have how many secrets.

A text that was drawn and not read counts as if it held as many secrets as it can, all of them
missed, and as if all that the policy finds in it were in vain.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from confide.files.jsons import JsonObject
from confide.reviews.draw import ANY, Counted, Drawn, Mark, Text
from confide.reviews.marks import Marks, Review

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
    secrets_by_text = [secrets_of(text, marks, test) for text, marks in texts if marks is not None]
    unread = [text for text, marks in texts if marks is None]
    labels = {}
    for label in (*review.labels, ANY):
        of_label = [
            [secret for secret in secrets if label in (secret[0], ANY)]
            for secrets in secrets_by_text
        ]
        rooms = Counter(text.room(review.most) + spans_of(text, label) for text in unread)
        spans = Counter(spans_of(text, label) for text in unread)
        labels[label] = {
            "found": histogram(counted.found.get(label, Counter())),
            "room": histogram(counted.ranges(label)),
            "marked": sum(not is_found for secrets in of_label for _, is_found, _ in secrets),
            **{rate: traces(of_label, rate, rooms, spans) for rate in rates},
        }
    return {
        "texts": counted.texts,
        "drawn": len(texts),
        "reviewed": len(secrets_by_text),
        "labels": labels,
    }


Secret = tuple[str, bool, Rates | None]  # label, whether the policy finds it; None: it is in vain


def secrets_of(text: Text, marks: Marks, test: Test) -> list[Secret]:
    """What the policy finds in a text, then what the person marked."""

    def each() -> Iterator[Secret]:
        for number, mark in enumerate(text.found):
            yield mark[2], True, None if number in marks.vain else test(text, mark)
        for mark in marks.missed:
            yield mark[2], False, test(text, mark)

    return list(each())


def traces(
    secrets_by_text: list[list[Secret]], rate: str, rooms: Counter[int], spans: Counter[int]
) -> JsonObject:
    """How many texts have how many secrets that leave a trace, and spans that do or are in vain."""
    leaving: Counter[int] = Counter(rooms)
    lost: Counter[int] = Counter(spans)
    for secrets in secrets_by_text:
        leaving[sum(rates is not None and rates[rate] for *_, rates in secrets)] += 1
        lost[
            sum(is_found and (rates is None or rates[rate]) for _, is_found, rates in secrets)
        ] += 1
    return {"traces": histogram(leaving), "lost": histogram(lost)}


def spans_of(text: Text, label: str) -> int:
    """How many spans of a label the policy finds in a text."""
    return sum(label in (label_found, ANY) for *_, label_found in text.found)


def histogram(values: Counter[int]) -> dict[str, int]:
    """A histogram as JSON has it, without those that have nothing."""
    return {str(value): count for value, count in sorted(values.items()) if value and count}
