"""Points into rows, rows into a partition (CRT Algorithm 1, D_pub and D_pri; A.6-4 and A.6-5).

A point is private if the policy found a span in it, if the conservative policy fires on it, or if
it contains <MASK>, its own or the one that stands in place of a later copy. Points, copies and
spans are read side by side, in batches.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from confide.errors import InputError
from confide.files import arrays
from confide.files.io import readable
from confide.files.rows import Copy, Found, Join
from confide.policies import hidden, merged_masks, merged_ranges, moved, redacted_text
from confide.specs import PartitionSpec
from confide.specs.data import Learn
from confide.text.fakes import filled
from confide.text.found_values import FoundValues
from confide.text.planted import NEW_TOKEN, is_planted_key
from confide.text.tokenizer import Tokenizer
from confide.text.utf8 import ByteCount
from confide.types import MASK, SPLITS, Partition, View

BATCH = 2048  # points tokenized at once
KEY_BYTES = 32  # of the key by which values are drawn in place of masks
KEY = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}")
CACHE_TEXTS = 1 << 16
CACHE_LENGTH = 256  # characters; longer texts seldom repeat
SPLIT = {name: index for index, name in enumerate(SPLITS)}

# A line end between two characters that are not blank is a word of its own in all our tokenizers,
# whose words end at blanks: what stands before and after it is tokenized as if it stood alone.
ALONE = re.compile(r"(?<=[!-~])\n(?=[!-~])")

Spans = Sequence[Sequence[Any]]  # of one text: start, end, perhaps a label and more
Ranges = Sequence[tuple[int, int]]
Encode = Callable[[str], bytes]  # packed token ids
Fill = Callable[[str, str], str]  # a text without its masks; the second is the text's name


class Raw(NamedTuple):
    """One point, as it is read from its file."""

    key: str
    text: str
    split: str
    domain: str | None
    owner: str | None
    gold: Spans  # within the text
    # of a conversation, ranges of its assistants' turns; None: nothing is said of any
    answers: Ranges | None = None


class Row(NamedTuple):
    """One point, ready to be tokenized."""

    text: str  # of the original view
    redacted: str
    spans: Spans
    gold: Spans
    private: bool
    split: int
    domain: str | None
    owner: str | None
    planted: bool = False  # by the tool: its text may hold new tokens
    learned: Ranges = ()  # of the original text: what is scored, where not all of it is
    shown: Ranges = ()  # the same of the redacted text


class Chunk(NamedTuple):
    """Arrays of one batch: T tokens of the original and R of the redacted texts of N points."""

    ids: np.ndarray  # (T,) int32
    counts: np.ndarray  # (N,) int64
    redacted_ids: np.ndarray  # (R,) int32
    redacted_counts: np.ndarray  # (N,) int64
    flagged: np.ndarray  # (T,) bool: overlaps a span, or is <MASK>
    secret: np.ndarray  # (T,) bool: overlaps a gold span
    private: np.ndarray  # (N,) bool
    split: np.ndarray  # (N,) uint8
    domain: np.ndarray  # (N,) int32
    owner: np.ndarray  # (N,) int32
    learned: np.ndarray  # (T,) bool: overlaps what is scored
    shown: np.ndarray  # (R,) bool: the same of the redacted texts


def scored(
    spec: PartitionSpec, answers: Ranges | None, size: int, planted: bool
) -> tuple[str | None, Ranges]:
    """What is wrong with the turns of a text of so many characters, or None; and what is scored
    of it, where not all of it is.
    """
    if spec.learn == "all":
        if answers is None:
            return None, ()
        needed = "needs learn: assistant or learn: all_but_read"
        return f"is a canary that is to be read and not learned: {needed}", ()
    if spec.learn == "assistant" and answers is None and not planted:
        return "says nothing of an assistant's turns, which alone are to be learned", ()
    if spec.learn == "all_but_read" and answers is not None and not planted:
        return "says what an assistant's turns are, and all of it would be learned", ()
    # what is planted is learned whole, unless it says otherwise
    learned = [(0, size)] if answers is None else answers
    if any(not 0 <= start <= end <= size for start, end in learned):
        return "an assistant's turn reaches beyond the text", ()
    return None, learned


def rows(
    spec: PartitionSpec,
    points: Iterable[Raw],
    copied: Join[Copy],
    findings: Join[Found],
    fill: Fill | None = None,
    file: Path | None = None,
) -> Iterator[Row]:
    """Points (or tuples of the same values) with their spans, later copies masked.

    `fill`: what puts values in place of masks, if anything does; `file` holds the points, for
    errors.
    """
    fast = tuple.__new__  # a third of the time of a call of Row
    for key, text, split, domain, owner, gold, answers in points:
        # Keys are compared here first, as most points have neither.
        copy = copied.take(key) if key == copied.key else None
        finding = findings.take(key) if key == findings.key else None
        if split not in SPLIT:
            raise InputError("unknown split", file=file, key=key)
        masked = MASK in text
        planted = is_planted_key(key)
        if copy is not None and (why := no_copy(text, split, planted)) is not None:
            raise InputError(f"cannot be a copy: {why}", file=copied.path, key=key)
        private = masked or finding is not None
        size = len(text)
        learned: Ranges = ()
        if planted or spec.learn != "all":
            problem, learned = scored(spec, answers, size, planted)
            if problem is not None:
                raise InputError(problem, file=file, key=key)
        spans: Spans = () if finding is None else finding.spans
        shown = text
        in_shown = learned
        if copy is not None and spec.dedup and (private or spec.scope == "all"):
            text = shown = MASK
            spans = gold = ()
            private = True
            learned = in_shown = [(0, len(MASK))] if learned and answers is None else ()
        elif private:
            for span in spans:
                if span[1] > size:
                    raise InputError("a span reaches beyond its text", file=findings.path, key=key)
            shown = redacted_text(text, spans)
            in_shown = moved(learned, hidden(text, spans)) if learned else ()
            if spec.merge_masks:
                in_shown = merged_ranges(shown, in_shown) if in_shown else ()
                shown = merged_masks(shown)
            if fill is not None:
                shown = dressed(shown, key, fill)
        number = SPLIT[split]
        row = (text, shown, spans, gold, private, number, domain, owner, planted, learned, in_shown)
        yield fast(Row, row)
    copied.finish()
    findings.finish()


def no_copy(text: str, split: str, planted: bool) -> str | None:
    """Why a point can be no copy of an earlier one; None if it can."""
    if split != "train" or MASK in text:
        return "not of the train split, or contains <MASK>"
    if planted and NEW_TOKEN.search(text):
        # which reads other tokens there, so that the two are not one record in two places
        return "the sentence of an audit canary, which is a text of the corpus, too"
    return None


def fill_of(spec: PartitionSpec, values: Path | None, fill_key: Path | None) -> Fill | None:
    """What puts values in place of masks, if anything does: of public lists, or of public text.

    Which values a text gets hangs on its name and on a secret key: without that whoever reads them
    could try names until they fit.

    values: what the stage `found_values` wrote; fill_key: what `fill_key` did. InputError where one
    is there and not asked for, or the other way round.
    """
    wanted = {"values": isinstance(spec.fill, str), "fill_key": bool(spec.fill)}
    for name, file in (("values", values), ("fill_key", fill_key)):
        if wanted[name] != (file is not None):
            message = "is not what fill asks for" if file else "is missing, which fill asks for"
            raise InputError(message, key=name, value=spec.fill)
    if fill_key is None:
        return None
    key = key_in(fill_key)
    fill = filled if values is None else FoundValues.load(values).fill
    return lambda text, named: fill(text, key, named)


def key_in(path: Path) -> str:
    """The key that a file holds."""
    with readable(path):
        key = path.read_text("utf-8").strip()
    if not KEY.fullmatch(key):
        raise InputError(f"holds no key of {2 * KEY_BYTES} hexadecimal digits", file=path)
    return key


def dressed(redacted: str, key: str, fill: Fill) -> str:
    """A redacted text with values in place of its masks; one that is a mask alone stays.

    Guarantees: a function of the redacted text, of the point's key, of what is public, and of a
    secret that does not depend on the corpus.
    """
    return redacted if redacted == MASK else fill(redacted, key)


class Part(NamedTuple):
    """Some consecutive points of a partition.

    Domains and owners are numbered as if there were no others.
    """

    partition: Partition
    owners: tuple[str, ...]


def builder(tokenizer: Tokenizer, learn: Learn) -> Callable[[Iterator[Row]], Part]:
    """A function that tokenizes rows into a part.

    It holds arrays of numbers, not texts, and remembers what repeats.
    """
    return partial(_part, tokenizer, remembering(tokenizer), learn)


def build(tokenizer: Tokenizer, rows: Iterator[Row], learn: Learn = "all") -> Partition:
    """All rows as one partition."""
    return builder(tokenizer, learn)(rows).partition


def joined(parts: Iterable[Part], owners: dict[str, int]) -> Iterator[Partition]:
    """The parts in order, domains and owners numbered by their first appearance in all of them.

    `owners`: gets the numbers of all owners' names.
    """
    domains: dict[str, int] = {}
    for part, names in parts:
        domain = _renumbered(part.domain, part.domains, domains)
        yield replace(
            part,
            domain=domain,
            owner=_renumbered(part.owner, names, owners),
            domains=tuple(domains),
        )
        del part  # before the next one is made


def _renumbered(numbers: np.ndarray, names: tuple[str, ...], known: dict[str, int]) -> np.ndarray:
    """Numbers of `names` (-1: none) as numbers of `known`, to which new names are added."""
    places = [known.setdefault(name, len(known)) for name in names]
    return np.array([*places, -1], np.int32)[numbers]


def _part(tokenizer: Tokenizer, encode: Encode, learn: Learn, rows: Iterator[Row]) -> Part:
    domains: dict[str | None, int] = {None: -1}
    owners: dict[str | None, int] = {None: -1}
    chunks = []
    while batch := list(islice(rows, BATCH)):
        chunks.append(_chunk(tokenizer, encode, batch, domains, owners))
    if not chunks:
        chunks.append(_chunk(tokenizer, encode, [], domains, owners))
    whole = Chunk(*(np.concatenate(arrays) for arrays in zip(*chunks, strict=True)))
    some = learn != "all"
    redacted = View(
        whole.redacted_ids,
        starts_of(whole.redacted_counts),
        private=whole.redacted_ids == tokenizer.mask_id,
        learned=whole.shown if some else None,
    )
    partition = Partition(
        original=View(
            whole.ids,
            starts_of(whole.counts),
            private=whole.flagged,
            learned=whole.learned if some else None,
        ),
        redacted=redacted,
        secret=whole.secret,
        private=whole.private,
        copy=only_mask(redacted),
        split=whole.split,
        domain=whole.domain,
        owner=whole.owner,
        domains=tuple(name for name in domains if name is not None),
    )
    return Part(partition, tuple(name for name in owners if name is not None))


def _chunk(
    tokenizer: Tokenizer,
    encode: Encode,
    rows: list[Row],
    domains: dict[str | None, int],
    owners: dict[str | None, int],
) -> Chunk:
    columns = zip(*rows, strict=True) if rows else [()] * len(Row._fields)
    texts, redacted, spans, gold, private, split, domain, owner, planted, learned, in_shown = (
        columns
    )
    # Short texts with secrets seldom repeat: they are not remembered.
    tokens = [
        tokenizer.packed(text) if within and len(text) <= CACHE_LENGTH else encode(text)
        for text, within in zip(texts, spans, strict=True)
    ]
    shown = [
        same if masked is text else encode(masked)
        for same, text, masked in zip(tokens, texts, redacted, strict=True)
    ]
    for index in np.flatnonzero(planted) if tokenizer.new_tokens else ():
        tokens[index] = tokenizer.packed_planted(texts[index])
        shown[index] = tokenizer.packed_planted(redacted[index])
    ids, counts = _flat(tokens)
    edges = edges_of(tokenizer, ids, starts_of(counts))
    check_tiled(edges, starts_of(counts), np.array(list(map(byte_length, texts))))
    bases = edges[starts_of(counts)[:-1]]
    redacted_ids, redacted_counts = _flat(shown)
    scored = np.zeros(len(ids), bool)
    scored_shown = np.zeros(len(redacted_ids), bool)
    if any(learned):
        scored = _covered(edges, bases, learned, texts)
        redacted_edges = edges_of(tokenizer, redacted_ids, starts_of(redacted_counts))
        redacted_bases = redacted_edges[starts_of(redacted_counts)[:-1]]
        scored_shown = _covered(redacted_edges, redacted_bases, in_shown, redacted)
    return Chunk(
        ids=ids,
        counts=counts,
        redacted_ids=redacted_ids,
        redacted_counts=redacted_counts,
        flagged=_covered(edges, bases, spans, texts) | (ids == tokenizer.mask_id),
        secret=_covered(edges, bases, gold, texts),
        private=np.array(private, bool),
        split=np.array(split, np.uint8),
        domain=np.array([domains.setdefault(name, len(domains) - 1) for name in domain], np.int32),
        owner=np.array([owners.setdefault(name, len(owners) - 1) for name in owner], np.int32),
        learned=scored,
        shown=scored_shown,
    )


def remembering(tokenizer: Tokenizer) -> Encode:
    """`encode` that keeps the tokens of short texts and of short lines.

    In dialogue most turns stand more than once.
    """
    remembered = lru_cache(maxsize=CACHE_TEXTS)(tokenizer.packed)
    lines = tokenizer.pattern is not None and not any("\n" in string for string in tokenizer.whole)
    end = remembered("\n")

    def encode(text: str) -> bytes:
        if len(text) <= CACHE_LENGTH:
            return remembered(text)
        parts = ALONE.split(text) if lines else [text]
        return end.join(
            remembered(part) if len(part) <= CACHE_LENGTH else tokenizer.packed(part)
            for part in parts
        )

    return encode


def _flat(tokens: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids one after the other, and how many each text has."""
    ids = np.frombuffer(b"".join(tokens), np.int32)
    return ids, np.fromiter(map(len, tokens), np.int64, len(tokens)) // ids.itemsize


def starts_of(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def byte_length(text: str) -> int:
    """How long a text is in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def check_tiled(edges: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
    """InputError where the tokens of some text have more or fewer bytes than it: of a vocabulary
    that drops blanks, say. Which of them hold a secret could not be told by their places.

    edges (T + 1,) of all tokens; starts (N + 1,) of each text's; lengths (N,) of texts in bytes.
    """
    if (np.diff(edges[starts]) != lengths).any():
        message = (
            "leaves something of a text out, or adds something, "
            "so that nobody knows which tokens hold a secret"
        )
        raise InputError(message, key="tokenizer")


def edges_of(tokenizer: Tokenizer, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The byte at which each token starts (T + 1,), all texts, of tokens from starts on (N + 1,),
    laid end to end.

    Tokens tile their text.
    """
    return starts_of(tokenizer.sizes(ids, starts))


def _covered(
    edges: np.ndarray, bases: np.ndarray, ranges: Sequence[Spans], texts: Sequence[str]
) -> np.ndarray:
    """(T,) bool: tokens that share a byte with a range of their text.

    `bases` is the first byte of each text.
    """
    bytes_: list[int] = []  # first and last of each range
    for base, spans, text in zip(bases.tolist(), ranges, texts, strict=True):
        if spans:
            counted = None if text.isascii() else ByteCount(text)
            for start, end, *_ in spans:
                if start < end:
                    if counted is not None:
                        start = counted.before(start)
                        end = counted.before(end)
                    bytes_ += (base + start, base + end)
    first, last = np.fromiter(bytes_, np.int64, len(bytes_)).reshape(-1, 2).T
    return overlapping(edges, first, last)


def overlapping(edges: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """(T,) bool: tokens between edges (T + 1,) that share a byte with one of some ranges."""
    from_token = np.searchsorted(edges[1:], first, side="right")
    to_token = np.searchsorted(edges[:-1], last, side="left")
    overlaps = np.zeros(len(edges) - 1, bool)
    overlaps[arrays.runs(from_token, to_token - from_token)] = True
    return overlaps


def only_mask(view: View) -> np.ndarray:
    """(N,) bool: points of which nothing but one mask token is left.

    A later copy and a sentence that is <MASK> in the raw text must look alike: neighbouring corpora
    differ in that.
    """
    alone = np.diff(view.starts) == 1
    alone[alone] = view.private[view.starts[:-1][alone]]
    return alone
