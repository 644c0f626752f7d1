"""What the workflow reads, as a list of targets: a valid file, how it is changed, and the function
that reads it.

A target's files lie in a folder that is built once; its reader takes that folder.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import yaml
from hostile_corpora import CORPORA
from hostile_signed import attestation, key, statement, statement_and_key
from hostile_workflow import (
    OTHER,
    STUDIES,
    as_layer,
    as_named_layer,
    as_parameters,
    in_parts,
    workflow,
)
from hostile_world import (
    RUN,
    attack,
    certify,
    chained,
    check,
    dedup,
    evaluate,
    neighbours,
    partition,
    plant,
    recall,
    redact,
    renamed,
    report,
    scan,
    sealed,
    shadow_models,
    stage,
    train,
    trained,
    verify,
)
from matplotlib.image import imsave

from confide import cli, models
from confide.attacks.membership import shadows
from confide.commands.mirror import rows_of
from confide.config.params import load as load_params
from confide.data.redaction import finder_of
from confide.dp.ledger import Ledger
from confide.policies import policy
from confide.policies.domain_classifier import from_file, save
from confide.policies.pipelines import from_bytes
from confide.specs import KeywordPolicySpec, LiraSpec, RedactSpec, RegexPolicySpec, SplitSpec
from confide.text import tokenizer
from confide.train import checkpoint, snapshots

ROOT = Path(__file__).parents[2]
LIRA = LiraSpec(kind="lira", shadows="few", label="name", limit=20)


class Target(NamedTuple):
    """Where the file to be changed lies in the folder, the kind of change, and what reads it."""

    group: str  # the folder it is copied from
    kind: str  # one of MUTATIONS
    file: str
    read: Callable[[Path], object]
    seal: Callable[[Path, bytes], bytes] | None = None
    # what the file holds beyond the checked fields may end in the command line's one line on a
    # fault
    stops: bool = False
    short: int = 25  # cases of the short version


def others(folder: Path) -> None:
    """Parameters, policies, specifications, a pipeline and a classifier."""
    import spacy
    from transformers import RobertaConfig, RobertaForSequenceClassification

    from confide.policies.domain_classifier import Classifier

    params = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    in_parts(folder, params)
    (folder / "regex.json").write_text(json.dumps({"kind": "regex", "patterns": PATTERNS}))
    (folder / "keywords.json").write_text(json.dumps({"A": ["seat", "a flight"], "B": ["cable"]}))
    (folder / "spec.json").write_text(
        json.dumps({"corpus": {"reader": "lines", "path": "own.jsonl"}, "point": "turn"})
    )
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada"}])
    (folder / "rules.spacy").write_bytes(nlp.to_bytes())
    words = tokenizer.train_bpe(["hello"], 270)
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    config = RobertaConfig(
        vocab_size=270,
        **sizes,
        max_position_embeddings=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
    )
    save(
        Classifier(RobertaForSequenceClassification(config), words.backend, ("A", "B"), 0.5),
        folder / "classes.safetensors",
    )
    vocab, merges = gpt2_files()
    (folder / "vocab.json").write_text(vocab)
    (folder / "merges.txt").write_text(merges)


PATTERNS = {
    "code": r"(?=[A-Z0-9])\b[A-Z]\d{3}-(?P<secret>\w+)",
    "twice": r"(\d)\1+",
    "name": r"[A-Z]\w+ [A-Z]\w+",
}


def gpt2_files() -> tuple[str, str]:
    """A small vocabulary of GPT-2's kind."""
    vocab = tokenizer.train_bpe(["hello there"] * 5, 270).backend.get_vocab()
    words = [word for word in sorted(vocab, key=vocab.get) if not word.startswith("<")] + [
        tokenizer.END
    ]
    return json.dumps(
        {word: index for index, word in enumerate([*words[:256], tokenizer.END])}
    ), "#version: 0.2\n"


def regex(folder: Path) -> None:
    found = cli.read_spec([RegexPolicySpec], f"@{folder / 'regex.json'}")
    finder_of(RedactSpec(policy=found, conservative=found))(
        "AB S3CRET-4711-ZEBRA 112 Ada Byron " * 3
    )


def keywords(folder: Path) -> None:
    policy(KeywordPolicySpec(kind="keyword", model=str(folder / "keywords.json")))(
        "a seat on a flight " * 3
    )


def words(folder: Path) -> None:
    found = tokenizer.load(folder / "tokenizer.json")
    for text in ("hello <MASK> there 12", "é\u2028 ünï"):
        found.decode(found.encode(text))


def restored(folder: Path) -> None:
    found = checkpoint.read(folder / "checkpoint", "fingerprint")
    assert found is None or isinstance(found["batches"], dict)


def epochs(folder: Path) -> None:
    list(
        snapshots.each(
            folder / f"models/{RUN}/epochs.safetensors", models.load(folder / f"models/{RUN}")
        )
    )


def ledger(folder: Path) -> None:
    found = Ledger.from_file(folder / f"models/{RUN}/ledger.jsonl")
    found.ended(), found.epochs(), found.states(), found.releases()


def classes(folder: Path) -> None:
    from confide.policies.domain_classifier import probabilities

    probabilities(from_file(folder / "classes.safetensors"), ["hello there"])


def entity_rules(folder: Path) -> None:
    path = folder / "rules.spacy"
    from_bytes(path.read_bytes(), path)("Ada was here")


def gpt2(folder: Path) -> None:
    stage("tokenizer", {"kind": "gpt2", "source": str(folder)}, folder, output="out.json")


BUILD: dict[str, Callable[[Path], None]] = {
    "trained": trained,
    "others": others,
    "workflow": workflow,
    "signed": statement_and_key,
}
PLACE = f"results/runs/{RUN}"
MODEL = f"models/{RUN}"
TARGETS: dict[str, Target] = {
    **{name: Target(name, kind, file, read) for name, (kind, file, _, read) in CORPORA.items()},
    "params.yaml": Target(
        "others", "yaml", "params.yaml", lambda folder: load_params(folder / "params.yaml"), short=8
    ),
    "studies": Target(
        "others", "yaml", STUDIES, lambda folder: load_params(folder / "params.yaml"), short=8
    ),
    "studies: snakemake": Target(
        "workflow", "orders", f"project/{STUDIES}", as_parameters, short=4
    ),
    "params.yaml: snakemake": Target(
        "workflow", "orders", "project/params.yaml", as_parameters, short=3
    ),
    "configfile: snakemake": Target("workflow", "orders", f"project/{OTHER}", as_layer, short=6),
    "layers: snakemake": Target("workflow", "orders", f"project/{OTHER}", as_named_layer, short=2),
    "specification": Target(
        "others", "json", "spec.json", lambda f: cli.read_spec([SplitSpec], f"@{f / 'spec.json'}")
    ),
    "policy: regex": Target("others", "json", "regex.json", regex, short=4),
    "policy: keywords": Target("others", "json", "keywords.json", keywords),
    "policy: classifier": Target("others", "tensors", "classes.safetensors", classes),
    "policy: spaCy pipeline": Target("others", "bytes", "rules.spacy", entity_rules, short=8),
    "vocab.json": Target("others", "json", "vocab.json", gpt2),
    "merges.txt": Target("others", "bytes", "merges.txt", gpt2),
    "tokenizer.json": Target("trained", "json", "tokenizer.json", words),
    "points: plant": Target("trained", "lines", "before.jsonl", plant),
    "points: dedup": Target("trained", "lines", "points.jsonl", dedup),
    "points: redact": Target("trained", "lines", "points.jsonl", redact),
    "points: recall": Target("trained", "lines", "points.jsonl", recall),
    "points: partition": Target("trained", "lines", "points.jsonl", partition),
    "points: neighbours": Target("trained", "lines", "points.jsonl", neighbours),
    "points: evaluate": Target("trained", "lines", "points.jsonl", evaluate),
    "points: membership": Target(
        "trained", "lines", "points.jsonl", lambda folder: attack(folder, "membership"), short=8
    ),
    "points: shadows": Target("trained", "lines", "points.jsonl", shadow_models, short=8),
    "copies.jsonl": Target("trained", "lines", "copies.jsonl", partition),
    "spans: recall": Target("trained", "lines", "spans.jsonl", recall),
    "spans: partition": Target("trained", "lines", "spans.jsonl", partition),
    "original.safetensors": Target("trained", "tensors", "original.safetensors", train, short=8),
    "redacted.safetensors": Target("trained", "tensors", "redacted.safetensors", train, short=8),
    "original.safetensors: evaluate": Target(
        "trained", "tensors", "original.safetensors", evaluate
    ),
    "checkpoint": Target("trained", "tensors", "checkpoint/state.safetensors", restored),
    "model.safetensors": Target(
        "trained", "tensors", f"{MODEL}/model.safetensors", lambda f: models.load(f / MODEL)
    ),
    "config.json": Target(
        "trained", "json", f"{MODEL}/config.json", lambda f: models.load(f / MODEL)
    ),
    "epochs.safetensors": Target("trained", "tensors", f"{MODEL}/epochs.safetensors", epochs),
    "ledger.jsonl": Target("trained", "lines", f"{MODEL}/ledger.jsonl", ledger),
    "ledger.jsonl, chained again": Target(
        "trained", "lines", f"{MODEL}/ledger.jsonl", ledger, chained
    ),
    "ledger.jsonl: certify": Target(
        "trained", "lines", f"{MODEL}/ledger.jsonl", certify, chained, short=3
    ),
    "recall.json": Target("trained", "json", "recall.json", certify, short=3),
    "neighbours.json": Target("trained", "json", "neighbours.json", certify, short=3),
    "certificate.json: verify": Target("trained", "json", f"{PLACE}/certificate.json", verify),
    "certificate.json, sealed again": Target(
        "trained", "json", f"{PLACE}/certificate.json", verify, sealed
    ),
    "recall.json: verify": Target("trained", "json", "recall.json", verify, renamed),
    "certificate.json: audit check": Target("trained", "json", f"{PLACE}/certificate.json", check),
    "game.json: audit check": Target("trained", "json", f"{PLACE}/game.json", check),
    "attestation.json": Target("signed", "json", "attestation.json", attestation),
    "attestation.json, signed again": Target("signed", "json", "statement.json", statement),
    "public key": Target("signed", "bytes", "key.pub", key),
    "canaries.json: exposure": Target(
        "trained", "json", "canaries.json", lambda folder: attack(folder, "exposure")
    ),
    "canaries.json: game": Target(
        "trained", "json", "canaries.json", lambda folder: attack(folder, "game")
    ),
    "canaries.json: scan": Target("trained", "json", "canaries.json", scan),
    "shadows.safetensors": Target(
        "trained",
        "tensors",
        "shadows.safetensors",
        lambda f: shadows.read(f / "shadows.safetensors", LIRA),
    ),
    "metrics.jsonl: live": Target(
        "trained", "lines", f"{MODEL}/metrics.jsonl", lambda folder: rows_of(folder, RUN)
    ),
    "metrics.jsonl: report": Target(
        "trained", "lines", f"{MODEL}/metrics.jsonl", report, stops=True, short=4
    ),
    "certificate.json: report": Target(
        "trained", "json", f"{PLACE}/certificate.json", report, stops=True, short=4
    ),
    "evaluate.json: report": Target(
        "trained", "json", f"{PLACE}/evaluate.json", report, stops=True, short=4
    ),
    "exposure.json: report": Target(
        "trained", "json", f"{PLACE}/exposure.json", report, stops=True, short=4
    ),
    "membership.json: report": Target(
        "trained", "json", f"{PLACE}/membership.json", report, stops=True, short=4
    ),
    "figure.png: scan": Target("trained", "bytes", "figure.png", scan),
}


def built(group: str, folder: Path) -> None:
    """Build the files of a group in an empty folder."""
    if group in CORPORA:
        _, file, make, _ = CORPORA[group]
        content = make(folder)
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
        return
    BUILD[group](folder)
    if group == "trained":
        states = {"job": {"done": 1}, "batches": {"left": torch.zeros(3), "sizes": [1]}}
        checkpoint.write(folder / "checkpoint", "fingerprint", states)
        imsave(folder / "figure.png", np.zeros((4, 4)))
