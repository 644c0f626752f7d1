"""What readers of texts by many authors have in common.

That is who is kept, and which of an author's documents are in which split. Authors with fewer than
`least` documents are left out, and so are all but the most prolific ones where `authors` says so.
Every author who is kept has documents in train and in test, and mostly in valid: that users overlap
is on purpose, since perplexity is measured per author and an attack guesses an author whom it
knows. A source is read twice, so that it need not fit in memory.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confide.corpora.shares import check_train
from confide.errors import InputError
from confide.output.escaping import warn
from confide.specs import AuthoredSpec
from confide.types import SPLITS, Record


class Sample(NamedTuple):
    """A document with its author; no two of a corpus have one name."""

    author: str
    doc: str
    text: str


def records(
    spec: AuthoredSpec,
    least: int,
    samples: Callable[[], Iterator[Sample]],
    place: str | Path | None,
) -> Iterator[Record]:
    """Documents of the authors who are kept, in the order of `samples`, each with its split.

    Guarantees: a document is in one split, drawn by the seed, its author's name and its number
    among that author's documents. Errors: InputError, which never names an author, where nobody has
    `least` documents, or the shares leave nothing for train.
    """
    check_train(spec.valid, spec.test)
    counts = Counter(sample.author for sample in samples())
    if not counts:
        raise InputError("no text with an author was found", file=place)
    prolific = [author for author, count in counts.items() if count >= least]
    prolific.sort(key=lambda author: (-counts[author], author))
    if not prolific:
        raise InputError(
            f"no author has so many documents: there are {len(counts)}, "
            f"the most of one is {max(counts.values())}; a smaller `least` keeps them",
            file=place,
            key="least",
            value=least,
        )
    if left_out := counts.total() - sum(counts[author] for author in prolific):
        say_once(
            f"{'' if place is None else f'{place}: '}{left_out:,} of {counts.total():,} documents "
            f"are left out: their {len(counts) - len(prolific):,} authors have fewer than {least} "
            "each (least)"
        )
    splits = {
        author: iter(_splits(spec, author, min(counts[author], spec.most or counts[author])))
        for author in prolific[: spec.authors]
    }
    for author, doc, text in samples():
        split = next(splits.get(author, iter(())), None)
        if split is not None:
            yield Record(text, doc, author, split=SPLITS[split])


@cache
def say_once(line: str) -> None:
    """A line for the reader; a process may read one corpus several times."""
    warn(line)


def _splits(spec: AuthoredSpec, author: str, count: int) -> bytes:
    """Index of the split of each of an author's documents.

    At least one is in train, and one in test if any should be.
    """
    test = min(max(1, round(spec.test * count)), count - 1) if spec.test else 0
    valid = min(round(spec.valid * count), count - 1 - test)
    digest = hashlib.blake2b(author.encode(errors="surrogatepass"), digest_size=8).digest()
    order = np.random.default_rng([spec.seed % 2**64, int.from_bytes(digest)]).permutation(count)
    splits = np.full(count, SPLITS.index("train"), np.uint8)
    splits[order[:test]] = SPLITS.index("test")
    splits[order[test : test + valid]] = SPLITS.index("valid")
    return splits.tobytes()


def paragraphs(text: str) -> str:
    """A text with a paragraph a line.

    Lines that follow one another are joined, as mail programs break them.
    """
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if words := line.split():
            parts[-1] += words
        elif parts[-1]:
            parts.append([])
    return "\n".join(" ".join(words) for words in parts if words)
