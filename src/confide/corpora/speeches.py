"""Tiny Shakespeare (Karpathy's char-rnn): plays by speech.

Each speech is headed by its speaker, who is the author of what is said. A document is a speech. Its
verses are joined, and cut again into lines of whole sentences: with `point: turn` each of these is
one sample. Speeches of one speaker are in all splits (see authored.py), and all lines of a speech
in one.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from confide.corpora.archives import read_members
from confide.corpora.authored import Sample, records
from confide.errors import InputError
from confide.specs import SpeechesSpec
from confide.types import Record

MEMBER = "input.txt"
SPEECH = re.compile(r"([^\n:]+):\n(.+)", re.DOTALL)
SENTENCE = re.compile(r"(?<=[.!?])\s+")


def read(spec: SpeechesSpec, raw: Path | None = None) -> Iterator[Record]:
    """Speeches of the speakers who have at least `least`.

    InputError if the archive holds no plays.
    """
    members = dict(read_members(raw))
    if MEMBER not in members:
        raise InputError(f"holds no {MEMBER}", file=raw)
    yield from records(spec, spec.least, lambda: speeches(members[MEMBER], spec.words), raw)


def speeches(text: str, most_words: int) -> Iterator[Sample]:
    """Speeches in order: a heading "NAME:", then verses, up to an empty line."""
    for number, block in enumerate(text.replace("\r\n", "\n").split("\n\n")):
        match = SPEECH.fullmatch(block.strip("\n"))
        if match and match[2].strip():
            yield Sample(
                match[1].strip(), f"speech-{number}", "\n".join(lines(match[2], most_words))
            )


def lines(text: str, most_words: int) -> Iterator[str]:
    """Whole sentences together, as long as they have at most so many words.

    One that has more stands alone.
    """
    line: list[str] = []
    for sentence in SENTENCE.split(" ".join(text.split())):
        in_sentence = sentence.split()
        if line and len(line) + len(in_sentence) > most_words:
            yield " ".join(line)
            line = []
        line += in_sentence
    if line:
        yield " ".join(line)
