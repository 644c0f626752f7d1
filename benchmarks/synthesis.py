"""Turns per minute that a model writes, as `confide synthesize` asks for them.

    python benchmarks/synthesis.py [--rounds 3] [--count 2000]

An LSTM of the default size learns the turns of a simulated CustomerSim, so that its texts end and
repeat themselves as those of a trained model do. Timed are drawing, sorting out, keeping what was
drawn, and writing the corpus; starting the program and reading the certificate, a second or two in
all, are not. One process, with one thread or two; `kept` and `removed` are duplicates. Where they
are removed, more texts are drawn than there are in the end: `drawn_per_text`.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine
from runner import Apart, Step, arguments_of, compared, interleaved, shown

from confide import models
from confide.certify.drawing import Progress, corpus, draw
from confide.files.io import read_jsonl, write_json, write_jsonl
from confide.models.language_model import LanguageModel
from confide.runtime.memory import keep_pages
from confide.specs import (
    CustomerSimSpec,
    LSTMSpec,
    SamplingSpec,
    SplitSpec,
    SynthesisSpec,
    WorthSpec,
)
from confide.stages.split import split
from confide.text.tokenizer import Tokenizer, load, save, train_bpe
from confide.train.student import taught, view_of

SIZES = {"train": 600, "valid": 1, "test": 1}  # dialogues
VOCAB = 1024
ASKED = 1000  # turns a minute that there should be at least
LSTM = LSTMSpec(kind="lstm")
STUDENT = WorthSpec(  # 600 updates of 32 turns
    embedding=LSTM.embedding, hidden=LSTM.hidden, updates=600, device="cpu"
)
THREADS = (1, 2)
DUPLICATES = {"kept": True, "removed": False}
CERTIFIED = {"run": "benchmark", "seal": "", "weights": ""}  # what a corpus says of its model


def made(folder: Path) -> None:
    """A tokenizer and a trained model in a folder."""
    simulated = CustomerSimSpec(reader="customersim", sizes=SIZES)
    split(SplitSpec(corpus=simulated, point="turn"), output=folder / "points.jsonl")
    texts = [row["text"] for row in read_jsonl(folder / "points.jsonl") if row["split"] == "train"]
    tokenizer = train_bpe(texts, VOCAB)
    save(tokenizer, folder / "tokenizer.json")
    view = view_of([[*tokenizer.encode(text), tokenizer.bos_id] for text in texts])
    model = taught(
        STUDENT,
        view,
        np.arange(len(texts)),
        vocab_size=tokenizer.vocab_size,
        bos=tokenizer.bos_id,
        device=STUDENT.device,
    )
    models.save(model, folder / models.WEIGHTS, folder / models.CONFIG)


def asked_for(count: int, duplicates: bool) -> SynthesisSpec:
    """What `confide synthesize` asks for unless told otherwise, of so many texts."""
    sampling = SamplingSpec(top_k=None, max_new_tokens=128)
    return SynthesisSpec(count=count, sampling=sampling, duplicates=duplicates)


def written(
    model: LanguageModel, tokenizer: Tokenizer, asked: SynthesisSpec, folder: Path
) -> Progress:
    """Texts drawn and written to a file of a folder; how many were drawn for them."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        progress = Progress(Path(place) / "begun", key="")
        draw(model, tokenizer, asked, progress)
        write_jsonl(Path(place) / "texts.jsonl", corpus(CERTIFIED, asked, progress))
    return progress


def built(folder: Path, threads: int, asked: SynthesisSpec) -> Step:
    """The step of one contender, in a process of its own."""
    keep_pages()
    torch.set_num_threads(threads)
    model = models.load(folder)
    tokenizer = load(folder / "tokenizer.json")
    return lambda: written(model, tokenizer, asked, folder)


def measured(folder: Path, count: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Figures by contender, of a model that is in a folder."""
    model = models.load(folder)
    tokenizer = load(folder / "tokenizer.json")
    contenders: dict[str, Callable[[], object]] = {}
    rates: dict[str, float] = {}
    for name, duplicates in DUPLICATES.items():
        asked = asked_for(count, duplicates)
        progress = written(model, tokenizer, asked, folder)
        for threads in THREADS:
            contender = f"threads {threads}, duplicates {name}"
            contenders[contender] = Apart(built, folder, threads, asked)
            rates[contender] = progress.counts["drawn"] / count
    seconds = interleaved(contenders, rounds)
    found: dict[str, dict[str, Any]] = compared(seconds, next(iter(contenders)))
    for contender, row in found.items():
        row["turns_per_minute"] = 60_000 * count / row["milliseconds"]
        row["drawn_per_text"] = rates[contender]
        row["enough"] = row["turns_per_minute"] >= ASKED
    return found


def main() -> None:
    parser = arguments_of(__file__, __doc__, 3)
    parser.add_argument("--count", type=int, default=2000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made(folder)
        found = measured(folder, arguments.count, arguments.rounds)
    for contender, row in found.items():
        shown(contender, row)
    settings = {"count": arguments.count, "rounds": arguments.rounds}
    results = {"hardware": machine("torch"), "settings": settings, "cases": found}
    write_json(arguments.output, results)


if __name__ == "__main__":
    main()
