"""What a person marked, as a file: offsets and labels, never text.

The file says which texts it is of by digests; the texts themselves are drawn again by whoever reads
it, so that nobody can choose them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from confide.errors import InputError, misfit
from confide.files.io import read_json, write_json
from confide.policies import hidden, is_within
from confide.provenance.terms import findings_by, terms
from confide.reviews.draw import OTHER, Drawn, Mark, Text, Wanted, draw_sample, words_of
from confide.spec_base import Count
from confide.specs import RedactSpec, TextSpec
from confide.specs.files import ANY

VERSION = 1
LARGEST = 100_000  # texts of a review
NAME = r"^[\w .,'@()+-]{1,80}$"  # of a person, who is named in the certificate
LABEL = r"^[^\x00-\x1f\x7f]{1,60}$"


class Model(BaseModel):
    """Base: JSON's own types, no key beyond those that are named."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Marks(Model):
    """What a person said of one text: parts that the policy missed, and spans found in vain.

    missed: start, end and label. vain: numbers of spans, in the order of the text.
    """

    missed: list[tuple[Count, Count, str]] = []
    vain: list[Count] = []


class Review(Model):
    """A review as its file has it; marks stand in the order of the draw, None where none is yet."""

    version: int
    by: Annotated[str, Field(pattern=NAME)] | None
    terms: dict[str, Any]
    points: str
    spans: str
    seed: int
    size: Annotated[int, Field(ge=10, le=LARGEST)]
    most: Annotated[int, Field(ge=1, le=1000)] | None
    labels: Annotated[
        list[Annotated[str, Field(pattern=LABEL)]], Field(min_length=1, max_length=50)
    ]
    marks: list[Marks | None]

    @property
    def wanted(self) -> Wanted:
        """How its texts are drawn."""
        return Wanted(self.size, self.seed, self.most)

    @property
    def reviewed(self) -> int:
        """How many texts the person has said something of."""
        return sum(marks is not None for marks in self.marks)


def load(path: Path) -> Review:
    """A review from its file; InputError names the first key that is wrong, not its value."""
    try:
        review = Review.model_validate_json(orjson.dumps(read_json(path)))
    except ValidationError as error:
        raise misfit(error, path) from None
    if review.version != VERSION:
        raise InputError(f"is not {VERSION}", file=path, key="version", value=review.version)
    twice = len(set(review.labels)) < len(review.labels)
    if twice or OTHER not in review.labels or ANY in review.labels:
        message = f"expected each label once, {OTHER!r} among them"
        raise InputError(message, file=path, key="labels")
    return review


def save(path: Path, review: Review) -> None:
    """Write a review, whole or not at all."""
    write_json(path, review.model_dump(mode="json"))


def reviewed(
    text: TextSpec, redact: RedactSpec, path: Path, *, points: Path, spans: Path, copies: Path
) -> tuple[Review, Drawn]:
    """A review with its texts; InputError unless it is of this corpus and these policies."""
    review = load(path)
    expected = terms(text, redact)
    for key in expected:
        if review.terms.get(key) != expected[key]:
            message = "is another one: this is a review of another corpus, split or policy"
            raise InputError(message, file=path, key=f"terms.{key}")
    files = {"points": points, "spans": spans, "copies": copies}
    return review, sample_of(review, path, **files, policies=findings_by(redact))


def sample_of(
    review: Review, path: Path, *, points: Path, spans: Path, copies: Path, policies: str
) -> Drawn:
    """The texts that a review is of, drawn again.

    policies: whose findings the spans are, `confide.provenance.terms.findings_by`

    InputError where it is of other texts or of other findings, has labels of its own, or marks that
    no person could have made.
    """
    sample = draw_sample(
        review.wanted, points=points, spans=spans, copies=copies, policies=policies
    )
    for key in ("points", "spans"):
        if getattr(review, key) != getattr(sample, key):
            file = points if key == "points" else spans
            message = f"is not the digest of {file}: it is a review of other text or another policy"
            raise InputError(message, file=path, key=key)
    if missing := sorted(set(sample.labels) - set(review.labels)):
        raise InputError("lacks a label of the policy", file=path, key="labels", value=missing[0])
    if len(review.marks) != len(sample.texts):
        message = f"expected {len(sample.texts)}, one for each text that is drawn"
        raise InputError(message, file=path, key="marks", value=len(review.marks))
    for index, (text, marks) in enumerate(zip(sample.texts, review.marks, strict=True)):
        problem = None if marks is None else problem_of(text, marks, review)
        if problem is not None:
            raise InputError(problem, file=path, key=f"marks.{index}")
    return sample


def problem_of(text: Text, marks: Marks, review: Review) -> str | None:
    """What is wrong with the marks of a text, if anything is."""
    if sorted(set(marks.vain)) != marks.vain or any(
        number >= len(text.found) for number in marks.vain
    ):
        return "vain names no span, or one twice"
    if review.most is not None and len(marks.missed) > review.most:
        return (
            f"has {len(marks.missed)} missed secrets, more than `most` says of any text: "
            "a new review with a larger --most can count them"
        )
    end_before = 0
    for start, end, label in marks.missed:
        if label not in review.labels:
            return "has a label that was not set before the first mark"
        if start < end_before or end > len(text.text):
            return "marks overlap, are out of order, or reach beyond the text"
        if whole_words(text.text, start, end) != (start, end):
            return "a mark does not begin and end with a word"
        if is_hidden(text, start, end):
            return "a mark lies in what is masked already"
        end_before = end
    return None


def whole_words(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The words that a part of a text touches, from the first to the last; None where none."""
    touched = [word for word in words_of(text) if word[0] < end and start < word[1]]
    return (touched[0][0], touched[-1][1]) if touched else None


def is_hidden(text: Text, start: int, end: int) -> bool:
    """Whether every word in a part of a text is masked already: no secret was missed there."""
    words = [word for word in words_of(text.text) if start <= word[0] and word[1] <= end]
    masked = hidden(text.text, text.found)
    return all(is_within(*word, masked) for word in words)


def marked(text: Text, marks: Marks, start: int, end: int, label: str) -> Marks:
    """Marks with one more, of whole words, in place of those that it overlaps.

    They stay as they are where it touches no word, or none that is not masked.
    """
    place = whole_words(text.text, start, end)
    if place is None or is_hidden(text, *place):
        return marks
    return marks.model_copy(
        update={"missed": sorted([*without(marks.missed, *place), (*place, label)])}
    )


def without(missed: Iterable[Mark], start: int, end: int) -> list[Mark]:
    """Marks that do not overlap a part of a text."""
    return [mark for mark in missed if mark[1] <= start or end <= mark[0]]
