"""spaCy pipelines as policies use them.

They are loaded once, without the components that no policy reads, and run on many texts. A pipeline
is an installed package, a folder, or a file that the stage `pipeline` wrote. Entities are scored as
CRT's policies need it (A.4): spaCy's parser gives none, so a beam of parses is kept beside its own,
and an entity's score is the weight of the parses that have it.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from confide.errors import InputError
from confide.files.io import read_bytes

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from thinc.api import Config

# Factories of components that write entities.
ENTITIES = ("ner", "beam_ner", "entity_ruler", "span_ruler")
PARSER = ("parser", "beam_parser")
TAGGER = ("tagger", "morphologizer", "attribute_ruler")
# Vectors that other components listen to.
SHARED = ("tok2vec", "transformer", "curated_transformer")
CALLBACKS = ("before_creation", "after_creation", "after_pipeline_creation")  # of a configuration
DIGITS = 4  # of a score: what is left of the order of additions lies below

GROUP = 64  # documents whose beams move on together

Entity = tuple[int, int, str]  # first token, end, label
Scores = dict[Entity, float]


@lru_cache(maxsize=4)
def load(model: str, *needs: tuple[str, ...]) -> "Language":
    """The pipeline with the components of the given groups alone.

    InputError where it is not installed or lacks a group.
    """
    nlp = read(model)
    factories = {name: nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    for group in needs:
        if not set(group) & set(factories.values()):
            raise InputError(
                f"has no {' or '.join(group[:2])}, which the policy needs", key="model", value=model
            )
    needed = {
        name for name, factory in factories.items() if any(factory in group for group in needs)
    }
    for name, factory in factories.items():
        if factory in SHARED:
            listeners = getattr(nlp.get_pipe(name), "listening_components", None)
            if listeners is None or needed & set(listeners):
                needed.add(name)
    for name in set(factories) - needed:
        nlp.remove_pipe(name)
    return nlp


def read(model: str) -> "Language":
    """A pipeline as it is; InputError says how to install it, or which file cannot be used."""
    import spacy

    path = Path(model)
    if path.is_file():
        return from_bytes(read_bytes(path), path)
    if not path.is_dir() and not spacy.util.is_package(model):
        if path.parent != Path(".") or path.suffix:
            raise InputError("there is no such file or folder", key="model", value=model)
        raise InputError(
            f"is not installed: python -m spacy download {model}", key="model", value=model
        )
    try:
        if path.is_dir():
            refuse_callbacks(spacy.util.load_config(path / "config.cfg"))
        return spacy.load(path if path.is_dir() else model)
    except Exception as error:
        raise InputError(
            f"cannot be loaded by spaCy: {_line(error)}", key="model", value=model
        ) from None


def from_bytes(data: bytes, path: Path) -> "Language":
    """A pipeline from what `Language.to_bytes` gave; InputError names the file."""
    import spacy
    import srsly
    from thinc.api import Config

    try:
        config = Config().from_bytes(srsly.msgpack_loads(data)["config.cfg"], interpolate=False)
        refuse_callbacks(config)
        return spacy.util.get_lang_class(config["nlp"]["lang"]).from_config(config).from_bytes(data)
    except Exception as error:
        raise InputError(f"is no pipeline of this project's: {_line(error)}", file=path) from None


def refuse_callbacks(config: "Config") -> None:
    """ValueError where a pipeline wants functions called while it is built."""
    if named := [name for name in CALLBACKS if config.get("nlp", {}).get(name)]:
        raise ValueError(f"names functions to be called: {', '.join(named)}")


def _line(error: Exception) -> str:
    """The first line of an error of spaCy's, which may be long."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')[:200]}"


def run(nlp: "Language", texts: Sequence[str], beam_width: int = 1) -> list[tuple["Doc", Scores]]:
    """Documents as the pipeline annotates them, and scores of entities, those of other parses, too.

    With a beam of 1 all score 1, and so do those of rules. Raises where spaCy does, also on a text
    longer than nlp.max_length: nothing is cut.
    """
    from spacy.pipeline import EntityRecognizer

    docs = [nlp.make_doc(text) for text in texts]
    scores: list[Scores] = [{} for _ in docs]
    for _, component in nlp.pipeline:
        if beam_width > 1 and isinstance(component, EntityRecognizer):
            for alike in _by_length(docs):
                group = [docs[index] for index in alike]
                # before its own parse, with whose entities all parses would have to agree
                beams = component.beam_parse(group, beam_width=beam_width)
                component.set_annotations(group, component.predict(group))
                for index, weights in zip(alike, component.scored_ents(beams), strict=True):
                    # its own parse may hold what no parse of the beam does
                    scores[index] = dict.fromkeys(entities_of(docs[index]), 0.0) | {
                        entity: round(weight, DIGITS) for entity, weight in weights.items()
                    }
        elif hasattr(component, "pipe"):
            docs = list(component.pipe(docs, batch_size=max(1, len(docs))))
        else:
            docs = [component(doc) for doc in docs]
    for doc, of_doc in zip(docs, scores, strict=True):
        for entity in entities_of(doc):
            of_doc.setdefault(entity, 1.0)
    return list(zip(docs, scores, strict=True))


def entities_of(doc: "Doc") -> set[Entity]:
    """First token, end and label of each entity of a document."""
    return {(entity.start, entity.end, entity.label_) for entity in doc.ents}


def _by_length(docs: list["Doc"]) -> list[list[int]]:
    """Indices of documents in groups of similar length.

    A beam goes on until the longest of its group is done. Empty ones are left out, as nothing has
    no parse.
    """
    order = [index for index, doc in enumerate(docs) if len(doc)]
    order.sort(key=lambda index: len(docs[index]))
    return [order[first : first + GROUP] for first in range(0, len(order), GROUP)]
