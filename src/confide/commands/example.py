"""`confide example FILE`: a simulated corpus as JSON lines, to try the workflow on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.corpora.simulated.customersim import read
from confide.errors import InputError
from confide.files.io import check_new, write_jsonl
from confide.output.escaping import say
from confide.specs import CustomerSimSpec, Sizes


def example(file: Path, *, dialogues: int = 300, seed: int = 0) -> None:
    """Write so many dialogues of customers with a service desk, their secrets marked.

    Each is a line. An existing file is kept.

    file: the new file, such as mine/corpus.jsonl.
    dialogues: how many.
    seed: of their words and secrets; the same one gives the same file.
    """
    if dialogues < 1:
        raise InputError("must be at least 1", key="dialogues", value=dialogues)
    check_new(file)
    count = write_jsonl(file, lines(dialogues, seed))
    say(f"{file}: {count:,} simulated dialogues")


def lines(dialogues: int, seed: int) -> Iterator[dict[str, Any]]:
    """Text, author and gold spans of each dialogue.

    There is no split, so that the workflow draws it, author by author.
    """
    spec = CustomerSimSpec(
        reader="customersim", sizes=Sizes(train=dialogues, valid=1, test=1), seed=seed, users=2000
    )
    for record in read(spec):
        if record.split == "train":
            spans = [[span.start, span.end, span.label] for span in record.spans]
            yield {
                "doc": record.doc.removeprefix("train/"),
                "author": (record.author or "").removeprefix("train/"),
                "text": record.text,
                "spans": spans,
            }
