"""The tab attack: does the first token of a sentence bring back all of the rest?

This is section 3 of Mireshghallah et al. 2021. The model goes on greedily and by beam search, and a
sentence comes out or does not. Asked are the planted canaries of words, controls that were never
planted, and "real canaries": of each author the training sentence with the highest perplexity per
token under a reference model. The paper takes the unmitigated model for that, which has by
construction not memorised what it finds unlikely; here it is one that never saw the text, and so
picks the same sentences for every method.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from confide.attacks.authorship.authors import Sample, read_samples
from confide.attacks.domains.proportions import rated
from confide.attacks.exposure.beam import continued
from confide.attacks.exposure.words import read_words
from confide.attacks.statistics.scoring import row_log_probs
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models import LanguageModel
from confide.specs import TabSpec
from confide.text.tokenizer import Tokenizer


class Answers(NamedTuple):
    """What came back of n sentences."""

    greedy: list[bool]  # all of it
    beam: list[bool]
    matched: list[int]  # leading tokens after the first that greedy gets right


class Real(NamedTuple):
    """An author's sentence that the reference model finds hardest to predict."""

    author: int
    tokens: list[int]
    surprise: float  # nats per token under the reference


def regenerated(
    model: LanguageModel,
    sentences: Sequence[Sequence[int]],
    width: int,
    banned: tuple[int, ...] = (),
) -> Answers:
    """Ask for sentences (n,) of at least two tokens each.

    FloatingPointError where probabilities are not finite.
    """
    beam = np.zeros(len(sentences), dtype=bool)
    matched = np.zeros(len(sentences), dtype=int)
    lengths = np.array([len(sentence) for sentence in sentences])
    for length in sorted(set(lengths.tolist())):
        rows = np.flatnonzero(lengths == length).tolist()
        wanted = torch.tensor([list(sentences[row]) for row in rows])
        first = wanted[:, 0]
        right = continued(model, first, length - 1, 1, banned) == wanted[:, 1:]
        matched[rows] = right.int().cumprod(1).sum(1).numpy()
        right = continued(model, first, length - 1, width, banned) == wanted[:, 1:]
        beam[rows] = right.all(1).numpy()
    greedy = matched == lengths - 1
    return Answers(greedy.tolist(), beam.tolist(), matched.tolist())


def hardest(
    samples: Sequence[Sample],
    tokenizer: Tokenizer,
    reference: LanguageModel,
    fewest: int,
    most: int,
) -> list[Real]:
    """Of each author, the training sentence with the highest perplexity.

    Asked are sentences of `fewest` to `most` tokens; canaries are left out.
    """
    by_length: dict[int, list[tuple[int, list[int]]]] = {}
    for sample in samples:
        if sample.split == "train" and sample.author >= 0 and sample.canary is None:
            tokens = tokenizer.encode(sample.text)
            if fewest <= len(tokens) <= most:
                by_length.setdefault(len(tokens), []).append((sample.author, tokens))
    real: dict[int, Real] = {}
    for length, sentences in sorted(by_length.items()):
        rows = np.array([tokens for _, tokens in sentences])
        surprises = (-row_log_probs(reference, rows) / length).tolist()
        for (author, tokens), surprise in zip(sentences, surprises, strict=True):
            if author not in real or surprise > real[author].surprise:
                real[author] = Real(author, tokens, surprise)
    return [real[author] for author in sorted(real)]


def judged(name: str, flags: Sequence[bool], authors: Sequence[int]) -> dict[str, float]:
    """A rate with its interval.

    Sentences of one author are a cluster, and one without author stands alone.
    """
    clusters = [author if author >= 0 else -1 - index for index, author in enumerate(authors)]
    return rated(f"rate_{name}", flags, clusters)


def regeneration_rates(
    target: Target,
    sentences: Sequence[Sequence[int]],
    authors: Sequence[int],
    width: int,
    first_k: int | None = None,
) -> dict[str, Any]:
    """What came back, and its rates.

    `prompts`: different first tokens, which no more sentences than that can share.
    """
    metrics: dict[str, Any] = {
        "count": len(sentences),
        "prompts": len({sentence[0] for sentence in sentences}),
    }
    if not sentences:
        return metrics | {"reason": "none in this corpus"}
    tokenizer = target.tokenizer
    banned = tuple({tokenizer.bos_id, tokenizer.pad_id, tokenizer.mask_id})
    try:
        answers = regenerated(target.model, sentences, width, banned)
    except FloatingPointError as error:
        return metrics | {"reason": str(error)}
    metrics |= answers._asdict()
    metrics |= judged("greedy", answers.greedy, authors) | judged("beam", answers.beam, authors)
    if first_k is not None:
        enough = [
            right >= min(first_k, len(sentence) - 1)
            for right, sentence in zip(answers.matched, sentences, strict=True)
        ]
        metrics |= {"k": first_k, "first_k": enough} | judged("first_k", enough, authors)
    return metrics


def real_sentences(spec: TabSpec, target: Target, samples: Sequence[Sample]) -> dict[str, Any]:
    """Metrics of the real sentences, or why there are none."""
    if target.reference is None:
        if spec.reference is not None:
            raise InputError("needs the reference model", key="reference", value=spec.reference)
        return {"count": 0, "reason": "no reference model to choose them"}
    chosen = hardest(samples, target.tokenizer, target.reference, spec.real_min, spec.real_max)
    if not chosen:
        lengths = f"{spec.real_min} to {spec.real_max} tokens"
        return {"count": 0, "reason": f"no author has a training sentence of {lengths}"}
    if not np.isfinite([real.surprise for real in chosen]).all():
        return {"count": 0, "reason": "the reference model's probabilities are not finite"}
    authors = [real.author for real in chosen]
    sentences = [real.tokens for real in chosen]
    facts = {"authors": authors, "tokens": [len(tokens) for tokens in sentences]}
    return facts | regeneration_rates(target, sentences, authors, spec.beam, spec.real_k)


def tab(spec: TabSpec, target: Target) -> dict[str, Any]:
    """The attack on canaries, controls and real sentences, by number; no text is written."""
    if spec.real_min > spec.real_max:
        message = f"is more than real_max, {spec.real_max}"
        raise InputError(message, key="real_min", value=spec.real_min)
    samples, numbers = read_samples(target.points)
    planted = read_words(target.canaries, target.tokenizer, numbers, spec.kind)
    canaries = planted.space.tokens(planted.canaries).tolist()
    controls = planted.space.tokens(planted.controls).tolist()
    facts = {"copies": planted.copies, "authors": planted.authors}
    return {
        "beam": spec.beam,
        "length": planted.space.length,
        "canaries": facts | regeneration_rates(target, canaries, planted.authors, spec.beam),
        "real": real_sentences(spec, target, samples),
        "controls": regeneration_rates(target, controls, [-1] * len(controls), spec.beam),
    }
