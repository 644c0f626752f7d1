"""Corpora made by hand, what the neighbour test says of them, and the bounds that it must give."""

from pathlib import Path

import orjson
from scipy.stats import binomtest

from confide.data.partitioning import Raw
from confide.files.io import read_json
from confide.specs import NeighboursSpec, PartitionSpec, RedactSpec
from confide.stages.neighbours import neighbours
from confide.text.tokenizer import save, train_bpe
from tests.terms import TEXT

CODE = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"\b\d{6}\b"}},
    conservative={"kind": "regex", "patterns": {"digit": r"\d"}},
)
BLIND = CODE.model_copy(
    update={"policy": CODE.policy.model_copy(update={"patterns": {"x": "xyz"}})}
)


def write(path, points):
    path.write_bytes(b"".join(orjson.dumps(point._asdict()) + b"\n" for point in points))
    return path


def corpus_of(*texts, split="train"):
    """Points with these texts; [..] marks a gold secret."""
    points = []
    for index, text in enumerate(texts):
        gold = []
        while "[" in text:
            start = text.index("[")
            end = text.index("]") - 1
            text = text.replace("[", "", 1).replace("]", "", 1)
            gold.append([start, end, "code", 1.0])
        points.append(Raw(f"d:{index}", text, split, None, None, gold))
    return points


def run(folder, points, redaction, threads=1, **spec):
    """neighbours.json of points, which are a file or a list."""
    folder.mkdir(exist_ok=True)
    if not isinstance(points, Path):
        points = write(folder / "points", points)
    tokenizer = points.parent / "tokenizer"
    if not tokenizer.exists():
        save(train_bpe(["my code is 123456"], 300), tokenizer)
    given = {"text": TEXT, "partition": PartitionSpec(), "reads": []} | spec
    ready = NeighboursSpec(redact=redaction, **given)
    output = folder / "neighbours.json"
    neighbours(ready, points=points, tokenizer=tokenizer, output=output, threads=threads)
    return read_json(folder / "neighbours.json")


def upper(events, trials, bounds=4):
    each = 1 - 0.05 / bounds
    return binomtest(events, trials, alternative="less").proportion_ci(each, method="exact").high
