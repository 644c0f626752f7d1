"""Named entities as a policy.

It has the two thresholds of CRT's MultiWOZ runs (A.4, and SDP's "all entities"). pi flags the
entities of the best parse whose every token lies inside an entity with a probability above the
threshold. Its conservative sibling adds the other entities of the best parse, and each token that
lies outside of all entities with too small a probability; it flags whatever pi of the same pipeline
flags. Both look at the whole text, so masking one secret may change what else they find: what they
may claim of a caught secret is what the neighbour test measures (CRT's proof assumes a policy
without context).

Probabilities are of a beam over parses, entities are not: a beam over a parser that was trained
greedily, as most are, prefers long entities, which take fewer steps.
"""

from functools import lru_cache
from typing import NamedTuple

from confide.policies.batches import Batched, closed
from confide.policies.pipelines import ENTITIES, Entity, Scores, entities_of, load, run
from confide.policies.spans import merge
from confide.specs import NerPolicySpec
from confide.types import Span

UNCERTAIN = "uncertain"


class Entities(NamedTuple):
    """What a pipeline says of one text."""

    tokens: list[tuple[int, int]]  # characters of each
    scores: Scores
    best: set[Entity]  # the entities of the best parse


def ner(spec: NerPolicySpec) -> Batched:
    """The policy over many texts, in one pass of the network.

    InputError where the pipeline cannot be had.
    """
    load(spec.model, ENTITIES)  # now, so that a missing one is no failure of a text
    return closed(
        lambda texts: [
            flagged(of_text, spec)
            for of_text in entities(spec.model, tuple(texts), spec.beam_width)
        ]
    )


@lru_cache(maxsize=1)  # pi and its conservative sibling ask the same in turn
def entities(model: str, texts: tuple[str, ...], beam_width: int) -> list[Entities]:
    """What the pipeline says of each text."""
    nlp = load(model, ENTITIES)
    with nlp.memory_zone():  # else every new word stays in memory
        return [
            Entities(
                [(token.idx, token.idx + len(token)) for token in doc],
                scores,
                entities_of(doc),
            )
            for doc, scores in run(nlp, texts, beam_width)
        ]


def flagged(text_entities: Entities, spec: NerPolicySpec) -> list[Span]:
    """Spans of one text.

    Guarantees: with `conservative`, every character that is flagged without it.
    """
    tokens, scores, best = text_entities

    def is_asked_for(entity: Entity) -> bool:
        return spec.labels is None or entity[2] in spec.labels

    known = {entity: score for entity, score in scores.items() if is_asked_for(entity)}
    inside = probabilities(len(tokens), known)
    spans = []
    for start, end, label in filter(is_asked_for, best):
        score = min(inside[start:end])
        if spec.conservative or score > spec.threshold:
            spans.append(Span(tokens[start][0], tokens[end - 1][1], label, score))
    if spec.conservative:
        spans += [Span(*tokens[index], UNCERTAIN) for index in uncertain(inside, spec.outside)]
    return merge(spans)


def probabilities(length: int, scores: Scores) -> list[float]:
    """Of each token, how probable it is to lie inside an entity."""
    inside = [0.0] * length
    for (start, end, _), score in scores.items():
        for index in range(start, end):
            inside[index] += score
    return inside


def uncertain(inside: list[float], outside: float) -> list[int]:
    """Tokens that lie outside of all entities with a probability below `outside`."""
    return [
        index for index, probability in enumerate(inside) if round(1 - probability, 6) < outside
    ]
