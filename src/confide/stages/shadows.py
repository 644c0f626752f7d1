"""Train shadow models of a dataset, each with a random half of the attacked secrets in its text.

They are what an attacker with data of the same kind trains at home (Carlini et al. 2022): on the
text as it was, without redaction and without noise, whatever was done for the model under attack.
So they depend on dataset, tokenizer and specification alone, and serve every run of the dataset.
Only their scores are kept, not their weights.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator, default_rng

from confide.attacks.membership.members import choose, first_occurrences, tokens_of
from confide.attacks.membership.membership import FEWEST
from confide.attacks.membership.scores import secret_log_probs
from confide.attacks.membership.shadows import Shadows, assignment, first_lines, holders, write
from confide.attacks.statistics.scoring import view_of
from confide.dp.mechanism.sampling import generator
from confide.errors import InputError
from confide.models.lstm import LSTMModel
from confide.models.stacked import StackedLSTM, fit
from confide.output.escaping import warn
from confide.runtime.memory import keep_pages
from confide.specs import LSTMSpec, ShadowsSpec
from confide.text.tokenizer import Tokenizer
from confide.text.tokenizer import load as load_tokenizer
from confide.train.job import device_of
from confide.types import View


def shadows(
    spec: ShadowsSpec, *, points: Path, tokenizer: Path, output: Path, processes: int = 1
) -> None:
    """Train the shadow models and write their scores of every candidate.

    Guarantees: the output holds numbers alone, no secret and no text.
    """
    keep_pages()
    words = load_tokenizer(tokenizer)
    rng = default_rng([spec.seed, 1])
    chosen = choose(list(first_occurrences(points, spec.label)), spec.limit, default_rng(spec.seed))
    member = np.array([candidate.member for candidate in chosen], dtype=bool)
    if member.sum() < FEWEST:
        message = f"has fewer than {FEWEST} members or non-members"
        raise InputError(message, file=points, key="label", value=spec.label)
    seen = assignment(spec.models, len(chosen), rng)
    texts, learns = training_set(
        list(holders(points, spec.label, chosen)), seen, spec.background, rng
    )
    total, count, loss = trained(
        spec,
        words=words,
        view=view_of([ids for ids, _ in words.encode_batch(texts)]),
        learns=learns,
        candidates=tokens_of(chosen, words),
        processes=processes,
    )
    write(
        Shadows(
            spec,
            seen=seen,
            total=total,
            count=count,
            member=member,
            line=first_lines(points, spec.label, chosen),
            loss=loss,
        ),
        output,
    )


def training_set(
    found: list[tuple[str, bool, list[int]]],
    seen: np.ndarray,
    background: float,
    rng: Generator,
) -> tuple[list[str], np.ndarray]:
    """Texts, and which model learns each, (K, N) bool.

    A point with candidates is learnt by the models that are to see all of them.

    Of the other points, a share of those for training is learnt by all; held-out points without
    candidates by none.
    """
    others = [number for number, (_, train, held) in enumerate(found) if train and not held]
    picked = rng.choice(len(others), round(background * len(others)), replace=False)
    kept = {others[place] for place in picked.tolist()}
    chosen = [number for number, (_, _, held) in enumerate(found) if held or number in kept]
    learns = np.stack([seen[:, found[number][2]].all(1) for number in chosen], axis=1)
    return [found[number][0] for number in chosen], learns


def compact(views: list[View], bos: int) -> tuple[list[View], int, int]:
    """The views and bos in a vocabulary of the tokens that occur, and its size.

    Most of the cost is per token of vocabulary.

    Of a token that occurs nowhere a model would only learn to leave it out.
    """
    used, places = np.unique(
        np.concatenate([[bos], *(view.ids for view in views)]), return_inverse=True
    )
    ids = np.split(places[1:].astype(np.int32), np.cumsum([len(view.ids) for view in views])[:-1])
    return (
        [replace(view, ids=own) for view, own in zip(views, ids, strict=True)],
        int(places[0]),
        len(used),
    )


def trained(
    spec: ShadowsSpec,
    words: Tokenizer,
    view: View,
    learns: np.ndarray,
    candidates: View,
    processes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (K, M) and token counts (M,) of the candidates, and losses of training (epochs, K)."""
    (view, candidates), bos, size = compact([view, candidates], words.bos_id)
    torch.manual_seed(spec.seed)
    like = LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
    fresh = [LSTMModel(like, size, bos) for _ in range(spec.models)]
    stack = StackedLSTM.of([model.to(device_of(spec.device)) for model in fresh])
    losses = fit(
        stack,
        view,
        learns,
        epochs=spec.epochs,
        lr=spec.lr,
        batch_size=spec.batch_size,
        bos=bos,
        source=generator(spec.seed, "shadows"),
        processes=processes,
    )
    if not np.isfinite(losses).all():
        raise InputError("training diverged: a loss is not finite", key="lr", value=spec.lr)
    first, last = (f"{loss.mean():.3f}" for loss in losses[[0, -1]])
    warn(f"shadows: {len(stack)} models, {len(view)} texts, loss {first} to {last}")
    models = (stack.model(number, fresh[0]).eval() for number in range(len(stack)))
    scores = [secret_log_probs(model, candidates) for model in models]
    return np.stack([total for total, _ in scores]), scores[0][1], losses
