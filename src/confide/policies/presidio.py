"""Microsoft Presidio's recognisers as a policy.

They are an optional extra: `pip install 'confide[presidio]'`. Its patterns and checksums run beside
the entities of a spaCy pipeline, if one is named; nothing is ever downloaded. Presidio skips a
pattern that takes too long and goes on; here the text then counts as one on which the policy
failed, so that it is private. Presidio raises the score of a pattern by the words around it, so its
findings depend on context, too.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confide.errors import InputError
from confide.policies.batches import Batched, closed
from confide.policies.pipelines import ENTITIES, load
from confide.policies.spans import merge
from confide.specs import PresidioPolicySpec
from confide.types import Span

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpArtifacts

LOG = "presidio-analyzer"
BATCH = 512  # texts that the pipeline reads at once


def presidio(spec: PresidioPolicySpec) -> Batched:
    """The policy over many texts, which the pipeline reads in one pass.

    InputError where Presidio or the pipeline is not installed, or an entity is unknown to it.
    """
    try:
        engine = analyzer(spec.model)
    except ImportError:
        raise InputError(
            "is not installed: pip install 'confide[presidio]'", key="kind", value="presidio"
        ) from None
    known = engine.get_supported_entities("en")
    for name in spec.entities or ():
        if name not in known:
            raise InputError(
                f"is unknown: one of {', '.join(sorted(known))}", key="entities", value=name
            )
    logging.getLogger(LOG).addFilter(refuse_timeouts)

    words: Any = engine.nlp_engine

    def find(texts: Sequence[str]) -> list[list[Span]]:
        with words.nlp["en"].memory_zone():  # else every new word stays in memory
            read = words.process_batch(texts, language="en", batch_size=BATCH)
            return [flagged(text, artifacts) for text, artifacts in read]

    def flagged(text: str, artifacts: "NlpArtifacts") -> list[Span]:
        """Spans of one text, of which a pipeline has said something."""
        results = engine.analyze(
            text, language="en", entities=spec.entities, nlp_artifacts=artifacts
        )
        return merge(
            Span(result.start, result.end, result.entity_type, result.score)
            for result in results
            if result.score > spec.threshold
        )

    return closed(find)


def analyzer(model: str | None) -> "AnalyzerEngine":
    """An engine for English with all of Presidio's own recognisers, offline."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    # it would fetch the list of public suffixes when it sees the first address of an e-mail; the
    # packaged one serves as well
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    log = logging.getLogger(LOG)
    log.setLevel(logging.ERROR)  # its warnings are about recognisers for other languages
    nlp_engine: Any = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": model or "blank"}])
    nlp_engine.nlp = {"en": load(model, ENTITIES) if model is not None else spacy.blank("en")}
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=nlp_engine)
    engine = AnalyzerEngine(registry=registry, nlp_engine=nlp_engine)
    log.setLevel(logging.WARNING)
    return engine


def refuse_timeouts(record: logging.LogRecord) -> bool:
    """A filter of Presidio's log that raises where a pattern was given up.

    No other warning is shown.
    """
    if "timed out" in record.getMessage():
        raise TimeoutError("a pattern took too long")
    return record.levelno >= logging.ERROR
