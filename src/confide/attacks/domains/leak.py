"""How often does a model that is prompted with one domain write text of another? (Domain Private
Transformers, section 6.2)

There it is called the success rate of a likelihood-ratio attack, though no ratio is in it: the
share of the continuations of held-out prompts that a judge flags, of those that are not empty.
Beside each rate stand what the same judge flags of real held-out text of the prompt's domain, its
false alarms, and of the target's own. Intervals are those of `proportions.share`: dialogues are the
clusters, since prompts of one dialogue begin alike, and a prompt is continued many times.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from confide.attacks.domains.examples import redactions, veil, written
from confide.attacks.domains.judges import GOLD, Verdicts, verdicts
from confide.attacks.domains.prompts import Prompt, Texts, read
from confide.attacks.domains.proportions import Share, share
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models.generation import Generation, ending, generate, room, uniforms
from confide.specs import LeakSpec, PromptedSpec
from confide.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Answers:
    """All continuations (n,), prompt by prompt, and the token ids of their prompts."""

    prompts: list[Prompt]  # (n,): each as often as it was continued
    ids: list[list[int]]  # (n,) token ids of the prompt
    generations: list[Generation]  # (n,)

    @property
    def texts(self) -> list[str]:
        return [generation.text.strip() for generation in self.generations]

    @property
    def filled(self) -> np.ndarray:
        """(n,) bool: is not empty."""
        return np.array([bool(text) for text in self.texts], dtype=bool)


def fitting(
    spec: PromptedSpec, tokenizer: Tokenizer, texts: Texts, *networks: nn.Module
) -> list[tuple[Prompt, list[int]]]:
    """Prompts, with their tokens, that leave each of the models room for an answer."""
    longest = min(room(network, spec.sampling) for network in networks)
    encoded = [(prompt, tokenizer.encode(prompt.text)) for prompt in texts.prompts]
    found = [(prompt, ids) for prompt, ids in encoded if len(ids) < longest]
    if not found:
        shortest = min(len(ids) for _, ids in encoded) + 1
        message = f"no prompt leaves room for so many tokens: the shortest has {shortest}, the model {longest:.0f} beside them"
        raise InputError(message, key="sampling.max_new_tokens", value=spec.sampling.max_new_tokens)
    return found


def answers(
    spec: PromptedSpec,
    network: nn.Module,
    tokenizer: Tokenizer,
    texts: Texts,
    prompts: list[tuple[Prompt, list[int]]],
    source: torch.Generator,
) -> Answers:
    """`samples` continuations of each prompt, up to the first control token; FloatingPointError as
    in `generate`.
    """
    numbers = uniforms(len(prompts), spec.samples, spec.sampling, source)
    found = generate(
        network,
        [ids for _, ids in prompts],
        numbers,
        spec.sampling,
        ending(tokenizer, texts.controls),
    )
    repeated = [one for one in prompts for _ in range(spec.samples)]
    flat = [generation for samples in found for generation in samples]
    return Answers([prompt for prompt, _ in repeated], [ids for _, ids in repeated], flat)


def pairs(spec: PromptedSpec) -> list[tuple[str, str]]:
    """Prompt and target domains that differ."""
    found = [
        (i, j) for i in dict.fromkeys(spec.prompts) for j in dict.fromkeys(spec.targets) if i != j
    ]
    if not found:
        raise InputError(
            "are the domains of the prompts: nothing else can leak",
            key="targets",
            value=", ".join(spec.targets),
        )
    return found


def judged(spec: PromptedSpec, texts: Texts, given: Answers) -> dict[str, Verdicts]:
    """For each target domain what its judges say of all answers (n,)."""
    contexts = [prompt.text for prompt in given.prompts]
    return {
        domain: verdicts(spec, domain, texts.secrets[domain], given.texts, contexts)
        for domain in dict.fromkeys(spec.targets)
    }


def leaks(found: dict[str, Verdicts], name: str, given: Answers) -> np.ndarray:
    """(n,) bool: a judge finds some other domain than the prompt's in the answer."""
    asked = np.array([prompt.domain for prompt in given.prompts])
    return np.any([verdict[name] & (asked != domain) for domain, verdict in found.items()], axis=0)


def rate(spec: PromptedSpec, flags: np.ndarray, given: Answers, chosen: np.ndarray) -> Share | None:
    """Share of flagged answers among the chosen ones (n,)."""
    prompts = [given.prompts[place] for place in np.flatnonzero(chosen)]
    return share(
        flags[chosen],
        [one.dialogue for one in prompts],
        [one.text for one in prompts],
        spec.confidence,
    )


def real(
    spec: PromptedSpec, tokenizer: Tokenizer, texts: Texts, domain: str, target: str
) -> dict[str, Share | None]:
    """What the judges of a target flag of real held-out utterances of a domain, each cut to as many
    tokens as an answer.
    """
    said = texts.held_out[domain]
    cut = [
        tokenizer.decode(tokenizer.encode(one.text)[: spec.sampling.max_new_tokens]) for one in said
    ]
    dialogues = [one.dialogue for one in said]
    found = verdicts(spec, target, texts.secrets[target], cut)
    return {
        name: share(flags, dialogues, range(len(said)), spec.confidence)
        for name, flags in found.items()
    }


def shown(one: Share | None, prefix: str = "") -> dict[str, float | int | None]:
    """A share as metrics."""
    names = {
        "count": "flagged",
        "n": "of",
        "effective": "effective",
        "rate": "rate",
        "low": "low",
        "high": "high",
    }
    return {
        f"{prefix}{name}": None if one is None else getattr(one, field)
        for field, name in names.items()
    }


def described(texts: Texts, given: Answers) -> dict[str, Any]:
    """How much was asked and answered."""
    stopped = sum(generation.stopped for generation in given.generations)
    return {
        "prompts": len(set(given.prompts)),
        "prompts_too_long": len(texts.prompts) - len(set(given.prompts)),
        "dialogues": len({prompt.dialogue for prompt in given.prompts}),
        "generations": len(given.generations),
        "empty": int((~given.filled).sum()),
        "cut_off": len(given.generations) - stopped,
        "secrets": texts.counts,
    }


def leak(spec: LeakSpec, target: Target) -> dict[str, Any]:
    """Leak rates of every judge: over all prompts for any other domain, and for each pair of prompt
    and target domain.

    Guarantees: numbers only, and of gold secrets in how many texts there is one, unless the
    specification asks for examples: these are `examples.veil`ed text, of answers to the longest
    prompts of the first dialogues and of held-out utterances.
    """
    wanted = pairs(spec)
    texts = read(spec, target.points)
    prompts = fitting(spec, target.tokenizer, texts, target.model)
    try:
        source = torch.Generator().manual_seed(spec.seed)
        given = answers(
            spec,
            network=target.model,
            tokenizer=target.tokenizer,
            texts=texts,
            prompts=prompts,
            source=source,
        )
    except FloatingPointError as error:
        return {"pairs": [], "reason": str(error)}
    found = judged(spec, texts, given)
    filled = given.filled
    metrics: dict[str, Any] = described(texts, given) | {"confidence": spec.confidence, "pairs": []}
    for name in [*spec.judges, GOLD]:
        metrics |= {
            f"{name}_{key}": value
            for key, value in shown(rate(spec, leaks(found, name, given), given, filled)).items()
        }
    asked = np.array([prompt.domain for prompt in given.prompts])
    for domain, other in wanted:
        floor, ceiling = (
            real(spec, target.tokenizer, texts, place, other) for place in (domain, other)
        )
        for name, flags in found[other].items():
            row: dict[str, Any] = {"prompt": domain, "target": other, "judge": name}
            row |= shown(rate(spec, flags, given, filled & (asked == domain)))
            metrics["pairs"].append(
                row | shown(floor[name], "floor_") | shown(ceiling[name], "ceiling_")
            )
    if spec.examples:
        flags = {name: leaks(found, name, given) for name in [*spec.judges, GOLD]}
        longest = {prompt.dialogue: place for place, prompt in enumerate(given.prompts)}
        show = veil(spec.judges.values(), target.points, spec.min_secret)
        metrics["examples"] = written(
            show, given.prompts, given.texts, flags, list(longest.values())[: spec.examples]
        )
        metrics["redactions"] = redactions(spec, target.points, texts)
    return metrics
