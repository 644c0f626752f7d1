"""How often does a model that is prompted with one domain write text of another?

This is section 6.3 of Domain Private Transformers. There it is called the success rate of a
likelihood-ratio attack, though no ratio is in it: the share of the continuations of held-out
prompts that a judge flags, of those that are not empty. Beside each rate stand what the same judge
flags of real held-out text of the prompt's domain, its false alarms, and of the target's own.
Intervals are those of `proportions.share`: dialogues are the clusters, since prompts of one
dialogue begin alike, and a prompt is continued many times.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import torch

from confide.attacks.domains.examples import redactions, veil, written
from confide.attacks.domains.judges import GOLD, Verdicts, policies_of, verdicts
from confide.attacks.domains.prompts import Prompt, Texts, read
from confide.attacks.domains.proportions import Share, share
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models import LanguageModel
from confide.models.generation import Generation, ending, generate, room, uniforms
from confide.specs import LeakSpec, PromptedSpec
from confide.text.tokenizer import Tokenizer


class Answers(NamedTuple):
    """All continuations (n,), prompt by prompt, and the token ids of their prompts."""

    prompts: list[Prompt]  # (n,): each as often as it was continued
    ids: list[list[int]]  # (n,) token ids of the prompt
    generations: list[Generation]  # (n,)

    @property
    def texts(self) -> list[str]:
        return [generation.text.strip() for generation in self.generations]

    @property
    def domains(self) -> np.ndarray:
        """(n,) str: the domain of the prompt."""
        return np.array([prompt.domain for prompt in self.prompts])

    @property
    def filled(self) -> np.ndarray:
        """(n,) bool: is not empty."""
        return np.array([bool(text) for text in self.texts], dtype=bool)


def fitting(
    spec: PromptedSpec, tokenizer: Tokenizer, texts: Texts, *networks: LanguageModel
) -> list[tuple[Prompt, list[int]]]:
    """Prompts, with their tokens, that leave each of the models room for an answer."""
    longest = min(room(network, spec.sampling) for network in networks)
    encoded = [(prompt, tokenizer.encode(prompt.text)) for prompt in texts.prompts]
    short = [(prompt, ids) for prompt, ids in encoded if len(ids) < longest]
    if not short:
        shortest = min(len(ids) for _, ids in encoded) + 1
        sizes = f"the shortest has {shortest}, the model {longest:.0f} beside them"
        message = f"no prompt leaves room for so many tokens: {sizes}"
        raise InputError(message, key="sampling.max_new_tokens", value=spec.sampling.max_new_tokens)
    return short


def answers(
    spec: PromptedSpec, tokenizer: Tokenizer, texts: Texts, *networks: LanguageModel
) -> list[Answers]:
    """`samples` continuations of each prompt by each model, up to the first control token.

    FloatingPointError as in `generate`.
    """
    prompts = fitting(spec, tokenizer, texts, *networks)
    encoded = [ids for _, ids in prompts]
    stop = ending(tokenizer, texts.controls)
    source = torch.Generator().manual_seed(spec.seed)
    by_network = []
    for network in networks:
        numbers = uniforms(len(prompts), spec.samples, spec.sampling, source)
        continuations = generate(network, encoded, numbers, spec.sampling, stop)
        rows = [
            (prompt, ids, generation)
            for (prompt, ids), generations in zip(prompts, continuations, strict=True)
            for generation in generations
        ]
        by_network.append(Answers(*map(list, zip(*rows, strict=True))))
    return by_network


def pairs(spec: PromptedSpec) -> list[tuple[str, str]]:
    """Prompt and target domains that differ."""
    both = itertools.product(dict.fromkeys(spec.prompts), dict.fromkeys(spec.targets))
    different = [(prompt, target) for prompt, target in both if prompt != target]
    if not different:
        message = "are the domains of the prompts: nothing else can leak"
        raise InputError(message, key="targets", value=", ".join(spec.targets))
    return different


def judged(spec: PromptedSpec, texts: Texts, replies: Answers) -> dict[str, Verdicts]:
    """For each target domain what its judges say of all answers (n,)."""
    contexts = [prompt.text for prompt in replies.prompts]
    return {
        domain: verdicts(spec, domain, texts.secrets[domain], replies.texts, contexts)
        for domain in dict.fromkeys(spec.targets)
    }


def leaks(spec: PromptedSpec, by_target: dict[str, Verdicts], replies: Answers) -> Verdicts:
    """Where each judge finds some other domain than the prompt's in the answer."""
    others = [(verdict, replies.domains != domain) for domain, verdict in by_target.items()]
    return {
        name: np.any([verdict[name] & other for verdict, other in others], axis=0)
        for name in [*spec.judges, GOLD]
    }


def rate(flags: np.ndarray, replies: Answers, chosen: np.ndarray) -> Share | None:
    """Share of flagged answers among the chosen ones (n,); None where there are none."""
    prompts = [replies.prompts[place] for place in np.flatnonzero(chosen)]
    if not prompts:
        return None
    dialogues = [prompt.dialogue for prompt in prompts]
    return share(flags[chosen], dialogues)


def real(
    spec: PromptedSpec, tokenizer: Tokenizer, texts: Texts, domain: str, target: str
) -> dict[str, Share | None]:
    """What the judges of a target flag of real held-out utterances of a domain.

    Each is cut to as many tokens as an answer.
    """
    said = texts.held_out[domain]
    most = spec.sampling.max_new_tokens
    cut = [tokenizer.decode(tokenizer.encode(utterance.text)[:most]) for utterance in said]
    dialogues = [utterance.dialogue for utterance in said]
    return {
        name: share(flags, dialogues) if said else None
        for name, flags in verdicts(spec, target, texts.secrets[target], cut).items()
    }


def shown(rate: Share | None, prefix: str = "") -> dict[str, float | int | None]:
    """A share as metrics."""
    names = ("flagged", "of", "effective", "rate", "low", "high")
    values = rate or [None] * len(names)
    return {f"{prefix}{name}": value for name, value in zip(names, values, strict=True)}


def described(texts: Texts, replies: Answers) -> dict[str, Any]:
    """How much was asked and answered."""
    prompts = len(set(replies.prompts))
    return {
        "prompts": prompts,
        "prompts_too_long": len(texts.prompts) - prompts,
        "dialogues": len({prompt.dialogue for prompt in replies.prompts}),
        "generations": len(replies.generations),
        "empty": int((~replies.filled).sum()),
        "cut_off": sum(not generation.stopped for generation in replies.generations),
        "secrets": texts.counts,
    }


def leak(spec: LeakSpec, target: Target) -> dict[str, Any]:
    """Leak rates of every judge: for any other domain, and for each pair of prompt and target.

    Beside the rate of a pair stand the judge's false alarms and the target's own rate.

    Guarantees: numbers only, and of gold secrets in how many texts there is one, unless the
    specification asks for examples: these are `examples.veil`ed text, of answers to the longest
    prompts of the first dialogues and of held-out utterances.
    """
    wanted = pairs(spec)
    texts = read(spec, target.points)
    try:
        (replies,) = answers(spec, target.tokenizer, texts, target.model)
    except FloatingPointError as error:
        return {"pairs": [], "reason": str(error)}
    by_target = judged(spec, texts, replies)
    leaking = leaks(spec, by_target, replies)
    metrics = described(texts, replies)
    for name, flags in leaking.items():
        metrics |= shown(rate(flags, replies, replies.filled), f"{name}_")
    metrics["pairs"] = []
    for domain, leaked in wanted:
        floor, ceiling = (
            real(spec, target.tokenizer, texts, said, leaked) for said in (domain, leaked)
        )
        of_domain = replies.filled & (replies.domains == domain)
        for name, flags in by_target[leaked].items():
            row: dict[str, Any] = {"prompt": domain, "target": leaked, "judge": name}
            row |= shown(rate(flags, replies, of_domain))
            row |= shown(floor[name], "floor_") | shown(ceiling[name], "ceiling_")
            metrics["pairs"].append(row)
    if spec.examples:
        longest = {prompt.dialogue: place for place, prompt in enumerate(replies.prompts)}
        places = list(longest.values())[: spec.examples]
        show = veil(policies_of(spec).values(), target.with_secrets, spec.min_secret)
        metrics["examples"] = written(show, replies.prompts, replies.texts, leaking, places)
        metrics["redactions"] = redactions(spec, target.with_secrets, texts)
    return metrics
