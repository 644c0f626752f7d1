"""`confide synthesize CERTIFICATE --count N --output FILE`: texts of a certified model as a corpus.

Sampling reads the model and public prompts alone, so that what is certified of the model is
certified of all its texts together, whatever their number: a certificate beside them says so.
What is begun and stopped goes on where it was.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import torch
from tqdm import tqdm

from confide.certify.texts import certificate_of_texts, check_declared, header, quotas
from confide.commands.generate import opened, sampling
from confide.commands.verify import checked
from confide.errors import Failure, InputError
from confide.files.io import read_bytes, sha256, write_json, write_jsonl
from confide.models.generation import Ending, Generation, ending, generate, uniforms
from confide.models.language_model import LanguageModel
from confide.output.escaping import say
from confide.specs import MixSpec, SynthesisSpec, parse
from confide.text.tokenizer import Tokenizer

TOGETHER = 512  # texts that are drawn at once, and kept at once
TRIES = 20  # texts that are drawn for each one that is wanted, at most
NAME = "certificate.json"


def synthesize(
    certificate: Path,
    *,
    count: int,
    output: Path,
    mix: Path | None = None,
    public_mix: bool = False,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_new_tokens: int = 128,
    duplicates: bool = False,
    unfinished: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> None:
    """Write `count` texts as JSON lines, and beside them FILE.certificate.json.

    certificate: of the model, or the folder of `confide release` that holds it.
    count: how many texts there shall be.
    output: the new file, a corpus as `confide init` takes it; its first line says where it is from.
    mix: JSON lines, one for each kind of text, with any of code, prompt, domain, share, min_tokens
    and max_tokens.
    public_mix: declares that the mix was made from no protected text.
    temperature: what logits are divided by; the lower, the likelier the words.
    top_p: draw from the fewest tokens that have this probability together.
    top_k: draw from so many of the likeliest tokens; 0 for all.
    max_new_tokens: longest text.
    duplicates: keep texts that the model has written before.
    unfinished: keep texts that the model did not end.
    seed: the same one gives the same texts.
    device: cpu, cuda, or auto for the GPU where there is one.
    """
    if output.exists():
        raise InputError("exists, and is not overwritten", file=output)
    place = certificate / NAME if certificate.is_dir() else certificate
    certified, files, _ = checked(place, [*place.resolve().parents])
    spec = sampling(
        temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens
    )
    asked = parse(
        SynthesisSpec,
        {
            "count": count,
            "seed": seed,
            "sampling": spec,
            "mix": [] if mix is None else parts_of(mix),
            "public_mix": public_mix,
            "duplicates": duplicates,
            "unfinished": unfinished,
        },
    )
    check_declared(asked, mix)
    for name in ("model", "tokenizer"):
        if not files.get(name):
            raise InputError("is not here", file=place, key=f"files.{name}")
    model, tokenizer = opened(files["model"][0].parent, files["tokenizer"][0], device)
    progress = Progress(output.with_name(f".{output.name}.begun"), key_of(certified, asked))
    draw(model, tokenizer, asked, progress)
    write_jsonl(output, corpus(certified, asked, progress))
    texts = {"path": output.name, "sha256": sha256(output), "count": count}
    said = certificate_of_texts(
        certified,
        asked=asked,
        drawn=dict(progress.counts),
        texts=texts,
        certificate=os.path.relpath(place.resolve(), output.resolve().parent),
    )
    write_json(output.with_name(f"{output.name}.{NAME}"), said)
    progress.file.unlink()
    say(f"{output}: {said['says']}")
    if said["release_note"]:
        say(f"  {said['release_note']}")


def parts_of(file: Path) -> list[MixSpec]:
    """The parts of a mix; InputError names the line that does not fit."""
    parts = []
    for number, line in enumerate(read_bytes(file).splitlines(), 1):
        if line.strip():
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                raise InputError("malformed JSON", file=file, line=number) from None
            parts.append(parse(MixSpec, value, file=f"{file}:{number}"))
    if not parts:
        raise InputError("holds no part", file=file)
    return parts


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
    until = ending(tokenizer)
    with tqdm(
        total=asked.count,
        initial=sum(map(len, progress.texts.values())),
        unit="text",
        disable=None,
    ) as bar:
        for number, (part, wanted) in enumerate(zip(mix, quotas(mix, asked.count), strict=True)):
            while (missing := wanted - len(progress.texts.get(number, []))) > 0:
                if progress.batches[number] * TOGETHER >= TRIES * max(wanted, TOGETHER):
                    raise Failure(
                        f"part {number + 1} of the mix: the model wrote {wanted - missing:,} of "
                        f"{wanted:,} texts in {TRIES} times as many; what helps: a higher "
                        "temperature, --duplicates, --unfinished, other lengths"
                    )
                batch = drawn(model, tokenizer, asked, progress, number, part, until)
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
    until: Ending,
) -> dict[str, Any]:
    """A batch of texts of a part, those that fit; its numbers depend on the seed and its place."""
    source = torch.Generator().manual_seed(seed_of(asked.seed, number, progress.batches[number]))
    spec = asked.sampling
    prompt = tokenizer.encode(part.code + part.prompt)
    samples = generate(model, [prompt], uniforms(1, TOGETHER, spec, source), spec, until)[0]
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
            yield {"doc": f"synthetic-{number + 1}-{place}", "text": text, **domain}
