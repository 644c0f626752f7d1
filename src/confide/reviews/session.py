"""A review while it is made: what the page and the terminal do to it. Each change is saved."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from confide.files.jsons import JsonObject
from confide.reviews.draw import Drawn, Mark, Text, words_of
from confide.reviews.marks import Marks, Review, marked, problem_of, save, without


class Before(NamedTuple):
    """What a change replaced."""

    place: int  # number of the text
    saved: Marks | None
    draft: Marks | None


class Session:
    """A review, the texts that it is of, and the file that it is kept in."""

    def __init__(self, review: Review, sample: Drawn, path: Path):
        self.review = review
        self.sample = sample
        self.path = path
        self.before: list[Before] = []  # changes that can be undone, latest last
        self.drafts: dict[int, Marks] = {}  # of texts that nobody has called read yet

    def text(self, index: int) -> Text:
        """The text with this number; IndexError where there is none."""
        if index < 0:
            raise IndexError(index)
        return self.sample.texts[index]

    def marks(self, index: int) -> Marks:
        """Marks of a text, saved or not; none yet are no marks."""
        return self.drafts.get(index) or self.review.marks[index] or Marks()

    def add(self, index: int, parts: Iterable[tuple[int, int]], label: str) -> str | None:
        """Mark parts of a text as missed, all of them or none; what is wrong with that, if
        anything is.
        """
        text = self.text(index)
        now = self.marks(index)
        for start, end in parts:
            now = marked(text, now, start, end, label)
        if now == self.marks(index):
            return "no word there that is not masked already"
        return self._change(index, now)

    def remove(self, index: int, start: int, end: int) -> str | None:
        """Take back the marks that overlap a part of a text."""
        missed = without(self.marks(index).missed, start, end)
        return self._change(index, self.marks(index).model_copy(update={"missed": missed}))

    def in_vain(self, index: int, number: int) -> str | None:
        """Say of a span of the policy that it is no secret, or take that back."""
        marks = self.marks(index)
        vain = sorted({*marks.vain} ^ {number})
        return self._change(index, marks.model_copy(update={"vain": vain}))

    def read(self, index: int) -> None:
        """Call a text read, whatever is marked in it."""
        self._keep(index, self.marks(index))

    def undo(self) -> int | None:
        """Take the latest change back; the number of its text, None where there is no change."""
        if not self.before:
            return None
        index, marks, draft = self.before.pop()
        self._set_draft(index, draft)
        if marks != self.review.marks[index]:
            self._save(index, marks)
        return index

    def next_unread(self, start: int = 0) -> int | None:
        """The first text from `start` on, and then from the beginning, that was not read."""
        total = len(self.review.marks)
        places = (place % total for place in range(start, start + total))
        return next((place for place in places if self.review.marks[place] is None), None)

    def view(self, index: int) -> JsonObject:
        """A text with all that a page shows of it."""
        text = self.text(index)
        marks = self.marks(index)
        return {
            "index": index,
            "total": len(self.review.marks),
            "reviewed": self.review.reviewed,
            "read": self.review.marks[index] is not None,
            "text": text.text,
            "words": list(words_of(text.text)),
            "found": [[*mark, number in marks.vain] for number, mark in enumerate(text.found)],
            "missed": marks.missed,
        }

    def _change(self, index: int, marks: Marks) -> str | None:
        problem = problem_of(self.text(index), marks, self.review)
        if problem is not None:
            return problem
        if self.review.marks[index] is None:
            self._remember(index)
            self._set_draft(index, marks)  # saved once the text is called read
        else:
            self._keep(index, marks)
        return None

    def _keep(self, index: int, marks: Marks) -> None:
        self._remember(index)
        self._set_draft(index, None)
        self._save(index, marks)

    def _remember(self, index: int) -> None:
        self.before.append(Before(index, self.review.marks[index], self.drafts.get(index)))

    def _set_draft(self, index: int, marks: Marks | None) -> None:
        if marks is None:
            self.drafts.pop(index, None)
        else:
            self.drafts[index] = marks

    def _save(self, index: int, marks: Marks | None) -> None:
        every = list(self.review.marks)
        every[index] = marks
        self.review = self.review.model_copy(update={"marks": every})
        save(self.path, self.review)


def missed_strings(session: Session, index: int, words: str, label: str) -> str | None:
    """Mark every place of a text where these words stand; what is wrong with that, if anything.

    For those who type what was missed: whoever missed one place of it missed all.
    """
    text = session.text(index).text
    parts = []
    start = text.find(words) if words else -1
    while start >= 0:
        parts.append((start, start + len(words)))
        start = text.find(words, start + len(words))
    return session.add(index, parts, label) if parts else "the text does not hold that"


def spans_shown(text: Text, marks: Marks) -> list[Mark]:
    """What is to be shown of a text in a terminal: spans of the policy, then marks."""
    spans = [span for number, span in enumerate(text.found) if number not in marks.vain]
    return sorted([*spans, *marks.missed])
