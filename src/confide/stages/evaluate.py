"""Measure a trained model on held-out points, as they were and masked: perplexity, accuracy."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from confide import models
from confide.data.partition_files import check_points, check_vocabulary, load_partition
from confide.errors import InputError
from confide.files.io import sha256, write_json
from confide.files.rows import read_rows
from confide.output.counts import pointed
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import EvaluateSpec
from confide.text.planted import is_planted
from confide.train.evaluation import (
    backoff,
    bits_per_character,
    by_author,
    evaluate_points,
    reference_points,
    score,
    some_of,
    summary,
)
from confide.train.pools import share_of
from confide.types import SPLITS, Partition

TRAINED = 2000  # training points, at most, that are scored beside the held-out ones


def evaluate(
    spec: EvaluateSpec, *, model: Path, original: Path, redacted: Path, points: Path, output: Path
) -> None:
    """Write overall, public-token and private-token figures.

    Private tokens are gold secrets, whatever the policy saw.

    `domains`: the same figures of each domain's points alone, where the corpus has domains.
    `ppl_marked`: on the tokens that the policy marks; `ppl_marked_backoff`: the same where the
    model predicts a mask first. `ppl_unigram_redacted`: of public tokens, by how often each stands
    in the redacted training text: what a model must beat. `ppl_train`: of training points, scored
    alike. `authors`: perplexity of each author with text on both sides; `points` says what was
    planted, and counts for none of these two.
    """
    keep_pages()
    partition = load_partition(original, redacted)
    device = device_of(spec.device)
    network = models.load(model.parent).to(device)
    check_vocabulary(partition, network.vocab_size, original, redacted)
    held_out = (partition.split == SPLITS.index(spec.split)).nonzero()[0]
    if not len(held_out):
        raise InputError("no points in this split", file=original, key="split", value=spec.split)
    original_view = partition.original
    redacted_view = partition.redacted
    train = partition.pool("all")
    size = network.vocab_size
    scores = score(network, original_view, held_out, device)
    secret = scores.marked(partition.secret)
    marked = scores.marked(original_view.private)
    ppl_marked = summary(scores, marked)["ppl_private"]
    masked = evaluate_points(network, redacted_view, redacted_view.private, held_out, device)
    reference = partial(
        reference_points,
        original_view,
        mask=partition.secret,
        train=train,
        points=held_out,
        vocab_size=size,
        end=network.bos,
    )
    is_made, characters = described(points, partition)
    real = train[~is_made[train]]
    originals = real[~partition.copy[real]]
    first = some_of(originals, TRAINED, np.random.default_rng(0))  # the same for every model
    seen = evaluate_points(network, original_view, partition.secret, first, device)
    figures: dict[str, Any] = {
        "run": spec.run,
        "weights": sha256(model),
        "split": spec.split,
        "points": len(held_out),
        **summary(scores, secret),
        "bits_per_character": bits_per_character(scores, int(characters[held_out].sum())),
        **reference(),
        "ppl_unigram_redacted": reference(counted=redacted_view)["ppl_unigram_public"],
        "ppl_masked": masked["ppl"],
        "ppl_masked_public": masked["ppl_public"],
        "marked_share": share_of(original_view, train),
        "ppl_marked": ppl_marked,
        "ppl_marked_backoff": backoff(masked, int(marked.sum()), size),
        **({} if original_view.scores_all(held_out) else {"scored": "assistant"}),
        "domains": {},
        "ppl_train": seen["ppl"],
        "authors": by_author(scores, partition.owner, real),
    }
    for number, name in enumerate(partition.domains):
        of_domain = partition.domain[scores.point] == number
        if of_domain.any():
            figures["domains"][name] = summary(scores.of(of_domain), secret[of_domain])
    write_json(output, pointed(figures))


def described(points: Path, partition: Partition) -> tuple[np.ndarray, np.ndarray]:
    """Which points (N,) bool were planted, by their documents' names, and their characters (N,).

    Where assistants' turns alone are scored, their characters alone are counted.

    InputError unless the file has the partition's points.
    """
    whole = partition.original.learned is None
    rows = []
    for doc, text, answers in read_rows(points, "doc", "text", "answers"):
        size = len(text) if whole or answers is None else sum(end - start for start, end in answers)
        rows.append((is_planted(doc), size))
    check_points(partition, len(rows), points)
    planted = np.array([flag for flag, _ in rows], bool)
    return planted, np.array([size for _, size in rows], int)
