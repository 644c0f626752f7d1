"""Seeded generator of short messages by authors.

It serves privacy regularisation (Mireshghallah et al. 2021) without real mail. An author has
favourite topics, colleagues, words, openings, closings and punctuation, an own phone number (the
gold secret) and a share of samples out of a long tail. Authors of train, valid and test are the
same on purpose: perplexity is measured per author. The public variant (other authors, topics, names
and sentences) protects nothing. Message i of an author depends on the spec's seed, its variant, the
author and i only; how often an author writes depends on all of the sizes. The words and sentences
stand in authors.yaml.
"""

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

from confide.corpora.simulated.templates import Options, parts
from confide.errors import InputError
from confide.files import beside
from confide.specs import AuthorsSpec
from confide.types import SPLITS, Record, Span

VARIANTS = ("private", "public")
FEWEST = 3  # samples of an author in train; one more is in test
DRAWS = 64  # random numbers of a message; more than any needs
HABIT = 0.6  # Dirichlet parameter: the smaller, the more an author keeps to few words
ENDS = (".", "!", "...", "", " :)", "?!")
PHONE = "phone"  # label of the gold secret
TWO = 0.35  # share of messages with a second sentence
TAGGED = 3  # tags of a tagged message

Weighted = tuple[Options, list[float]]  # options with their cumulative probabilities


@dataclass(frozen=True, slots=True)
class Words:
    """All that one variant is made of."""

    topics: tuple[dict[str, Options], ...]  # words of each slot that belongs to the topic
    choices: dict[str, Options]
    people: Options
    sentences: Options
    more_tags: Options = ()

    @property
    def tags(self) -> Options:
        """What messages are tagged with: own words and all words of the topics, or nothing."""
        if not self.more_tags:
            return ()
        of_topics = (word for topic in self.topics for slot in topic.values() for word in slot)
        return tuple(dict.fromkeys([*self.more_tags, *of_topics]))


WORDS = beside.words(__file__, dict[str, Words])


class Style(NamedTuple):
    """An author's habits."""

    topics: list[float]  # cumulative probabilities of the topics
    slots: dict[str, Weighted]
    words: tuple[dict[str, Weighted], ...]  # noun, verb and adjective of each topic
    opens: float  # share of messages with an opening
    closes: float  # and with a closing
    capitals: bool  # whether sentences begin with one
    phone: str


def _random(spec: AuthorsSpec, *what: int) -> Generator:
    """The numbers that something of this corpus is drawn by."""
    return default_rng([spec.seed % 2**64, VARIANTS.index(spec.variant), *what])


def _weighted(rng: Generator, options: dict[str, Options]) -> dict[str, Weighted]:
    """Each slot's options, of which an author has favourites."""
    return {name: (choices, _weights(rng, len(choices))) for name, choices in options.items()}


def _weights(rng: Generator, count: int) -> list[float]:
    """Cumulative Dirichlet probabilities.

    The last is infinite, so that rounding cannot overshoot.
    """
    return [*accumulate(rng.dirichlet(np.full(count, HABIT)).tolist()[:-1]), float("inf")]


def style(spec: AuthorsSpec, author: int) -> Style:
    """The habits of an author, the same whatever the sizes."""
    words = WORDS[spec.variant]
    rng = _random(spec, author)
    people = tuple(words.people[index] for index in rng.choice(len(words.people), 5, replace=False))
    options = {**words.choices, "person": people, "end": ENDS, "sentence": words.sentences}
    slots = _weighted(rng, options)
    if words.tags:
        slots["tag"] = (
            words.tags,
            [*accumulate([1 / len(words.tags)] * (len(words.tags) - 1)), float("inf")],
        )
    topics = _weights(rng, len(words.topics))
    topic_words = tuple(_weighted(rng, topic) for topic in words.topics)
    opens, closes, capitals = rng.random(3).tolist()
    return Style(
        topics,
        slots=slots,
        words=topic_words,
        opens=0.6 * opens,
        closes=0.5 * closes,
        capitals=capitals < 0.6,
        phone=f"{rng.integers(10**6, 10**7)}",
    )


def _pick(weighted: Weighted, draws: Iterator[float]) -> str:
    options, weights = weighted
    return options[bisect(weights, next(draws))]


def _sentence(author: Style, draws: Iterator[float]) -> str:
    """A sentence of one topic, without its end."""
    topic = author.words[bisect(author.topics, next(draws))]
    text = ""
    for index, part in enumerate(parts(_pick(author.slots["sentence"], draws))):
        if index % 2 == 0:
            text += part
        elif part == PHONE:
            text += author.phone
        else:
            text += _pick(topic.get(part) or author.slots[part], draws)
    return text[0].upper() + text[1:] if author.capitals else text


def message(spec: AuthorsSpec, author: Style, name: int, number: int) -> str:
    """Message `number` of an author: an opening, one sentence or two, a closing, tags."""
    draws = iter(_random(spec, name, number).random(DRAWS).tolist())
    pieces = [_pick(author.slots["opening"], draws)] if next(draws) < author.opens else []
    for _ in range(2 if next(draws) < TWO else 1):
        pieces.append(_sentence(author, draws) + _pick(author.slots["end"], draws))
    if next(draws) < author.closes:
        pieces.append(_pick(author.slots["closing"], draws))
    if "tag" in author.slots:
        pieces += [f"#{_pick(author.slots['tag'], draws)}" for _ in range(TAGGED)]
    return " ".join(pieces)


def sizes(spec: AuthorsSpec) -> list[tuple[int, int, int]]:
    """Samples of each author in train, valid and test. InputError if there are too few for all.

    Guarantees: they add up to `samples`, and nobody has fewer than three in train or none in test.
    """
    least = next(
        (count for count in range(FEWEST + 1, 1000) if _shares(spec, count)[0] >= FEWEST), None
    )
    if least is None:
        raise InputError(
            "leaves too little for train", key="valid + test", value=spec.valid + spec.test
        )
    rest = spec.samples - least * spec.authors
    if rest < 0:
        raise InputError(
            f"{spec.authors} authors need at least {least * spec.authors}",
            key="samples",
            value=spec.samples,
        )
    ranks = _random(spec).permutation(spec.authors) + 1
    share = ranks ** -float(spec.tail)
    exact = rest * share / share.sum()
    counts = np.floor(exact).astype(int)
    largest = np.argsort(counts - exact, kind="stable")[: rest - counts.sum()]  # remainders
    counts[largest] += 1
    return [_shares(spec, least + count) for count in counts.tolist()]


def _shares(spec: AuthorsSpec, count: int) -> tuple[int, int, int]:
    test = max(1, round(spec.test * count))
    valid = round(spec.valid * count)
    return count - valid - test, valid, test


def record(spec: AuthorsSpec, author: Style, name: int, number: int, place: int) -> Record:
    """A message as a document of its own.

    The author's number is a gold secret where the message has it.
    """
    text = message(spec, author, name, number)
    owner = f"{spec.variant}-{name}"
    spans = tuple(Span(*match.span(), PHONE) for match in re.finditer(author.phone, text))
    return Record(text, f"{owner}/message-{number}", owner, spans=spans, split=SPLITS[place])


def read(spec: AuthorsSpec, raw: Path | None = None) -> Iterator[Record]:
    """All messages, train first, authors mixed; nothing is read.

    InputError if there are too few samples for the authors.
    """
    counts = sizes(spec)
    styles = [style(spec, author) for author in range(spec.authors)]
    rng = _random(spec, spec.authors, spec.samples)
    for place in range(len(SPLITS)):
        ranges = [(sum(count[:place]), sum(count[: place + 1])) for count in counts]
        messages = [
            (author, number)
            for author, (low, high) in enumerate(ranges)
            for number in range(low, high)
        ]
        for index in rng.permutation(len(messages)).tolist():
            author, number = messages[index]
            yield record(spec, styles[author], author, number, place)
