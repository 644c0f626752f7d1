"""Corpora: one reader per format.

Each takes (spec, raw) and gives records, in the order of the splits where these are known.
"""

from collections.abc import Callable, Iterator

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
