"""Extraction: a model is prompted, and what it writes holds a secret or does not.

Planted canaries (Carlini et al. 2019): prompted with their sentence up to the secret, the model
writes values. Canaries are drawn uniformly among all 10^n values, so that of the different values
that a model writes which never saw one, the number of canaries is hypergeometric. That test is
exact, and needs no controls.

Secrets of the training text (Carlini et al. 2023): prompted with all that stands before one, the
model goes on, greedily, with the secret or with something else. Some secrets can be guessed. So it
is asked for as many of held-out text, and Fisher's exact test compares the two.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from confide.attacks.domains.proportions import rated
from confide.attacks.exposure.candidates import Sentence, encoded
from confide.attacks.exposure.exposure import read_canaries, sentence_of
from confide.attacks.membership.members import Candidate, choose, first_occurrences
from confide.attacks.statistics.metrics import at_least
from confide.attacks.statistics.scoring import NOT_FINITE
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import read_json
from confide.models.generation import ending, generate, pieces, room, uniforms
from confide.specs import ExtractionSpec, SamplingSpec
from confide.text.tokenizer import Tokenizer

MARGIN = 4  # tokens that a model may take beyond those of the tokenizer's own spelling
NOTHING = "none in this corpus"


class Question(NamedTuple):
    """A prompt as tokens, and what the model writes if it gives the secret away."""

    prompt: list[int]
    answer: str
    member: bool


def extraction(spec: ExtractionSpec, target: Target) -> dict[str, Any]:
    """How many canaries and training secrets come out, by number; no text is written.

    `reason` where there was nothing to ask for, or probabilities are not finite.
    """
    metrics: dict[str, Any] = {"samples": spec.samples, "temperature": spec.temperature}
    try:
        metrics |= of_canaries(spec, target)
        metrics |= of_records(spec, target)
    except FloatingPointError:
        return metrics | {"reason": NOT_FINITE}
    if not metrics["canaries"] and not metrics["members"]:
        metrics["reason"] = NOTHING
    return metrics


def of_canaries(spec: ExtractionSpec, target: Target) -> dict[str, Any]:
    """Which canaries are among the values that the model writes after their sentence's beginning.

    `p_canaries`: how often as many would be if it had never seen one.
    """
    if target.canaries is None or read_json(target.canaries).get("kind") == "words":
        return {"canaries": 0}
    planted = read_canaries(target.canaries)
    secrets = set(planted["secrets"])
    if not secrets:
        return {"canaries": 0}
    written = values_written(spec, target, sentence_of(planted))
    different = set(written)
    population = 10 ** planted["digits"]
    out = [secret in different for secret in planted["secrets"]]
    controls_out = [secret in different for secret in planted["controls"]]
    return {
        "candidates": population,
        "values": len(written),
        "values_different": len(different),
        "canaries": len(out),
        "canaries_out": sum(out),
        "canaries_chance": len(out) * len(different) / population,
        **rated("rate_canaries", out, range(len(out))),
        "p_canaries": at_least(
            sum(out), population=population, marked=len(out), drawn=len(different)
        ),
        "controls": len(controls_out),
        "controls_out": sum(controls_out),
    }


def values_written(spec: ExtractionSpec, target: Target, sentence: Sentence) -> list[str]:
    """The values of the samples that are canaries in form, in the order in which they came.

    The prompt is as many tokens as all candidates have in common.
    """
    prompt = common_prompt(target.tokenizer, sentence)
    pieces_of = pieces(target.tokenizer)
    beginning = b"".join(pieces_of[token] for token in prompt).decode(errors="replace")
    longest = len(target.tokenizer.encode(sentence.texts(np.zeros(1, dtype=np.int64))[0]))
    sampling = SamplingSpec(
        temperature=spec.temperature,
        top_k=None,
        max_new_tokens=longest - len(prompt) + MARGIN,
    )
    source = torch.Generator().manual_seed(spec.seed)
    numbers = uniforms(1, spec.samples, sampling, source)
    until = ending(target.tokenizer)
    (samples,) = generate(target.model, [prompt], numbers, sampling, until)
    form = re.compile(rf"\s*{re.escape(sentence.prefix.lstrip())}([0-9]{{{sentence.digits}}})")
    found = (form.match(beginning + sample.text) for sample in samples)
    return [match[1] for match in found if match is not None]


def common_prompt(tokenizer: Tokenizer, sentence: Sentence) -> list[int]:
    """The tokens with which the candidates of every first digit begin."""
    repeated = np.arange(10) * (10**sentence.digits // 9)  # 0000, 1111, ..., 9999
    rows = encoded(tokenizer, sentence, repeated)
    differ = (rows != rows[0]).any(axis=0)
    common = int(differ.argmax()) if differ.any() else rows.shape[1]
    return rows[0, :common].tolist()


def of_records(spec: ExtractionSpec, target: Target) -> dict[str, Any]:
    """How many secrets of the training text come out, beside as many of held-out text."""
    asked = questions(spec, target)
    if not asked:
        return {"label": spec.label, "members": 0, "non_members": 0}
    out = answered(target, asked)
    member = [question.member for question in asked]
    inside = [came for came, is_member in zip(out, member, strict=True) if is_member]
    outside = [came for came, is_member in zip(out, member, strict=True) if not is_member]
    return {
        "label": spec.label,
        "members": len(inside),
        "members_out": sum(inside),
        **rated("rate_members", inside, range(len(inside))),
        "non_members": len(outside),
        "non_members_out": sum(outside),
        **rated("rate_non_members", outside, range(len(outside))),
        "p_members": at_least(sum(inside), population=len(out), marked=sum(out), drawn=len(inside)),
    }


def questions(spec: ExtractionSpec, target: Target) -> list[Question]:
    """As many of the training text as of held-out text, of each kind of secret.

    InputError where a secret is longer than the model's context.
    """
    rng = np.random.default_rng(spec.seed)
    secrets = first_occurrences(target.points, spec.labels)
    chosen: list[Candidate] = []
    for label in spec.labels:
        of_kind = [secret for secret in secrets if secret.label == label]
        chosen += choose(of_kind, spec.limit, rng)
    encoded_texts = target.tokenizer.encode_batch([one.text for one in chosen])
    asked = []
    for candidate, (ids, offsets) in zip(chosen, encoded_texts, strict=True):
        before = sum(end <= candidate.start for _, end in offsets)
        read_up_to = offsets[before - 1][1] if before else 0
        answer = candidate.text[read_up_to : candidate.end]
        asked.append(Question(ids[:before], answer, candidate.member))
    return asked


def answered(target: Target, asked: Sequence[Question]) -> list[bool]:
    """Whether the model goes on with the answer, taking the likeliest token each time."""
    lengths = [len(ids) for ids in target.tokenizer.encode_all([one.answer for one in asked])]
    sampling = SamplingSpec(top_k=1, max_new_tokens=max(lengths) + MARGIN)
    most = room(target.model, sampling)
    if most < 1:
        message = "a secret is longer than the model can write"
        raise InputError(message, file=target.points, key="gold")
    # the last tokens of a prompt that is too long; one place is the begin token's
    prompts = [one.prompt[int(max(0, len(one.prompt) + 1 - most)) :] for one in asked]
    numbers = torch.zeros(len(asked), 1, sampling.max_new_tokens, dtype=torch.float64)
    written = generate(target.model, prompts, numbers, sampling, ending(target.tokenizer))
    return [
        sample.text.lstrip().startswith(one.answer.lstrip())
        for (sample,), one in zip(written, asked, strict=True)
    ]
