"""Corpora whose samples have authors, as privacy regularisation needs them (Mireshghallah et al.
2021, section 3).

Authors of train and test overlap on purpose: perplexity is measured per author, and an adversary
guesses an author whom it knows. Splits are drawn among each author's own documents.
"""

from typing import Annotated, Literal

from pydantic import Field

from confide.spec_base import Fraction, Natural, Positive, Spec

Several = Annotated[int, Field(ge=2)]


class AuthorsSpec(Spec):
    """The embedded generator of short messages by authors with habits of their own and a long tail
    of sample counts.
    """

    reader: Literal["authors"]
    authors: Natural = 100
    samples: Natural = 6_000  # of all authors together
    valid: Fraction = 0.1  # shares of every author's samples
    test: Fraction = 0.2
    tail: Positive = 1.0  # the author of rank r writes in proportion to r ** -tail
    variant: Literal["private", "public"] = (
        "private"  # public: other authors, topics and words, for tokenizer and warm start
    )
    seed: int = 1111


class AuthoredSpec(Spec):
    """What readers of other people's texts have in common."""

    authors: Natural | None = None  # at most so many, those with the most documents
    most: Natural | None = None  # at most so many documents of an author, the first ones
    valid: Fraction = 0.1  # shares of every author's documents
    test: Fraction = 0.2
    seed: int = 0


class SpeechesSpec(AuthoredSpec):
    """Tiny Shakespeare: the speaker is the author, a speech the document, a line of it whole
    sentences.
    """

    reader: Literal["speeches"]
    archive: Literal["tinyshakespeare"] = "tinyshakespeare"
    least: Several = 89  # speeches of an author that say something: 20 speakers
    words: Natural = 40  # a line has more of them only where one sentence does
    valid: Fraction = 0.2
    test: Fraction = 0.2


class MailSpec(AuthoredSpec):
    """A folder of messages, a file each (the Enron corpus, *.eml), mbox files, or a Maildir: the
    sender is the author.
    """

    reader: Literal["mail"]
    path: str
    # mbox: `path` is a file, or a folder of files *.mbox; maildir: a folder of cur and new, and of
    # folders of mail that have these
    layout: Literal["messages", "mbox", "maildir"] = "messages"
    least: Natural = 10  # messages of an author; of one with a single message it is in train


class RedditSpec(AuthoredSpec):
    """Webis TL;DR-17: one JSON object a line, a post with its author."""

    reader: Literal["reddit"]
    path: str
    text: Literal["body", "normalizedBody", "content", "summary"] = "normalizedBody"
    least: Several = 10  # posts of an author
