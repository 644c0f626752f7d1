"""Corpora: one reader per format.

Each takes (spec, raw) and gives records, in the order of the splits where these are known.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
from confide.corpora.lines import Form
from confide.corpora.simulated import authors, customersim
from confide.specs import CorpusSpec, LinesSpec, MessagesSpec, TableSpec
from confide.types import Record

# how lines or rows of the user's own files are found and read
FORMS: dict[str, Callable[[Any], Form]] = {
    "lines": lines.form_of,
    "messages": messages.form_of,
    "table": table.form_of,
}


def read_own(
    spec: LinesSpec | MessagesSpec | TableSpec, raw: Path | None = None
) -> Iterator[Record]:
    """All records; `raw` is not used: the spec names the file. InputError if there are none.

    Errors: InputError names file, line and key, never the text.
    """
    yield from lines.read(spec, FORMS[spec.reader](spec))


READERS: dict[str, Callable[..., Iterator[Record]]] = {
    "authors": authors.read,
    "customersim": customersim.read,
    "dialog_files": dialog_files.read,
    "mail": mail.read,
    "multidogo": multidogo.read,
    "multiwoz22": schema_guided.read,
    "reddit": reddit.read,
    "sgd": schema_guided.read,
    "speeches": speeches.read,
    "treebank": treebank.read,
    "wikitext": wikitext.read,
    **dict.fromkeys(FORMS, read_own),
}


def raw_file(spec: CorpusSpec) -> Path | None:
    """Where the workflow unpacks the archive of a corpus; None of a corpus without one."""
    archive = getattr(spec, "archive", None)
    return None if archive is None else Path("data/raw", f"{archive}.jsonl")
