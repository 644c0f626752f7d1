"""Perplexity and accuracy of a trained model on held-out points: original text, and the masked text beside it."""

from pathlib import Path

from confide import models
from confide.data import load_partition
from confide.errors import InputError
from confide.evaluation import backoff, evaluate_points, reference_points, share_of
from confide.io import write_json
from confide.memory import keep_pages
from confide.specs import EvaluateSpec
from confide.training import device_of
from confide.types import SPLITS


def evaluate(spec: EvaluateSpec, *, model: Path, original: Path, redacted: Path, output: Path) -> None:
    """Write overall, public-token and private-token figures; private = gold secrets, whatever the policy saw.

    `domains`: the same figures of each domain's points alone, where the corpus has domains.
    `ppl_marked`: on the tokens that the policy marks; `ppl_marked_backoff`: the same where the model predicts a mask first.
    """
    keep_pages()
    partition, device = load_partition(original, redacted), device_of(spec.device)
    network = models.load(model.parent).to(device)
    points = (partition.split == SPLITS.index(spec.split)).nonzero()[0]
    if not len(points):
        raise InputError("no points in this split", file=original, key="split", value=spec.split)
    found = evaluate_points(network, partition.original, partition.secret, points, device)
    masked = evaluate_points(network, partition.redacted, partition.redacted.private, points, device)
    train = partition.pool("all")
    extra = reference_points(partition.original, partition.secret, train, points, network.vocab_size, network.bos)
    extra |= {"ppl_masked": masked["ppl"], "ppl_masked_public": masked["ppl_public"]}
    marked = evaluate_points(network, partition.original, partition.original.private, points, device)
    extra |= {"marked_share": share_of(partition.original, train), "ppl_marked": marked["ppl_private"]}
    extra |= {"ppl_marked_backoff": backoff(masked, marked["tokens_private"], network.vocab_size)}
    each = {name: (partition.domain[points] == number) for number, name in enumerate(partition.domains)}
    extra["domains"] = {
        name: evaluate_points(network, partition.original, partition.secret, points[own], device)
        for name, own in each.items()
        if own.any()
    }
    write_json(output, {"run": spec.run, "split": spec.split, "points": len(points)} | found | extra)
