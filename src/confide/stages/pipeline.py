"""Make a spaCy pipeline for the policies `ner` and `contextual`: a published one, or train one.

A published one is taken from its package as it is. A small one is trained on public text: tagger
and parser share their vectors and learn from a treebank; entities have vectors of their own, so
that a policy that needs entities alone computes nothing else, and learn from the gold spans of a
corpus. Scores are those on the test split, from raw text (spaCy's own tokens). A pipeline is one
file, `Language.to_bytes`; one that is trained has the same bytes for the same seed.
"""

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from confide.corpora.treebank import Tree, trees
from confide.errors import InputError
from confide.files.io import read_json, write_json, write_pieces
from confide.files.jsons import JsonObject
from confide.files.packages import fetched
from confide.files.rows import read_rows
from confide.output.escaping import terminal
from confide.policies.pipelines import read
from confide.specs import PipelineSpec

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

SYNTAX = ("tag_acc", "dep_uas", "dep_las")
ENTITIES = ("ents_p", "ents_r", "ents_f")


def pipeline(
    spec: PipelineSpec,
    *,
    output: Path,
    scores: Path,
    treebank: Path | None = None,
    points: Path | None = None,
) -> None:
    """Write the pipeline and its scores.

    `treebank` is the fetched archive, `points` those of a corpus with gold spans.

    Guarantees: reads the train splits (and the test splits for scores) of what it is given; give it
    public text.
    """
    import spacy

    if spec.package is not None:
        write_json(scores, take(spec.package, output) | {"spacy": spacy.__version__})
        return
    if (spec.treebank is None) != (treebank is None):
        raise InputError(
            "needs the fetched treebank" if treebank is None else "has no treebank", key="treebank"
        )
    if (spec.entities is None) != (points is None):
        raise InputError(
            "needs the points of a corpus" if points is None else "has no entities", key="points"
        )
    nlp = spacy.blank("en")
    facts = {"seed": spec.seed, "spacy": spacy.__version__}
    if treebank is not None:
        nlp, facts["syntax"] = syntax(spec, treebank)
    if points is not None:
        other, facts["entities"] = entities(spec, points)
        nlp.add_pipe("ner", source=other)
    write_pieces(output, [nlp.to_bytes()])
    write_json(scores, facts)


def take(package: str, output: Path) -> JsonObject:
    """Write a published pipeline; the scores that its publisher gives."""
    with fetched(package) as folder:
        write_pieces(output, [read(str(folder)).to_bytes()])
        meta = read_json(folder / "meta.json")
    performance = meta.get("performance", {})
    told = {name: performance.get(name) for name in (*SYNTAX, *ENTITIES)}
    return {"package": package, "version": meta["version"], "published": told}


def syntax(spec: PipelineSpec, treebank: Path) -> tuple["Language", JsonObject]:
    """Tagger and parser, with their scores."""
    nlp = blank(spec)
    splits = trees(treebank)
    listener = {
        "@architectures": "spacy.Tok2VecListener.v1",
        "width": spec.width,
        "upstream": "tok2vec",
    }
    nlp.add_pipe("tok2vec", config={"model": vectors(spec)})
    nlp.add_pipe(
        "tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
    )
    nlp.add_pipe("parser", config={"min_action_freq": 5, "model": transitions("parser", listener)})
    learnt = [
        example for tree in splits["train"][: spec.sentences] if (example := parsed(nlp, tree))
    ]
    return nlp, learn(
        nlp,
        spec=spec,
        epochs=spec.epochs,
        learnt=learnt,
        unseen=(parsed(nlp, tree) for tree in splits["test"]),
        names=SYNTAX,
    )


def entities(spec: PipelineSpec, points: Path) -> tuple["Language", JsonObject]:
    """The entity recogniser, with its scores.

    InputError where no training point has a gold span.
    """
    nlp = blank(spec)
    nlp.add_pipe("ner", config={"model": transitions("ner", vectors(spec))})
    texts: dict[str, dict[str, list[list[Any]]]] = {"train": {}, "valid": {}, "test": {}}
    for text, split, gold in read_rows(points, "text", "split", "gold"):
        texts[split].setdefault(text, gold)  # dialogue repeats itself
    if not any(texts["train"].values()):
        raise InputError("has no gold span in its train split", file=points)
    learnt = [tagged(nlp, text, gold) for text, gold in texts["train"].items()]
    unseen = (
        tagged(nlp, text, gold)
        for text, gold in texts["test"].items()
        if text not in texts["train"]
    )
    return nlp, learn(
        nlp, spec=spec, epochs=spec.entity_epochs, learnt=learnt, unseen=unseen, names=ENTITIES
    )


def blank(spec: PipelineSpec) -> "Language":
    """An empty English pipeline; all random numbers from here on follow from the seed."""
    import spacy

    spacy.util.fix_random_seed(spec.seed)
    return spacy.blank("en")


def vectors(spec: PipelineSpec) -> JsonObject:
    """Settings of the vectors: hashed words convolved with their neighbours, none pretrained."""
    return {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "width": spec.width,
        "depth": spec.depth,
        "embed_size": 2000,
        "window_size": 1,
        "maxout_pieces": 3,
        "subword_features": True,
        "pretrained_vectors": None,
    }


def transitions(kind: str, tok2vec: JsonObject) -> JsonObject:
    """Settings of spaCy's transition-based parser, for trees or for entities."""
    return {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": kind,
        "extra_state_tokens": False,
        "hidden_width": 64,
        "maxout_pieces": 2,
        "use_upper": True,
        "nO": None,
        "tok2vec": tok2vec,
    }


def parsed(nlp: "Language", tree: Tree) -> "Example | None":
    """A sentence as an example; None for the few whose words do not spell their text."""
    from spacy.tokens import Doc
    from spacy.training import Example
    from spacy.util import get_words_and_spaces

    try:
        words, spaces = get_words_and_spaces(tree.words, tree.text)
    except ValueError:
        return None
    if tuple(words) != tree.words:
        return None
    gold = Doc(
        nlp.vocab,
        words,
        spaces,
        tags=list(tree.tags),
        heads=list(tree.heads),
        deps=list(tree.relations),
    )
    return Example(nlp.make_doc(tree.text), gold)


def tagged(nlp: "Language", text: str, gold: Iterable[list[Any]]) -> "Example":
    """A text with its gold spans as an example.

    Spans grow to whole words, and the longest of overlapping ones counts.
    """
    from spacy.training import Example
    from spacy.util import filter_spans

    doc = nlp.make_doc(text)
    spans = (
        doc.char_span(start, end, label, alignment_mode="expand") for start, end, label, *_ in gold
    )
    doc.set_ents(filter_spans([span for span in spans if span is not None]))
    return Example(nlp.make_doc(text), doc)


def learn(
    nlp: "Language",
    spec: PipelineSpec,
    epochs: int,
    learnt: list["Example"],
    unseen: Iterable["Example | None"],
    names: tuple[str, ...],
) -> JsonObject:
    """Train in place with spaCy's own updates; the scores on unseen examples.

    They are null where there are none to score.
    """
    from spacy.util import minibatch

    optimizer = nlp.initialize(lambda: learnt)
    order = random.Random(spec.seed)
    size = {"sentences": len(learnt), "words": sum(len(example.reference) for example in learnt)}
    done = 0
    steps = epochs * math.ceil(len(learnt) / spec.batch_size)
    for _ in tqdm(range(epochs), desc=terminal(nlp.pipe_names[-1]), unit="epoch", disable=None):
        order.shuffle(learnt)
        for batch in minibatch(learnt, spec.batch_size):
            optimizer.learn_rate = spec.lr * (1 - done / steps)
            nlp.update(batch, drop=spec.dropout, sgd=optimizer)
            done += 1
    tested = [example for example in unseen if example is not None]
    scores = nlp.evaluate(tested) if tested else {}
    rounded = {
        name: None if scores.get(name) is None else round(float(scores[name]), 4) for name in names
    }
    return {"train": size, "test_sentences": len(tested)} | rounded
