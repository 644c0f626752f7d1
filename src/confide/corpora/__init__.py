"""Corpora: one reader per format, each (spec, raw) -> records in split order where the split is
known.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from confide.corpora import (
    dialog_files,
    lines,
    mail,
    multidogo,
    reddit,
    schema_guided,
    speeches,
    treebank,
    wikitext,
)
from confide.corpora.simulated import authors, customersim
from confide.specs import CorpusSpec
from confide.types import Record

READERS: dict[str, Callable[[CorpusSpec, Path | None], Iterator[Record]]] = {
    "authors": authors.read,
    "customersim": customersim.read,
    "dialog_files": dialog_files.read,
    "lines": lines.read,
    "mail": mail.read,
    "multidogo": multidogo.read,
    "multiwoz22": schema_guided.read,
    "reddit": reddit.read,
    "sgd": schema_guided.read,
    "speeches": speeches.read,
    "treebank": treebank.read,
    "wikitext": wikitext.read,
}
