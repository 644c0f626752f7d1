"""Draw the texts that a certified model is asked for, batch by batch, and keep what is there.

What is begun and stopped goes on where it was. A batch depends on the seed and on its own place, so
that the texts are the same however often it was stopped.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import torch
from tqdm import tqdm

from confide.certify.texts import header, quotas
from confide.errors import Failure, InputError
from confide.files.io import read_bytes, readable, writable
from confide.files.shards import numbers_of_share
from confide.models.generation import Generation, ending, generate, uniforms
from confide.models.language_model import LanguageModel
from confide.specs import MixSpec, SynthesisSpec
from confide.text.fakes import filled
from confide.text.tokenizer import Tokenizer
from confide.types import MASK

TOGETHER = 512  # texts that are drawn at once, and kept at once, at most
LEAST = 64  # of a part that wants few
# Batches that other jobs drew, by part of the mix and place.
Ahead = Mapping[tuple[int, int], dict[str, Any]]
TRIES = 20  # texts that are drawn for each one that is wanted, at most


def key_of(certified: dict[str, Any], asked: SynthesisSpec) -> str:
    """What texts that were begun must have been drawn by to go on with them."""
    return hashlib.sha256(f"{certified['seal']}\n{asked.model_dump_json()}".encode()).hexdigest()


def begun_beside(output: Path) -> Path:
    """The file that holds what is begun of a file."""
    return output.with_name(f".{output.name}.begun")


class Begun:
    """Rows of JSON in a file that survives a kill, and a key of what must be the same to go on.

    Whoever makes one holds its file (`exclusive`).
    """

    def __init__(self, file: Path, key: str):
        """Read what was begun; InputError where it was begun otherwise."""
        self.file = file
        self.there: list[dict[str, Any]] = []  # before anything is added
        whole = read_bytes(file).rfind(b"\n") + 1  # a line without an end was being written
        with writable(file):
            os.truncate(file, whole)
        if whole:
            self.there = rows_of(file, key)
        else:
            self.add({"key": key})

    def add(self, row: dict[str, Any]) -> None:
        """Append a row."""
        with writable(self.file), self.file.open("ab") as out:
            out.write(line_of(row))


def line_of(row: dict[str, Any]) -> bytes:
    """A row as it stands in the file."""
    return orjson.dumps(row) + b"\n"


def has_key(file: Path, key: str) -> bool:
    """Whether a file of rows begins with this key."""
    with readable(file), file.open("rb") as lines:
        return lines.readline() == line_of({"key": key})


def rows_of(file: Path, key: str) -> list[dict[str, Any]]:
    """The rows of such a file; InputError where it was begun otherwise."""
    whole = read_bytes(file).split(b"\n")[:-1]  # a line without an end was being written
    rows = []
    for number, line in enumerate(whole, 1):
        try:
            rows.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            message = "is damaged; delete the file to start over"
            raise InputError(message, file=file, line=number) from None
    if not rows or rows[0] != {"key": key}:
        message = "was begun with another model or settings; delete it to start over"
        raise InputError(message, file=file)
    return rows[1:]


class Progress:
    """Texts that are there already, batch by batch."""

    def __init__(self, file: Path, key: str):
        self.begun = Begun(file, key)
        self.texts: dict[int, list[str]] = {}  # by part of the mix
        self.batches: Counter[int] = Counter()  # drawn of each part
        self.counts: Counter[str] = Counter()
        self.seen: set[bytes] = set()
        for batch in self.begun.there:
            self._take(batch)

    @property
    def there(self) -> int:
        """How many texts."""
        return sum(map(len, self.texts.values()))

    def add(self, batch: dict[str, Any]) -> None:
        """Keep a batch: `part`, `texts`, and `counts` of those that were left out."""
        self.begun.add(batch)
        self._take(batch)

    def _take(self, batch: dict[str, Any]) -> None:
        self.texts.setdefault(batch["part"], []).extend(batch["texts"])
        self.batches[batch["part"]] += 1
        self.counts.update(batch["counts"])
        self.seen.update(map(digest_of, batch["texts"]))


def digest_of(text: str) -> bytes:
    """By what texts are told apart."""
    return hashlib.sha1(text.encode()).digest()


def draw(
    model: LanguageModel,
    tokenizer: Tokenizer,
    asked: SynthesisSpec,
    progress: Progress,
    ahead: Ahead | None = None,
) -> None:
    """Draw until every part has its texts; Failure where the model writes too few of a kind.

    ahead: batches that other jobs drew.
    """
    mix = asked.mix or [MixSpec()]
    known = ahead or {}
    writer = Writer(model, tokenizer, asked)
    with tqdm(
        total=asked.count,
        initial=progress.there,
        unit="text",
        disable=None,
    ) as bar:
        for number, (part, wanted) in enumerate(zip(mix, quotas(mix, asked.count), strict=True)):
            while (missing := wanted - len(progress.texts.get(number, []))) > 0:
                place = progress.batches[number]
                if place >= most_batches(wanted):
                    raise Failure(
                        f"part {number + 1} of the mix: the model wrote {wanted - missing:,} of "
                        f"{wanted:,} texts in {TRIES} times as many; what helps: a higher "
                        "temperature, --duplicates, --unfinished, other lengths"
                    )
                batch = known.get((number, place))
                if batch is None:
                    batch = writer.batch(number, part, place, size_of_batch(wanted))
                kept = first_ones(batch, asked, progress.seen, missing)
                progress.add(kept)
                bar.update(len(kept["texts"]))


def draw_ahead(
    model: LanguageModel, tokenizer: Tokenizer, asked: SynthesisSpec, begun: Begun, share: str
) -> None:
    """Draw every so-many-th batch, as one of several jobs, until its part of the texts is there.

    share: such as 2-of-8. Where jobs wrote the same texts, whoever puts them together draws more.
    """
    mix = asked.mix or [MixSpec()]
    writer = Writer(model, tokenizer, asked)
    own, shares = numbers_of_share(share)
    there = by_place(begun.there)
    for number, (part, wanted) in enumerate(zip(mix, quotas(mix, asked.count), strict=True)):
        seen: set[bytes] = set()
        kept = 0
        for place in range(own - 1, most_batches(wanted), shares):
            if kept * shares >= wanted:
                break
            row = there.get((number, place))
            if row is None:
                row = writer.batch(number, part, place, size_of_batch(wanted))
                begun.add(row)
            new = first_ones(row, asked, seen, wanted)["texts"]
            seen.update(map(digest_of, new))
            kept += len(new)


def drawn_ahead(files: list[Path], key: str) -> Ahead:
    """What several jobs drew.

    key: as of Progress; InputError where it was drawn otherwise.
    """
    return by_place(row for file in files for row in rows_of(file, key))


def by_place(rows: Iterable[dict[str, Any]]) -> Ahead:
    """Batches by part of the mix and place."""
    return {(row["part"], row["place"]): row for row in rows}


def size_of_batch(wanted: int) -> int:
    """How many texts of a part are drawn at once."""
    return min(max(wanted, LEAST), TOGETHER)


def most_batches(wanted: int) -> int:
    """How many batches of a part are drawn, and no more."""
    return -(-TRIES * max(wanted, TOGETHER) // size_of_batch(wanted))


class Writer:
    """A model that is asked for texts."""

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, asked: SynthesisSpec):
        self.model = model
        self.tokenizer = tokenizer
        self.asked = asked
        self.until = ending(tokenizer, masks=asked.fill)

    def batch(self, number: int, part: MixSpec, place: int, size: int) -> dict[str, Any]:
        """The `place`th batch of a part: those of `size` texts that fit, and how many do not.

        Its numbers depend on the seed, the part and the place.
        """
        source = torch.Generator().manual_seed(seed_of(self.asked.seed, number, place))
        spec = self.asked.sampling
        prompt = self.tokenizer.encode(part.code + part.prompt)
        numbers = uniforms(1, size, spec, source)
        samples = generate(self.model, [prompt], numbers, spec, self.until)[0]
        counts: Counter[str] = Counter(drawn=len(samples))
        texts = []
        for sample in samples:
            why = unfit(sample, part, self.asked)
            if why is None:
                texts.append(part.prompt + sample.text)
            else:
                counts[why] += 1
        return {"part": number, "place": place, "texts": texts, "counts": counts}


def first_ones(
    batch: dict[str, Any], asked: SynthesisSpec, seen: set[bytes], most: int
) -> dict[str, Any]:
    """A batch without texts that are there already, unless these are kept, and so many at most.

    seen: digests of those that are there.
    """
    counts = Counter(batch["counts"])
    texts: list[str] = []
    new: set[bytes] = set()
    for text in batch["texts"]:
        digest = digest_of(text)
        if not asked.duplicates and (digest in seen or digest in new):
            counts["duplicate"] += 1
        else:
            new.add(digest)
            texts.append(text)
    return {"part": batch["part"], "texts": texts[:most], "counts": counts}


def unfit(sample: Generation, part: MixSpec, asked: SynthesisSpec) -> str | None:
    """Why a text is left out, by itself; None if it is not."""
    if not sample.stopped and not asked.unfinished:
        return "unfinished"
    if len(sample.ids) < part.min_tokens or not sample.text.strip():
        return "short"
    if part.max_tokens is not None and len(sample.ids) > part.max_tokens:
        return "long"
    return None


def seed_of(seed: int, part: int, batch: int) -> int:
    """Of a batch's numbers: another one for each."""
    digest = hashlib.sha256(f"{seed} {part} {batch}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


def corpus(
    certified: dict[str, Any], asked: SynthesisSpec, progress: Progress
) -> Iterator[dict[str, Any]]:
    """The lines of the file: where it is from, then the texts, part by part."""
    yield header(certified, asked, asked.count)
    mix = asked.mix or [MixSpec()]
    for number, part in enumerate(mix):
        domain = {} if part.domain is None else {"domain": part.domain}
        for place, text in enumerate(progress.texts.get(number, []), 1):
            doc = f"synthetic-{number + 1}-{place}"
            shown = filled(text, asked.seed, doc) if asked.fill else text
            yield {"doc": doc, "text": shown, **domain}


def counted(asked: SynthesisSpec, progress: Progress) -> dict[str, int]:
    """What was drawn, why some of it was left out, and how many masks were filled."""
    if not asked.fill:
        return dict(progress.counts)
    masks = sum(text.count(MASK) for texts in progress.texts.values() for text in texts)
    return dict(progress.counts) | {"filled": masks}
