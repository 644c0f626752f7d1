"""Draw the texts that a certified model is asked for, batch by batch, and keep what is there.

What is begun and stopped goes on where it was. A batch depends on the seed and on its own place, so
that the texts are the same however often it was stopped.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import torch
from tqdm import tqdm

from confide.certify.texts import header, quotas
from confide.errors import Failure, InputError
from confide.models.generation import Ending, Generation, ending, generate, uniforms
from confide.models.language_model import LanguageModel
from confide.specs import MixSpec, SynthesisSpec
from confide.text.fakes import filled
from confide.text.tokenizer import Tokenizer
from confide.types import MASK

TOGETHER = 512  # texts that are drawn at once, and kept at once, at most
LEAST = 64  # of a part that wants few
TRIES = 20  # texts that are drawn for each one that is wanted, at most


def key_of(certified: dict[str, Any], asked: SynthesisSpec) -> str:
    """What texts that were begun must have been drawn by to go on with them."""
    return hashlib.sha256(f"{certified['seal']}\n{asked.model_dump_json()}".encode()).hexdigest()


@dataclass
class Progress:
    """Texts that are there already, batch by batch, in a file that survives a kill."""

    file: Path
    key: str
    texts: dict[int, list[str]] = field(default_factory=dict)  # by part of the mix
    batches: Counter[int] = field(default_factory=Counter)  # drawn of each part
    counts: Counter[str] = field(default_factory=Counter)
    seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read what was begun; InputError where it was begun otherwise."""
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_bytes(orjson.dumps({"key": self.key}) + b"\n")
            return
        lines = self.file.read_bytes().split(b"\n")
        whole = lines[:-1]  # a line without an end was being written
        if not whole or orjson.loads(whole[0]) != {"key": self.key}:
            message = "was begun with another model or settings; delete it to start over"
            raise InputError(message, file=self.file)
        for line in whole[1:]:
            self._take(orjson.loads(line))
        self.file.write_bytes(b"".join(line + b"\n" for line in whole))

    def add(self, batch: dict[str, Any]) -> None:
        """Keep a batch: `part`, `texts`, and `counts` of those that were left out."""
        with self.file.open("ab") as out:
            out.write(orjson.dumps(batch) + b"\n")
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
    model: LanguageModel, tokenizer: Tokenizer, asked: SynthesisSpec, progress: Progress
) -> None:
    """Draw until every part has its texts; Failure where the model writes too few of a kind."""
    mix = asked.mix or [MixSpec()]
    until = ending(tokenizer, masks=asked.fill)
    with tqdm(
        total=asked.count,
        initial=sum(map(len, progress.texts.values())),
        unit="text",
        disable=None,
    ) as bar:
        for number, (part, wanted) in enumerate(zip(mix, quotas(mix, asked.count), strict=True)):
            size = min(max(wanted, LEAST), TOGETHER)
            while (missing := wanted - len(progress.texts.get(number, []))) > 0:
                if progress.batches[number] * size >= TRIES * max(wanted, TOGETHER):
                    raise Failure(
                        f"part {number + 1} of the mix: the model wrote {wanted - missing:,} of "
                        f"{wanted:,} texts in {TRIES} times as many; what helps: a higher "
                        "temperature, --duplicates, --unfinished, other lengths"
                    )
                batch = drawn(model, tokenizer, asked, progress, number, part, size, until)
                batch["texts"] = batch["texts"][:missing]
                progress.add(batch)
                bar.update(len(batch["texts"]))


def drawn(
    model: LanguageModel,
    tokenizer: Tokenizer,
    asked: SynthesisSpec,
    progress: Progress,
    number: int,
    part: MixSpec,
    size: int,
    until: Ending,
) -> dict[str, Any]:
    """Those that fit of `size` texts of a part; its numbers depend on the seed and its place."""
    source = torch.Generator().manual_seed(seed_of(asked.seed, number, progress.batches[number]))
    spec = asked.sampling
    prompt = tokenizer.encode(part.code + part.prompt)
    samples = generate(model, [prompt], uniforms(1, size, spec, source), spec, until)[0]
    counts: Counter[str] = Counter(drawn=len(samples))
    texts: list[str] = []
    new: set[bytes] = set()
    for sample in samples:
        text = part.prompt + sample.text
        digest = digest_of(text)
        why = unfit(sample, part, asked)
        if why is None and not asked.duplicates and (digest in progress.seen or digest in new):
            why = "duplicate"
        if why is None:
            new.add(digest)
            texts.append(text)
        else:
            counts[why] += 1
    return {"part": number, "texts": texts, "counts": counts}


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
