"""A small corpus through the stages before training, for tests of what a model might write."""

from pathlib import Path
from typing import Any

from confide.files.io import read_jsonl
from confide.provenance.terms import digest_of_specs
from confide.specs import (
    CanarySpec,
    CustomerSimSpec,
    DedupSpec,
    PartitionSpec,
    RedactSpec,
    SplitSpec,
    parse,
)
from confide.stages.dedup import dedup
from confide.stages.partition import partition
from confide.stages.plant import plant
from confide.stages.redact import redact
from confide.stages.split import split
from confide.text.tokenizer import save, train_bpe

POLICY = {"kind": "regex", "patterns": {"digits": r"\d[\d.-]*"}}
CANARIES = {
    "template": "My ID is: {6}",
    "count": 5,
    "copies": 4,
    "controls": 5,
    "game": {"template": "The access code is {6}", "count": 60},
    "inclusion": {"template": "The order code was {6}", "count": 60},
}


def made(folder: Path, **corpus: Any) -> dict[str, Path]:
    """Files of a simulated corpus with canaries, by the names of stages' arguments."""
    settings: dict[str, Any] = {"sizes": {"train": 60, "valid": 20, "test": 60}, "users": 300}
    sim = CustomerSimSpec(reader="customersim", **(settings | corpus))
    names = ("split", "points", "canaries", "copies", "spans", "original", "redacted", "tokenizer")
    files = {name: folder / name for name in names}
    split(SplitSpec(corpus=sim, point="turn"), output=files["split"])
    spec = parse(CanarySpec, CANARIES)
    plant(spec, points=files["split"], output=files["points"], canaries=files["canaries"])
    dedup(DedupSpec(), points=files["points"], output=files["copies"])
    policies = parse(RedactSpec, {"policy": POLICY, "conservative": POLICY})
    redact(policies, points=files["points"], output=files["spans"])
    words = [row["text"] for row in read_jsonl(files["split"])]
    save(train_bpe(words, 400), files["tokenizer"])
    taken = ("points", "copies", "spans", "tokenizer", "original", "redacted")
    parted = {name: files[name] for name in taken}
    partition(PartitionSpec(dedup=False), **parted, policies=digest_of_specs(policies))
    return files
