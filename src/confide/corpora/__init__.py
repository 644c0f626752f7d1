"""Corpora: one reader per format.

Each takes (spec, raw) and gives records, in the order of the splits where these are known.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from confide.corpora import (
    dialog_files,
    lines,
    mail,
    messages,
    multidogo,
    reddit,
    schema_guided,
    speeches,
    table,
    treebank,
    wikitext,
)
from confide.corpora.simulated import authors, customersim
from confide.specs import CorpusSpec
from confide.types import Record

READERS: dict[str, Callable[..., Iterator[Record]]] = {
    "authors": authors.read,
    "customersim": customersim.read,
    "dialog_files": dialog_files.read,
    "lines": lines.read,
    "mail": mail.read,
    "messages": messages.read,
    "multidogo": multidogo.read,
    "multiwoz22": schema_guided.read,
    "reddit": reddit.read,
    "sgd": schema_guided.read,
    "speeches": speeches.read,
    "table": table.read,
    "treebank": treebank.read,
    "wikitext": wikitext.read,
}


def raw_file(spec: CorpusSpec) -> Path | None:
    """Where the workflow unpacks the archive of a corpus; None of a corpus without one."""
    archive = getattr(spec, "archive", None)
    return None if archive is None else Path("data/raw", f"{archive}.jsonl")
