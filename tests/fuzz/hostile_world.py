"""A small run of everything, by the stages themselves, in a folder of its own; and how files behind
a hash are sealed again.
"""

import json
import shutil
import typing
from pathlib import Path
from typing import Any

import orjson
from hostile_corpora import jsonl, own_lines, points_of

from confide import cli
from confide.certify import certificate as certificates
from confide.certify.gate import cases
from confide.dp.ledger import START, digest
from confide.files.io import sha256
from confide.provenance.terms import digest_of_specs, terms
from confide.specs import PartitionSpec, RedactSpec, ReportSpec, TextSpec, parse
from confide.text import tokenizer

RUN = "crt/g0.1-s0"
REDACT = {
    "policy": {"kind": "regex", "patterns": {"code": r"S3\w+-\d+-\w+|\d{4}"}},
    "conservative": {"kind": "everything"},
}
TEXT = {"dataset": "own", "corpus": "", "cut": "", "point": "sentence"}
POLICY = {"stage": "policy", "source": "code", "public": True}
TOKENIZER = {"stage": "tokenizer", "source": "bpe", "public": True}
TRAIN = {
    "run": RUN,
    "method": "crt",
    "data": terms(TextSpec(**TEXT), RedactSpec(**REDACT), PartitionSpec()),
    "model": {"kind": "lstm", "embedding": 4, "hidden": 4},
    "recipe": {"epochs": 2, "batch_size": 8, "noisy_batch_size": 8},
    "privacy": {"noise_multiplier": 1.0},
    "every_epoch": True,
    "reads": [TOKENIZER, POLICY],
}
CERTIFY = {"train": TRAIN, "miss_rate": 0.1}
ATTACKS = {
    "exposure": {"kind": "exposure"},
    "game": {"kind": "game"},
    "membership": {"kind": "membership", "label": "name", "limit": 20, "group": 2, "bootstrap": 20},
}
CANARIES = {
    "template": "My ID is {2}",
    "count": 2,
    "copies": 2,
    "controls": 2,
    "game": {"template": "Code {3}", "count": 12},
}


def stage(name: str, spec: Any, folder: Path, said: Any = None, **paths: str | list[str]) -> None:
    """Call a stage with files of a folder, and what else it is told, if anything."""
    function = cli.stage(name)
    given = {
        key: [folder / one for one in value] if isinstance(value, list) else folder / value
        for key, value in paths.items()
    }
    classes = typing.get_args(hint) or (hint,) if (hint := function.__annotations__["spec"]) else ()
    function(cli.read_spec(list(classes), json.dumps(spec)), **given, **(said or {}))


# A small run of everything
# ---------------------------------------------------------------------------------------------


def data(folder: Path) -> None:
    (folder / "own.jsonl").write_bytes(jsonl(own_lines()))
    points_of(folder, {"reader": "lines", "path": str(folder / "own.jsonl")})
    (folder / "points.jsonl").rename(folder / "before.jsonl")
    tokenizer.save(
        tokenizer.train_bpe(["hello there, My ID is 0123456789"] * 3, 270),
        folder / "tokenizer.json",
    )
    stage(
        "plant",
        CANARIES,
        folder,
        points="before.jsonl",
        output="points.jsonl",
        canaries="canaries.json",
    )
    for read in (dedup, redact, recall, partition, neighbours):
        read(folder)


def plant(folder: Path) -> None:
    stage("plant", CANARIES, folder, points="before.jsonl", output="out.jsonl", canaries="out.json")


def dedup(folder: Path) -> None:
    stage("dedup", {}, folder, points="points.jsonl", output="copies.jsonl")


def redact(folder: Path) -> None:
    stage("redact", REDACT, folder, points="points.jsonl", output="spans.jsonl")


def recall(folder: Path) -> None:
    spec = {"text": TEXT, "redact": REDACT, "reads": [POLICY]}
    stage("recall", spec, folder, points="points.jsonl", spans="spans.jsonl", output="recall.json")


def partition(folder: Path) -> None:
    files = {
        "points": "points.jsonl",
        "copies": "copies.jsonl",
        "spans": "spans.jsonl",
        "tokenizer": "tokenizer.json",
    }
    stage(
        "partition",
        {},
        folder,
        {"policies": digest_of_specs(parse(RedactSpec, REDACT))},
        **files,
        original="original.safetensors",
        redacted="redacted.safetensors",
    )


def neighbours(folder: Path) -> None:
    spec = {
        "text": TEXT,
        "redact": REDACT,
        "partition": {},
        "reads": [TOKENIZER, POLICY],
        "sample": 5,
    }
    stage(
        "neighbours",
        spec,
        folder,
        points="points.jsonl",
        tokenizer="tokenizer.json",
        output="neighbours.json",
    )


def trained(folder: Path) -> None:
    data(folder)
    train(folder)
    certify(folder)
    evaluate(folder)
    for name in ATTACKS:
        attack(folder, name)
    shadow_models(folder)
    study = {"study": "s", "title": "S", "figures": [], "runs": [report_run()]}
    (folder / "study.json").write_text(json.dumps(study))
    report(folder)


def report_run() -> dict[str, Any]:
    names = {"run": RUN, "name": "crt", "method": "crt", "dataset": "own", "model": "lstm"}
    return names | {"gamma": 0.1, "seed": 0, "attacks": list(ATTACKS)}


def train(folder: Path) -> None:
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    names = {
        "model": "model.safetensors",
        "config": "config.json",
        "metrics": "metrics.jsonl",
        "ledger": "ledger.jsonl",
    }
    outputs = {
        key: f"models/{RUN}/{name}"
        for key, name in (names | {"epochs": "epochs.safetensors"}).items()
    }
    views = {
        "original": "original.safetensors",
        "redacted": "redacted.safetensors",
        "tokenizer": "tokenizer.json",
    }
    stage("train", TRAIN, folder, **views, checkpoint="checkpoint", **outputs)


def certify(folder: Path) -> None:
    views = {name: f"{name}.safetensors" for name in ("original", "redacted")}
    files = views | {
        "recall": "recall.json",
        "neighbours": "neighbours.json",
        "tokenizer": "tokenizer.json",
    }
    files |= {
        "ledger": f"models/{RUN}/ledger.jsonl",
        "model": f"models/{RUN}/model.safetensors",
        "config": f"models/{RUN}/config.json",
    }
    out = {"output": "certificate.json", "words": "certificate.md", "html": "certificate.html"}
    stage(
        "certify",
        CERTIFY,
        folder,
        **files,
        **{key: f"results/runs/{RUN}/{name}" for key, name in out.items()},
    )


def evaluate(folder: Path) -> None:
    views = {name: f"{name}.safetensors" for name in ("original", "redacted")}
    files = views | {"model": f"models/{RUN}/model.safetensors", "points": "points.jsonl"}
    stage("evaluate", {"run": RUN}, folder, **files, output=f"results/runs/{RUN}/evaluate.json")


def attack(folder: Path, name: str) -> None:
    files = {
        "model": f"models/{RUN}/model.safetensors",
        "tokenizer": "tokenizer.json",
        "points": "points.jsonl",
    }
    spec = {"run": RUN, "attack": ATTACKS[name]}
    output = f"results/runs/{RUN}/{name}.json"
    stage("attack", spec, folder, **files, canaries="canaries.json", output=output)


def shadow_models(folder: Path) -> None:
    spec = {"label": "name", "limit": 20, "models": 4, "embedding": 2, "hidden": 2, "epochs": 1}
    stage(
        "shadows",
        spec,
        folder,
        points="points.jsonl",
        tokenizer="tokenizer.json",
        output="shadows.safetensors",
    )


def report(folder: Path) -> None:
    spec = parse(ReportSpec, orjson.loads((folder / "study.json").read_bytes()))
    cli.stage("study")(
        spec,
        results=folder / "results",
        models=folder / "models",
        output=folder / "results/studies/s",
    )


def verify(folder: Path) -> None:
    cli.stage("verify")(folder / f"results/runs/{RUN}/certificate.json", root=Path("/"))


def check(folder: Path) -> None:
    here = folder / "results/runs" / RUN
    list(cases(here / "certificate.json", here / "game.json"))


def scan(folder: Path) -> None:
    out = {"output": "scan.json", "table": "scan.csv"}
    stage(
        "scan",
        {},
        folder,
        points=["points.jsonl"],
        canaries=["canaries.json"],
        public=[],
        published=[],
        files=["study.json", "figure.png"],
        **out,
    )


# Files behind a hash
# --------------------------------------------------------------------------------------------------


def chained(folder: Path, content: bytes) -> bytes:
    """A ledger whose lines follow one another again."""
    lines = []
    previous = START
    for index, raw in enumerate(content.splitlines()):
        try:
            line = orjson.loads(raw)
            line = {key: value for key, value in line.items() if key != "hash"} | {
                "previous": previous,
                "index": index,
            }
            line |= {"hash": (previous := digest(line))}
            raw = orjson.dumps(line)
        except (ValueError, AttributeError, TypeError):
            pass
        lines.append(raw + b"\n")
    return b"".join(lines)


def sealed(folder: Path, content: bytes) -> bytes:
    """A certificate whose seal is whole, and names its files with the hashes that they have."""
    try:
        return orjson.dumps(certificates.sealed(orjson.loads(content)))
    except (ValueError, AttributeError, TypeError):
        return content


def renamed(folder: Path, content: bytes) -> bytes:
    """After a change of recall.json: the certificate names its new hash."""
    place = folder / f"results/runs/{RUN}/certificate.json"
    value = orjson.loads(place.read_bytes())
    (folder / "recall.json").write_bytes(content)
    value["files"]["recall"][0]["sha256"] = sha256(folder / "recall.json")
    place.write_bytes(orjson.dumps(certificates.sealed(value)))
    return content
