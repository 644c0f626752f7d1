"""Plant canaries, random secrets in fixed sentences, among the training points (CRT 5.1).

Secrets and controls are distinct and drawn from the spec's seed; controls are never planted and
show what an attack scores on text that was not trained on. Canaries of words belong to authors
instead (`word_canaries.py`). Audit canaries stand in one sentence each, and a fair coin says what
becomes of it: in the `game` it has its secret or <MASK> (replace-one, one secret), for `inclusion`
it is there or not (add-or-remove, one record); Steinke, Nasr and Jagielski 2023. Their secrets are
digits, or new tokens, one for each (Panda et al. 2025). No pass over the points holds them in
memory.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

from confide.errors import InputError
from confide.files import columns
from confide.files.io import Range, dump_lines, read_jsonl, write_json, write_pieces
from confide.files.jsons import JsonObject
from confide.files.rows import read_rows
from confide.files.shards import scatter, shards
from confide.files.unnamed import Unnamed
from confide.specs import AuditCanarySpec, CanarySpec, WordCanarySpec
from confide.text.canary_templates import (
    DIGITS_OR_TOKEN,
    BadTemplate,
    parse_canary,
    parse_template,
)
from confide.text.planted import (
    STARTS,
    audit_doc,
    behind_secret,
    canary_doc,
    is_planted,
    planted_point,
)
from confide.text.tokenizer import load
from confide.text.word_canaries import canary_point, chosen_authors, draw, vocabulary
from confide.types import MASK

LABEL = "audit"  # of an audit canary's secret


Maker = Callable[[], JsonObject | None]  # of the fields of a point


@contextmanager
def of_template(text: str) -> Iterator[None]:
    """Name the template where it is none."""
    try:
        yield
    except BadTemplate as error:
        raise InputError(str(error), key="template", value=text) from None


def draw_secrets(
    rng: Generator, digits: int, count: int, *, key: str = "count + controls"
) -> list[str]:
    """`count` different strings of digits, uniform. InputError if there are not so many.

    key: of which parameters `count` is the sum, for the error
    """
    if count > 10**digits:
        message = f"more than the 10^{digits} strings of {digits} digits"
        raise InputError(message, key=key, value=count)
    numbers = rng.choice(10**digits, count, replace=False).tolist()
    return [f"{number:0{digits}d}" for number in numbers]


def draw_audits(
    spec: CanarySpec | WordCanarySpec, taken: list[str], tokenizer: Path | None
) -> dict[str, JsonObject]:
    """The sentence, the secrets and the coins of each set of audit canaries.

    No secret is one of `taken`, and none is in both sets.

    `tokenizer` is read for new tokens alone; InputError if it has too few.
    """
    audits: dict[str, JsonObject] = {}
    for number, (name, audit) in enumerate((("game", spec.game), ("inclusion", spec.inclusion))):
        if audit is not None:
            audits[name] = _audit(name, audit, number, taken, tokenizer)
            taken = taken + audits[name]["secrets"]
    return audits


def _audit(
    name: str, spec: AuditCanarySpec, number: int, taken: list[str], tokenizer: Path | None
) -> JsonObject:
    with of_template(spec.template):
        template = parse_template(spec.template, DIGITS_OR_TOKEN)
    rng = default_rng([spec.seed % 2**64, number])
    if template.digits:
        used = {secret for secret in taken if len(secret) == template.digits}
        wanted = spec.count + len(used)
        key = f"{name}.count + other canaries of as many digits"
        drawn = draw_secrets(rng, template.digits, wanted, key=key)
        secrets = [secret for secret in drawn if secret not in used][: spec.count]
    else:
        secrets = _new_tokens(spec.count, taken, tokenizer)
    return {
        **template._asdict(),
        "secrets": secrets,
        "coins": (rng.random(spec.count) < 0.5).tolist(),
    }


def _new_tokens(count: int, taken: list[str], tokenizer: Path | None) -> list[str]:
    """The first `count` new tokens that are not taken, as the characters that stand for them."""
    if tokenizer is None:
        raise InputError("is needed: it has the new tokens of canaries", key="tokenizer")
    known = load(tokenizer).new_tokens
    used = set(taken)
    free = [token for token in known if token not in used]
    if len(free) < count:
        message = f"has {len(known)} new tokens, {len(free)} of them free"
        raise InputError(message, file=tokenizer, key="count", value=count)
    return free[:count]


def _audit_canary(name: str, audit: JsonObject, index: int) -> JsonObject | None:
    """Fields of an audit canary's point; None for one that its coin leaves out."""
    secret = audit["secrets"][index]
    coin = audit["coins"][index]
    if name == "inclusion" and not coin:
        return None
    text = audit["prefix"] + (secret if coin else MASK) + audit["suffix"]
    start = len(audit["prefix"])
    gold = [(start, start + len(secret), LABEL, 1.0)] if coin else []
    return planted_point(audit_doc(name, index), text, gold)


def _canary(facts: JsonObject, index: int, copy: int, scored: tuple[int, int] | None) -> JsonObject:
    """Fields of one planted point."""
    text = facts["prefix"] + facts["secrets"][index] + behind_secret(facts, "secrets", index)
    start = len(facts["prefix"])
    gold = [(start, start + facts["digits"], facts["label"], 1.0)]
    answers = None if scored is None else [scored]
    return planted_point(canary_doc(index, copy), text, gold, canary=index, answers=answers)


class Stretch(NamedTuple):
    """Some consecutive points, and how many are for training.

    bits: where the file of Which has a bit for each, which of them are for training; None stands
    for points that are not as `split` wrote them.
    """

    shard: Range
    train: int
    bits: range | None


class Which:
    """Which points are for training, a bit for each, in a file without a name: memory does not grow
    with their number.
    """

    def __init__(self, folder: Path):
        self._file = Unnamed(folder)

    def keep(self, shard: Range, train: int, which: bytes | None) -> Stretch:
        """A stretch of which this is known."""
        if which is None:
            return Stretch(shard, train, bits=None)
        begin = self._file.size
        self._file.append(which)
        return Stretch(shard, train, range(begin, self._file.size))

    def of(self, bits: range, count: int) -> np.ndarray:
        """(count,) bool."""
        read = np.frombuffer(os.pread(self._file.fileno(), len(bits), bits.start), np.uint8)
        return np.unpackbits(read, count=count).astype(bool)


def _look(shard: Range) -> tuple[Range, int, bytes | None]:
    """A shard of the points, how many are for training, and which, as bits.

    InputError if canaries were planted before.
    """
    try:
        read = columns.points(shard)
    except columns.Unlike:
        return shard, _count_train(shard), None
    if read.canary.any() or any(read.named(start).any() for start in STARTS):
        _count_train(shard)
    return shard, int(read.train.sum()), np.packbits(read.train).tobytes()


def _count_train(points: Range) -> int:
    """Training points. InputError if canaries were planted before."""
    train = 0
    for key, doc, split, canary in read_rows(points, "key", "doc", "split", "canary"):
        if canary is not None or is_planted(doc):
            raise InputError("has the name of a planted canary", file=points.path, key=key)
        train += split == "train"
    return train


def _interleave(
    stretches: Sequence[Stretch],
    which: Which,
    places: Iterable[int],
    canaries: Iterator[JsonObject | None],
) -> Iterator[bytes]:
    """Points in order, with canaries at given places of the training sequence that results.

    One that is left out (None) takes up its place all the same: where the others stand does not
    depend on the coins.
    """
    # how many training points stand before each canary
    before = [place - number for number, place in enumerate(sorted(places))]
    left = sum(stretch.train for stretch in stretches)
    passed = 0
    given = 0
    for stretch in stretches:
        left -= stretch.train
        most = passed + stretch.train - (left > 0)  # behind the last of all points, too
        here = bisect_right(before, most)
        if here == given and stretch.bits is not None:
            yield columns.read(stretch.shard)
        else:
            lines, edges = _lines(stretch, which)
            position = 0
            for number in before[given:here]:
                yield lines[position : edges[number - passed]]
                position = edges[number - passed]
                if (canary := next(canaries)) is not None:
                    yield dump_lines([canary])
            yield lines[position:]
        given = here
        passed += stretch.train


def _lines(stretch: Stretch, which: Which) -> tuple[bytes, list[int]]:
    """The lines of a stretch, and where its training points begin; then where the last one ends."""
    if stretch.bits is not None:
        lines = columns.read(stretch.shard)
        starts = columns.line_starts(lines)
        edges = starts[which.of(stretch.bits, len(starts))].tolist()
    else:
        edges = []
        written = bytearray()
        for row in read_jsonl(stretch.shard):
            if row["split"] == "train":
                edges.append(len(written))
            written += dump_lines([row])
        lines = bytes(written)
    return lines, [*edges, lines.index(b"\n", edges[-1]) + 1 if edges else 0]


class Planted(NamedTuple):
    """Canaries that are planted for certain."""

    facts: JsonObject  # what canaries.json says of them
    copies: Sequence[Maker]
    numbers: list[str]  # digits that audits must not draw again


def of_digits(spec: CanarySpec, rng: Generator) -> Planted:
    """`count` secrets in the template's sentence, `copies` times each."""
    with of_template(spec.template):
        template, answer, scored = parse_canary(spec)
    drawn = draw_secrets(rng, template.digits, spec.count + spec.controls)
    facts: JsonObject = {
        **template._asdict(),
        "secrets": drawn[: spec.count],
        "controls": drawn[spec.count :],
        "copies": spec.copies,
        "label": spec.label,
    }
    if answer is not None:
        answers = draw_secrets(rng, answer.digits, len(drawn))
        facts["answers"] = {
            "secrets": answers[: spec.count],
            "controls": answers[spec.count :],
            "end": answer.suffix,
        }
        drawn = drawn + answers
    copies = [
        partial(_canary, facts, index, copy, scored)
        for index in range(spec.count)
        for copy in range(spec.copies)
    ]
    return Planted(facts, copies, drawn)


def of_words(spec: WordCanarySpec, points: Path, tokenizer: Path | None, rng: Generator) -> Planted:
    """Canaries of authors, each as often as it says."""
    if tokenizer is None:
        raise InputError("is needed: canaries of words are made of its words", key="tokenizer")
    words = vocabulary(spec, load(tokenizer), rng)
    facts = draw(spec, words, chosen_authors(spec, points, rng), rng)
    copies = [
        partial(canary_point, facts, index, copy)
        for index, canary in enumerate(facts["canaries"])
        for copy in range(canary["copies"])
    ]
    return Planted(facts, copies, [])


def plant(
    spec: CanarySpec | WordCanarySpec,
    *,
    points: Path,
    output: Path,
    canaries: Path,
    tokenizer: Path | None = None,
    threads: int = 1,
) -> None:
    """Write the points with canaries among the training ones, and canaries.json.

    `tokenizer` is read for canaries of words and of new tokens alone; `threads` processes read the
    points, one writes them.
    Guarantees: other points keep their order and content, and turning one coin changes, adds or
    removes one line of `output` and no other. canaries.json and `output` hold secrets and are work
    files.
    """
    rng = default_rng(spec.seed % 2**64)
    planted = (
        of_words(spec, points, tokenizer, rng) if spec.kind == "words" else of_digits(spec, rng)
    )
    audits = draw_audits(spec, planted.numbers, tokenizer)
    flipped = [
        partial(_audit_canary, name, audit, index)
        for name, audit in audits.items()
        for index in range(len(audit["coins"]))
    ]
    makers = [*planted.copies, *flipped]
    which = Which(output.parent)
    stretches = [which.keep(*found) for found in scatter(lambda: _look, shards(points), threads)]
    train = sum(stretch.train for stretch in stretches)
    if makers and not train:
        raise InputError("has no training points to plant canaries among", file=points)
    total = len(makers)
    places = rng.choice(train + total, total, replace=False, shuffle=False).tolist()
    rows = (makers[number]() for number in rng.permutation(total).tolist())
    write_pieces(output, _interleave(stretches, which, places, rows))
    write_json(canaries, planted.facts | ({"audits": audits} if audits else {}))
