"""Corpora: one reader per format, each (spec, raw) -> records in split order where the split is known."""

from collections.abc import Callable, Iterator
from pathlib import Path

from confide.corpora import customersim, dialog_files, lines, multidogo, schema_guided, treebank, wikitext
from confide.specs import CorpusSpec
from confide.types import Record

READERS: dict[str, Callable[[CorpusSpec, Path | None], Iterator[Record]]] = {
    "customersim": customersim.read,
    "dialog_files": dialog_files.read,
    "lines": lines.read,
    "multidogo": multidogo.read,
    "multiwoz22": schema_guided.read,
    "sgd": schema_guided.read,
    "treebank": treebank.read,
    "wikitext": wikitext.read,
}
