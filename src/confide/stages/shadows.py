"""Train shadow models of a dataset, each with a random half of the attacked secrets in its text.

They are what an attacker with data of the same kind trains at home (Carlini et al. 2022): on the
text as it was, without redaction and without noise, whatever was done for the model under attack.
So they depend on dataset, tokenizer and specification alone, and serve every run of the dataset.
Only their scores are kept, not their weights. They are small LSTMs, or adapters of the pretrained
model that the attacked ones start from, too: then a killed job goes on after the last adapter.

A job may train a share of the models. Each job draws for all of them what they start from and what
they read, so that no number depends on the shares.
"""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator, default_rng

from confide import models
from confide.attacks.membership.members import choose, first_occurrences, tokens_of
from confide.attacks.membership.membership import FEWEST, members_of
from confide.attacks.membership.scores import secret_log_probs
from confide.attacks.membership.shadows import Shadows, assignment, first_lines, holders, write
from confide.attacks.statistics.scoring import view_of
from confide.dp.mechanism.sampling import generator
from confide.errors import InputError
from confide.files.io import sha256
from confide.files.shards import places_of_share, scatter
from confide.models.causal_lm import CausalLM
from confide.models.lstm import LSTMModel
from confide.models.stacked import StackedLSTM, batches, train
from confide.output.escaping import warn
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import CausalLMSpec, LSTMSpec, ShadowsSpec
from confide.text.tokenizer import Tokenizer
from confide.text.tokenizer import load as load_tokenizer
from confide.train import checkpoint as checkpoints
from confide.train.adapters import fit_adapter
from confide.types import View


class Lesson(NamedTuple):
    """What K shadow models learn from, and what they are asked afterwards."""

    view: View  # N texts
    learns: np.ndarray  # (K, N) bool: which model learns which
    candidates: View  # M texts, their secrets private


@dataclass(frozen=True, slots=True)
class Scores:
    """What K trained models say of M candidates."""

    total: np.ndarray  # (K, M) float64: log-probability of the secret's tokens, nats
    count: np.ndarray  # (M,) int64: how many tokens that are
    loss: np.ndarray  # (epochs, K): mean losses of training, nats per token


def shadows(
    spec: ShadowsSpec,
    *,
    points: Path,
    tokenizer: Path,
    output: Path,
    checkpoint: Path | None = None,
    share: str | None = None,
    processes: int = 1,
) -> None:
    """Train the shadow models and write their scores of every candidate.

    checkpoint: a folder in which adapters' scores are kept until all are there
    share: of the models, such as 2-of-8; `confide gather_shadows` puts shares together
    processes: of one thread each, for LSTMs

    Guarantees: the output holds numbers alone, no secret and no text.
    """
    keep_pages()
    places = places_of_share(len(spec.groups), share)
    if not places:
        message = f"no shadow models fall to it: they are trained in {len(spec.groups)} groups"
        raise InputError(message, key="share", value=share)
    groups = spec.groups[places.start : places.stop]
    numbers = np.arange(groups[0].start, groups[-1].stop)
    loaded_tokenizer = load_tokenizer(tokenizer)
    rng = default_rng([spec.seed, 1])
    secrets = first_occurrences(points, [spec.label])
    chosen = choose(secrets, spec.limit, default_rng(spec.seed))
    member = members_of(chosen)
    if member.sum() < FEWEST:
        message = f"has fewer than {FEWEST} members or non-members"
        raise InputError(message, file=points, key="label", value=spec.label)
    seen = assignment(spec.models, len(chosen), rng)
    texts, learns = training_set(
        list(holders(points, spec.label, chosen)), seen, spec.background, rng
    )
    view = view_of([ids for ids, _ in loaded_tokenizer.encode_batch(texts)])
    lesson = Lesson(view, learns, tokens_of(chosen, loaded_tokenizer))
    if spec.model is None:
        scores = trained(spec, loaded_tokenizer, lesson, groups, processes)
    else:
        model = base_of(spec, loaded_tokenizer)
        spec = spec.model_copy(update={"model": model.spec})  # with the digest of its files
        inputs = [spec.model_dump_json(), sha256(points), sha256(tokenizer), str(numbers.tolist())]
        fingerprint = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
        with nullcontext() if checkpoint is None else checkpoints.exclusive(checkpoint):
            scores = adapted(spec, model, lesson, numbers, checkpoint, fingerprint)
    check_losses(spec, scores.loss)
    say_losses(scores.loss, len(view))
    measured = Shadows(
        spec,
        model=numbers,
        seen=seen[numbers],
        total=scores.total,
        count=scores.count,
        member=member,
        line=first_lines(points, spec.label, chosen),
        loss=scores.loss,
    )
    write(measured, output)
    if checkpoint is not None:
        checkpoints.clear(checkpoint)


def training_set(
    records: list[tuple[str, bool, list[int]]],
    seen: np.ndarray,
    background: float,
    rng: Generator,
) -> tuple[list[str], np.ndarray]:
    """Texts, and which model learns each, (K, N) bool.

    A point with candidates is learnt by the models that are to see all of them.

    Of the other points, a share of those for training is learnt by all; held-out points without
    candidates by none.
    """
    others = [number for number, (_, train, held) in enumerate(records) if train and not held]
    picked = rng.choice(len(others), round(background * len(others)), replace=False)
    extra = {others[place] for place in picked.tolist()}
    chosen = [number for number, (_, _, held) in enumerate(records) if held or number in extra]
    learns = np.stack([seen[:, records[number][2]].all(1) for number in chosen], axis=1)
    return [records[number][0] for number in chosen], learns


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
        [replace(view, ids=part) for view, part in zip(views, ids, strict=True)],
        int(places[0]),
        len(used),
    )


def trained(
    spec: ShadowsSpec, tokenizer: Tokenizer, lesson: Lesson, groups: list[range], processes: int
) -> Scores:
    """Groups of small LSTMs, and what they say of the candidates.

    A group is trained as one, on one thread of one of the processes: operations this small wait for
    the interpreter, so that threads would gain nothing. On a GPU all groups are one.
    """
    (view, candidates), bos, size = compact([lesson.view, lesson.candidates], tokenizer.bos_id)
    torch.manual_seed(spec.seed)
    like = LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
    fresh = [LSTMModel(like, size, bos) for _ in range(spec.models)]
    plan = batches(
        np.diff(view.starts),
        lesson.learns,
        epochs=spec.epochs,
        batch_size=spec.batch_size,
        source=generator(spec.seed, "shadows"),
    )
    device = device_of(spec.device)
    if torch.device(device).type == "cuda":
        groups = [range(groups[0].start, groups[-1].stop)]

    def train_group(group: range) -> Scores:
        members = [fresh[number].to(device) for number in group]
        stack = StackedLSTM.of(members)
        read = plan[:, :, group.start : group.stop]
        loss = train(stack, view, read, lr=spec.lr, bos=bos, number=groups.index(group))
        asked = (stack.model(place, members[0]).eval() for place in range(len(stack)))
        scores = [secret_log_probs(model, candidates) for model in asked]
        return Scores(np.stack([total for total, _ in scores]), scores[0][1], loss)

    def prepare() -> Callable[[range], Scores]:
        torch.set_num_threads(1)
        return train_group

    by_group = list(scatter(prepare, groups, min(processes, len(groups))))
    return Scores(
        np.concatenate([scores.total for scores in by_group]),
        count=by_group[0].count,
        loss=np.concatenate([scores.loss for scores in by_group], axis=1),
    )


def base_of(spec: ShadowsSpec, tokenizer: Tokenizer) -> CausalLM:
    """The pretrained model with an adapter, read once for all shadow models.

    InputError where the specification names none.
    """
    if not isinstance(spec.model, CausalLMSpec) or spec.model.adapter is None:
        message = "needs a model of kind causal_lm with an adapter: only that is trained anew"
        raise InputError(message, key="model")
    model = models.build(spec.model, tokenizer.vocab_size, tokenizer.bos_id)
    assert isinstance(model, CausalLM)
    return model.to(device_of(spec.device))


def adapted(
    spec: ShadowsSpec,
    model: CausalLM,
    lesson: Lesson,
    numbers: np.ndarray,
    checkpoint: Path | None,
    fingerprint: str,
) -> Scores:
    """Adapters of a model, one after another, and what they say of the candidates.

    numbers (K,): of the shadow models that are trained here. The attacks read a model whose
    adapters are merged, in float32; so are these asked.
    """
    totals: list[torch.Tensor] = []
    losses: list[torch.Tensor] = []
    saved = None if checkpoint is None else checkpoints.read(checkpoint, fingerprint)
    if saved is not None:
        totals += saved["shadows"]["total"].unbind()
        losses += saved["shadows"]["loss"].unbind()
    for number in numbers[len(totals) :].tolist():
        loss = fit_adapter(
            model,
            lesson.view,
            lesson.learns[number],
            epochs=spec.epochs,
            lr=spec.lr,
            batch_size=spec.batch_size,
            seed=generator(spec.seed, f"shadow {number}").initial_seed(),
            title=f"shadow {number + 1} of {spec.models}",
        )
        check_losses(spec, loss)
        total, _ = secret_log_probs(model.as_used(), lesson.candidates)
        if not np.isfinite(total).all():
            raise InputError("training diverged: a score is not finite", key="lr", value=spec.lr)
        totals.append(torch.from_numpy(total))
        losses.append(torch.from_numpy(loss))
        if checkpoint is not None:
            state = {"total": torch.stack(totals), "loss": torch.stack(losses)}
            checkpoints.write(checkpoint, fingerprint, {"shadows": state})
    starts = lesson.candidates.starts
    count = np.add.reduceat(lesson.candidates.private.astype(np.int64), starts[:-1])
    return Scores(torch.stack(totals).numpy(), count, torch.stack(losses, 1).numpy())


def check_losses(spec: ShadowsSpec, losses: np.ndarray) -> None:
    """InputError where training diverged."""
    if not np.isfinite(losses).all():
        raise InputError("training diverged: a loss is not finite", key="lr", value=spec.lr)


def say_losses(losses: np.ndarray, texts: int) -> None:
    """One line on losses (epochs, K) of training on so many texts."""
    first, last = (f"{loss.mean():.3f}" for loss in losses[[0, -1]])
    warn(f"shadows: {losses.shape[1]} models, {texts} texts, loss {first} to {last}")
