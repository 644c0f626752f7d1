"""The contextual policy of Selective-DP (Shi et al. 2022, section 6).

It flags entities, subjects, objects, proper nouns and pronouns. All of it is read from a spaCy
pipeline's dependency parse, tags and entities, by the labels of Universal Dependencies, of the Penn
Treebank and of spaCy's own English pipelines. A subject or object is its head word, not its whole
phrase; objects of prepositions count where the parser's labels tell them (`pobj`). Flagged words in
a row are one span, blanks between included. Flags depend on the whole text: no claim beyond what
the neighbour test measures.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confide.policies.batches import Batched, closed
from confide.policies.pipelines import ENTITIES, PARSER, TAGGER, load, run
from confide.specs import ContextualPolicySpec
from confide.types import Span

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

NEEDS = {
    "entities": ENTITIES,
    "subjects": PARSER,
    "objects": PARSER,
    "proper_nouns": TAGGER,
    "pronouns": TAGGER,
}
PROPER = ("NNP", "NNPS", "PROPN")
PRONOUNS = ("PRP", "PRP$", "WP", "WP$", "PRON")


def contextual(spec: ContextualPolicySpec) -> Batched:
    """The policy over many texts, in one pass of each network.

    InputError where the pipeline cannot be had, or cannot tell a part.
    """
    nlp = load(spec.model, *dict.fromkeys(NEEDS[part] for part in spec.parts))

    def find(texts: Sequence[str]) -> list[list[Span]]:
        with nlp.memory_zone():
            return [flagged(doc, spec.parts) for doc, _ in run(nlp, texts)]

    return closed(find)


def flagged(doc: "Doc", parts: Sequence[str]) -> list[Span]:
    """Spans of one document: runs of flagged words, with the label of the first."""
    spans: list[Span] = []
    before = False
    for token in doc:
        label = part_of(token, parts)
        if label is not None:
            start, label = spans.pop()[::2] if before else (token.idx, label)
            spans.append(Span(start, token.idx + len(token), label))
        before = label is not None
    return spans


def part_of(token: "Token", parts: Sequence[str]) -> str | None:
    """The first of the parts that a word belongs to."""
    tags = (token.tag_, token.pos_)
    belongs = {
        "entities": token.ent_iob_ in ("B", "I"),
        "subjects": "subj" in token.dep_,  # nsubj, csubj, nsubjpass, nsubj:pass
        "objects": "obj" in token.dep_ or token.dep_ == "dative",  # obj, iobj, dobj, pobj
        "proper_nouns": tags[0] in PROPER or tags[1] in PROPER,
        "pronouns": tags[0] in PRONOUNS or tags[1] in PRONOUNS,
    }
    return next((part for part in parts if belongs[part]), None)
